//! Judges programs that carry code in their arguments: language interpreters and `sed`.
//! Takes the program and its arguments; gives the argument that is code or makes code be read from
//! standard input. Accepts script files and plain `sed` scripts, refuses everything else.

use crate::line::Word;
use crate::modules;
use crate::paths::is_device;
use crate::sed_scripts::is_plain_script;
use crate::wrappers::listed;

struct Interpreter {
    programs: &'static [&'static str],
    /// Short options whose value is code.
    code: &'static str,
    /// Short options with another value, which end a bundle.
    valued: &'static str,
    /// Long options whose value is code or a module to load.
    long: &'static [&'static str],
}

static INTERPRETERS: &[Interpreter] = &[
    Interpreter {
        programs: &["python", "pypy", "pythonw", "ipython", "py"],
        code: "c",
        valued: "mWXQ",
        long: &["command"],
    },
    Interpreter { programs: &["perl", "raku"], code: "eEMmndpxF", valued: "I", long: &["eval"] },
    Interpreter { programs: &["ruby", "jruby", "irb"], code: "ernpx", valued: "ICEF", long: &["eval", "require"] },
    Interpreter {
        programs: &["node", "nodejs", "deno", "bun", "tsx", "ts-node"],
        code: "eprl",
        valued: "C",
        long: &[
            "eval",
            "print",
            "require",
            "import",
            "loader",
            "experimental-loader",
            "env-file",
            "env-file-if-exists",
            "entry-url",
            "inspect",
            "inspect-brk",
            "inspect-port",
            "inspect-wait",
            "debug-port",
            "debug-brk",
            "preload",
            "run",
            "openssl-config",
            "experimental-config-file",
            "snapshot-blob",
            "test-reporter",
            "test-global-setup",
            "import-map",
            "build-snapshot-config",
            "experimental-sea-config",
            "experimental-policy",
            "compiler",
            "transpiler",
        ],
    },
    Interpreter {
        programs: &["php"],
        code: "rBREFadz",
        valued: "cfSt",
        long: &["run", "process-code", "process-begin", "process-end", "process-file", "define", "zend-extension"],
    },
    Interpreter { programs: &["lua", "luajit", "luau", "texlua"], code: "eli", valued: "j", long: &[] },
    Interpreter {
        programs: &[
            "rscript",
            "r",
            "julia",
            "octave",
            "guile",
            "gosh",
            "racket",
            "scheme",
            "sbcl",
            "clisp",
            "ghc",
            "runghc",
            "runhaskell",
            "ocaml",
            "elixir",
            "iex",
            "swift",
            "scala",
            "groovy",
            "jshell",
            "clojure",
            "clj",
            "bb",
            "janet",
            "tclsh",
            "wish",
            "gnuplot",
            "gawk-script",
            "dc",
            "bc",
        ],
        code: "eEcxrplLi",
        valued: "",
        long: &["eval", "expr", "execute", "print", "load", "require", "exec", "rpc-eval", "erl"],
    },
    // `-s os cmd id`
    Interpreter { programs: &["erl", "werl"], code: "eEcxrplLisS", valued: "", long: &["eval", "run"] },
];

/// Whether the program is an interpreter or `sed`: then each of its arguments must be literal.
pub(super) fn knows(program: &str) -> bool {
    is_sed(program) || find(program).is_some()
}

/// The argument by which the program would run code that is not a file.
pub(super) fn inline_code<'a>(program: &str, arguments: &'a [Word]) -> Option<&'a str> {
    if is_sed(program) {
        return Sed::default().first_doubt(arguments);
    }
    let interpreter = find(program)?;
    if let Some(word) = arguments.iter().find(|word| interpreter.takes_code(&word.text)) {
        return Some(&word.text);
    }
    if let Some(text) = interpreter.module_doubt(arguments).or_else(|| verb_doubt(program, arguments)) {
        return Some(text);
    }
    // `python -v` only talks more.
    let asks_version = |word: &Word| match word.text.as_str() {
        "--version" | "-V" | "--help" | "-h" => true,
        "-v" => !interpreter.loads_modules(),
        _ => false,
    };
    let has_script = interpreter.has_script(arguments) || arguments.iter().any(asks_version);
    (!has_script).then_some("standard input")
}

/// Whether the program is an interpreter of a language; `sed` is not.
pub(super) fn is_interpreter(program: &str) -> bool {
    find(program).is_some()
}

fn find(program: &str) -> Option<&'static Interpreter> {
    // `python3.13t`, `python3-dbg`
    let program = if program.starts_with("python") { "python" } else { program };
    INTERPRETERS.iter().find(|interpreter| interpreter.programs.contains(&program))
}

/// Subcommands of runtimes that take code or run other programs, and addresses that are or bring code.
fn verb_doubt<'a>(program: &str, arguments: &'a [Word]) -> Option<&'a str> {
    let (verbs, takes_addresses) = match program {
        "deno" => ("eval repl x create", true),
        "bun" => ("exec eval repl x create c", true),
        "groovy" | "jshell" | "tsx" => ("", true),
        "r" => ("CMD", false),
        _ => return None,
    };
    arguments
        .iter()
        .map(|word| word.text.as_str())
        .find(|text| listed(verbs, text) || (takes_addresses && text.split('=').any(is_code_address)))
}

/// Whether a text begins like an address from which a runtime loads code.
fn is_code_address(text: &str) -> bool {
    let schemes = ["data", "blob", "http", "https", "npm", "jsr", "github", "ftp"];
    text.split_once(':')
        .is_some_and(|(scheme, _)| schemes.iter().any(|known| known.eq_ignore_ascii_case(scheme.trim())))
}

/// Long options whose value is the next word.
const VALUED_LONG: &str = "\
    --check-hash-based-pycs --conditions --input-type --title --icu-data-dir --stack-trace-limit --disable-warning \
    --encoding --external-encoding --internal-encoding --backtrace-limit --php-ini --docroot --server";

fn is_sed(program: &str) -> bool {
    program == "sed" || program == "gsed"
}

impl Interpreter {
    /// Python: `-m module`.
    fn loads_modules(&self) -> bool {
        self.programs.contains(&"python")
    }

    /// The module behind `-m`, when it runs code or is given an option that does.
    fn module_doubt<'a>(&self, arguments: &'a [Word]) -> Option<&'a str> {
        if self.loads_modules() { modules::running(arguments) } else { None }
    }

    /// Whether a word that is neither an option nor the value of one names a script.
    fn has_script(&self, arguments: &[Word]) -> bool {
        let mut is_value = false;
        for word in arguments {
            let text = word.text.as_str();
            if is_value {
                is_value = false;
            } else if text.starts_with("--") {
                is_value = listed(VALUED_LONG, text);
            } else if let Some(bundle) = text.strip_prefix('-') {
                // `python -m module` is a script; the other values are not.
                let valued = bundle.find(|letter| self.valued.contains(letter));
                let ends_bundle = valued.is_some_and(|at| at.saturating_add(1) == bundle.len());
                if self.loads_modules() && valued.is_some_and(|at| bundle.get(at..).is_some_and(|v| v.starts_with('m')))
                {
                    return true;
                }
                is_value = ends_bundle;
            } else {
                return true;
            }
        }
        false
    }

    fn takes_code(&self, argument: &str) -> bool {
        // An option word with a blank is split further by some of them.
        let is_odd_option = argument.starts_with('-') && argument.contains([' ', '\t', '\n']);
        if argument == "-" || is_odd_option || is_device(argument) {
            return true;
        }
        if let Some(option) = argument.strip_prefix("--") {
            // `node --entry_url` is `--entry-url`.
            let name = option.split('=').next().unwrap_or(option).replace('_', "-");
            return !name.is_empty() && self.long.iter().any(|long| long.starts_with(&name));
        }
        let Some(bundle) = argument.strip_prefix('-') else { return false };
        if matches!(argument, "-v" | "-V" | "-h") {
            return false;
        }
        for letter in bundle.chars() {
            if self.code.contains(letter) {
                return true;
            }
            if self.valued.contains(letter) {
                return false;
            }
        }
        false
    }
}

/// Long options of `sed` that take no value and only change how it reads and prints.
const SED_FLAGS: &str =
    "quiet silent regexp-extended in-place null-data separate unbuffered posix sandbox debug version help";

/// Finds the scripts among the arguments of `sed`; each must be a single plain command.
#[derive(Debug, Default)]
struct Sed {
    has_script: bool,
    /// The next argument is a script, or another value.
    expected: Expected,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Expected {
    #[default]
    Anything,
    Script,
    Value,
}

impl Sed {
    fn first_doubt(mut self, arguments: &[Word]) -> Option<&str> {
        // Without `-e` the first plain argument is the script, wherever the options stand.
        let has_expression = arguments.iter().any(|word| announces_script(&word.text));
        let mut plain = Vec::new();
        for word in arguments {
            let text = word.text.as_str();
            let fits = match self.expected {
                Expected::Script => {
                    self.has_script = true;
                    self.expected = Expected::Anything;
                    is_plain_script(text)
                }
                Expected::Value => {
                    self.expected = Expected::Anything;
                    true
                }
                Expected::Anything if text.starts_with('-') && text.len() > 1 => self.option(text),
                Expected::Anything => {
                    plain.push(text);
                    true
                }
            };
            if !fits {
                return Some(text);
            }
        }
        if has_expression {
            return (!self.has_script).then_some("-e");
        }
        plain.first().copied().filter(|script| !is_plain_script(script))
    }

    fn option(&mut self, text: &str) -> bool {
        if let Some(long) = text.strip_prefix("--") {
            if let Some(script) = long.strip_prefix("expression=") {
                self.has_script = true;
                return is_plain_script(script);
            }
            let ending = long.strip_prefix("in-place=");
            return listed(SED_FLAGS, long) || ending.is_some_and(is_backup_ending);
        }
        let mut rest = text.chars();
        rest.next();
        while let Some(letter) = rest.next() {
            match letter {
                'n' | 'r' | 'E' | 's' | 'u' | 'z' => {}
                // The rest of the word is added to the name of the backup file: `sed -it` makes `.git` of `.gi`.
                'i' => return is_backup_ending(rest.as_str()),
                'e' => {
                    let glued: String = rest.collect();
                    if glued.is_empty() {
                        self.expected = Expected::Script;
                        return true;
                    }
                    self.has_script = true;
                    return is_plain_script(&glued);
                }
                'l' => {
                    if rest.next().is_none() {
                        self.expected = Expected::Value;
                    }
                    return true;
                }
                _ => return false,
            }
        }
        true
    }
}

fn is_backup_ending(ending: &str) -> bool {
    matches!(ending, "" | ".bak" | ".orig" | ".old" | ".tmp" | ".backup" | "~")
}

/// `-e`, `-ne`, `-e'..'`, `--expression=..`: a script is given by option.
fn announces_script(text: &str) -> bool {
    if let Some(long) = text.strip_prefix("--") {
        return long.starts_with("expression=");
    }
    let Some(bundle) = text.strip_prefix('-') else { return false };
    bundle.chars().take_while(|letter| !matches!(letter, 'i' | 'l' | 'f')).any(|letter| letter == 'e')
}
