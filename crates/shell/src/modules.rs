//! Judges modules that Python runs by `-m`.
//! Takes the arguments of Python; gives the module that takes code as an argument, from standard input or out of data,
//! that runs other programs, or that is given an option that executes.

use crate::line::Word;
use crate::options;
use crate::wrappers::{self, listed, program};

/// Modules that take code, or run what their arguments say.
const RUNNING: &str = "\
    timeit code codeop pdb bdb cprofile profile profiling trace runpy asyncio idlelib pickle pickletools pty ipython \
    ipykernel ptpython ptipython bpython xonsh debugpy pydevd pyinstrument viztracer webbrowser pydoc zipapp doctest cgitb \
    sqlite3 pexpect fire dotenv invoke fabric fab celery honcho watchfiles watchdog hupper pytest_watch pytest_watcher ptw \
    jupyter jupyter_core jupyter_client jupyter_console notebook nbconvert nbclient papermill ipdb pudb pdbpp trepan kernprof \
    line_profiler memory_profiler scalene pyperf perf austin py_spy ansible pre_commit twisted \
    nodeenv nodejs doit pypyr conch scrapy textual supervisor circus pyrasite manhole \
    virtualenv_run pew tmuxp plumbum subprocess32 sh execnet";

/// Other names of modules that are programs which start any other.
const STARTING: &str = "nox tox hatch poetry pdm pipenv uv uvx rye pipx conda mamba bundle bundler";

/// The first module of a line that runs code. A module that runs others by `-m` is followed by them.
pub(super) fn running(arguments: &[Word]) -> Option<&str> {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let Some(bundle) = word.text.strip_prefix('-').filter(|bundle| !bundle.starts_with('-')) else { continue };
        let Some((_, glued)) = bundle.split_once('m') else { continue };
        // The word behind is looked at once more: `-m` may be the value of another option.
        let module = match glued {
            "" => words.as_slice().first()?.text.as_str(),
            glued => glued,
        };
        let lower = module.to_ascii_lowercase();
        let first = lower.split('.').next().unwrap_or(&lower);
        let program = program(first);
        let starts_others = wrappers::starts_programs(&program) || listed(STARTING, first);
        if listed(RUNNING, first) || starts_others {
            return Some(module);
        }
        // Launchers of several processes run any program by it.
        let runs_any = |word: &&Word| word.text.starts_with("--no-py") || word.text.starts_with("--no_py");
        if let Some(option) = words.as_slice().iter().find(runs_any) {
            return Some(&option.text);
        }
        if let Some(option) = options::executing(&program, words.as_slice()) {
            return Some(option);
        }
    }
    None
}
