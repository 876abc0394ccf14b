//! Judges programs that carry code in their arguments: language interpreters and `sed`.
//! Takes the program and its arguments; gives the argument that is code or makes code be read from
//! standard input. Accepts script files and plain `sed` scripts, refuses everything else.

use crate::line::Word;
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
    Interpreter { programs: &["perl", "raku"], code: "eEMmndpx", valued: "ICDF", long: &["eval"] },
    Interpreter { programs: &["ruby", "jruby", "irb"], code: "ernpx", valued: "ICEFKTW", long: &["eval", "require"] },
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
            "inspect",
            "preload",
        ],
    },
    Interpreter {
        programs: &["php"],
        code: "rBREFadz",
        valued: "cfSt",
        long: &["run", "process-code", "process-begin", "process-end", "define"],
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
            "erl",
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
        long: &["eval", "expr", "execute", "print", "load", "require", "exec"],
    },
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
    let asks_version = |word: &Word| matches!(word.text.as_str(), "--version" | "-V" | "-v" | "--help" | "-h");
    let reads_standard_input = !arguments.iter().any(|word| !word.text.starts_with('-') || asks_version(word));
    reads_standard_input.then_some("standard input")
}

fn find(program: &str) -> Option<&'static Interpreter> {
    INTERPRETERS.iter().find(|interpreter| interpreter.programs.contains(&program))
}

fn is_sed(program: &str) -> bool {
    program == "sed" || program == "gsed"
}

impl Interpreter {
    fn takes_code(&self, argument: &str) -> bool {
        if argument == "-" || argument == "/dev/stdin" || argument.starts_with("/dev/fd/") {
            return true;
        }
        if let Some(option) = argument.strip_prefix("--") {
            let name = option.split('=').next().unwrap_or(option);
            return !name.is_empty() && self.long.iter().any(|long| long.starts_with(name));
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
            return listed(SED_FLAGS, long);
        }
        let mut rest = text.chars().skip(1);
        while let Some(letter) = rest.next() {
            match letter {
                'n' | 'r' | 'E' | 's' | 'u' | 'z' => {}
                // The rest of the word is a suffix for the backup file.
                'i' => return rest.all(|letter| letter.is_ascii_alphanumeric() || letter == '.' || letter == '~'),
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

/// `-e`, `-ne`, `-e'..'`, `--expression=..`: a script is given by option.
fn announces_script(text: &str) -> bool {
    if let Some(long) = text.strip_prefix("--") {
        return long.starts_with("expression=");
    }
    let Some(bundle) = text.strip_prefix('-') else { return false };
    bundle.chars().take_while(|letter| !matches!(letter, 'i' | 'l' | 'f')).any(|letter| letter == 'e')
}

/// One address and one of `p d q =`, or one substitution without the flags that execute or write.
fn is_plain_script(script: &str) -> bool {
    let command = script.trim_start_matches(|character: char| {
        character.is_ascii_digit() || matches!(character, ',' | '$' | ' ' | '~' | '+')
    });
    if matches!(command, "p" | "d" | "q" | "=") {
        return true;
    }
    if let Some(rest) = command.strip_prefix('/') {
        let mut parts = rest.split('/');
        let (Some(pattern), Some(action), None) = (parts.next(), parts.next(), parts.next()) else { return false };
        return is_plain_text(pattern) && matches!(action.trim(), "p" | "d" | "q" | "=");
    }
    let Some(rest) = command.strip_prefix('s') else { return false };
    let Some(delimiter) = rest.chars().next().filter(|first| matches!(first, '/' | '|' | '#' | ',' | ':' | '@' | '!'))
    else {
        return false;
    };
    let mut parts = rest.split(delimiter).skip(1);
    let (Some(pattern), Some(replacement), Some(flags), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    is_plain_text(pattern)
        && is_plain_text(replacement)
        && flags.chars().all(|flag| matches!(flag, 'g' | 'p' | 'i' | 'I') || flag.is_ascii_digit())
}

/// Without newlines and without an escaped delimiter (which `split` would take for a real one, and then
/// refuse for the wrong number of parts).
fn is_plain_text(text: &str) -> bool {
    !text.contains('\n') && !text.ends_with('\\')
}
