//! Table of options, subcommands and texts by which ordinary commands execute something else.
//! Takes a program and its arguments; gives the first one that executes. Matching is deliberately wide:
//! abbreviated long options, `--option=value`, glued values and bundles of short options all count.

use crate::line::Word;
use crate::wrappers::listed;

/// One row of the table. Each text is a list parted by blanks, except the two sets of letters.
#[derive(Debug)]
pub(super) struct Row {
    programs: &'static str,
    /// The row counts only when one of these is among the arguments; empty: always.
    verbs: &'static str,
    /// Long options without their dashes.
    long: &'static str,
    /// Short options, searched in bundles too.
    short: &'static str,
    /// Short options that take the rest of their word as value, so that the search stops there.
    valued: &'static str,
    /// Arguments that start like this.
    starts: &'static str,
    /// Arguments that contain this.
    contains: &'static str,
    /// These words in this order among the arguments.
    sequence: &'static str,
}

const ROW: Row =
    Row { programs: "", verbs: "", long: "", short: "", valued: "", starts: "", contains: "", sequence: "" };

/// Whether the table knows the program: then each of its arguments must be literal.
pub(super) fn knows(program: &str) -> bool {
    TABLE.iter().any(|row| listed(row.programs, program))
}

/// The first argument by which the program would execute something else.
pub(super) fn executing<'a>(program: &str, arguments: &'a [Word]) -> Option<&'a str> {
    TABLE
        .iter()
        .filter(|row| listed(row.programs, program))
        .filter(|row| row.verbs.is_empty() || possible_verbs(arguments).any(|verb| listed(row.verbs, verb)))
        .find_map(|row| row.first_match(program, arguments))
}

impl Row {
    fn first_match<'a>(&self, program: &str, arguments: &'a [Word]) -> Option<&'a str> {
        // `tar xIf program archive`: the first word is a bundle even without a dash.
        let is_tar = matches!(program, "tar" | "gtar" | "bsdtar");
        let old_style = arguments.first().filter(|word| is_tar && !word.text.starts_with('-'));
        if let Some(first) = old_style.filter(|word| word.text.chars().any(|letter| self.short.contains(letter))) {
            return Some(&first.text);
        }
        let found = arguments.iter().map(|word| word.text.as_str()).find(|text| self.matches(text));
        found.or_else(|| self.matches_sequence(arguments))
    }

    fn matches(&self, argument: &str) -> bool {
        if let Some(option) = argument.strip_prefix("--") {
            let name = option.split('=').next().unwrap_or(option);
            if !name.is_empty() && self.long.split_ascii_whitespace().any(|long| long.starts_with(name)) {
                return true;
            }
        } else if let Some(bundle) = argument.strip_prefix('-')
            && self.matches_bundle(bundle)
        {
            return true;
        }
        self.starts.split_ascii_whitespace().any(|start| argument.starts_with(start))
            || self.contains.split_ascii_whitespace().any(|part| argument.contains(part))
    }

    fn matches_bundle(&self, bundle: &str) -> bool {
        for letter in bundle.chars() {
            if self.short.contains(letter) {
                return true;
            }
            if self.valued.contains(letter) {
                return false;
            }
        }
        false
    }

    fn matches_sequence<'a>(&self, arguments: &'a [Word]) -> Option<&'a str> {
        let mut sequence = self.sequence.split_ascii_whitespace();
        let verb = sequence.next()?;
        possible_verbs(arguments).find(|possible| *possible == verb)?;
        let mut words = arguments.iter().map(|word| word.text.as_str());
        let mut last = words.find(|word| *word == verb)?;
        for wanted in sequence {
            last = words.find(|word| *word == wanted)?;
        }
        Some(last)
    }
}

/// Arguments that may be the subcommand. A word behind an option may be its value, so the next one counts
/// as well, up to the first word that follows no option.
fn possible_verbs(arguments: &[Word]) -> impl Iterator<Item = &str> {
    possible_verb_tails(arguments).filter_map(|tail| tail.first()).map(|word| word.text.as_str())
}

/// The arguments from each possible subcommand on.
pub(super) fn possible_verb_tails(arguments: &[Word]) -> impl Iterator<Item = &[Word]> {
    let mut after_option = false;
    let mut is_over = false;
    arguments.iter().enumerate().filter_map(move |(position, word)| {
        if is_over {
            return None;
        }
        let is_option = word.text.starts_with('-');
        is_over = !is_option && !after_option;
        after_option = is_option;
        if is_option { None } else { arguments.get(position..) }
    })
}

/// The table. Rows of one program add up.
static TABLE: &[Row] = &[
    Row { programs: "hg", long: "config config-file rsh remotecmd ssh tool", short: "e", contains: "alias.", ..ROW },
    Row { programs: "svn", long: "config-option diff-cmd diff3-cmd editor-cmd config-dir", contains: "svn+", ..ROW },
    Row { programs: "jj", long: "config config-file config-toml tool", sequence: "util exec", ..ROW },
    Row { programs: "gh", sequence: "alias", ..ROW },
    Row { programs: "gh", sequence: "extension", ..ROW },
    Row { programs: "gh", sequence: "extensions", ..ROW },
    Row { programs: "gh", sequence: "ext", ..ROW },
    Row { programs: "gh", sequence: "config set", ..ROW },
    // What stands behind is for git.
    Row { programs: "gh", sequence: "repo clone --", ..ROW },
    Row { programs: "gh", sequence: "repo fork --", ..ROW },
    // Archives and copies.
    Row {
        programs: "tar gtar bsdtar",
        long: "checkpoint-action to-command use-compress-program info-script new-volume-script rsh-command rmt-command",
        short: "IF",
        valued: "fCTXbgKNV",
        ..ROW
    },
    Row { programs: "zip", long: "unzip-command", contains: "TT", ..ROW },
    Row { programs: "cpio", long: "rsh-command", ..ROW },
    Row { programs: "rsync", long: "rsh rsync-path daemon config", short: "e", valued: "fTBM", ..ROW },
    Row { programs: "scp sftp", short: "oSFD", valued: "cilPJsRX", contains: "ProxyCommand LocalCommand", ..ROW },
    Row { programs: "ssh-keygen ssh-add ssh-keyscan", short: "DPw", ..ROW },
    Row {
        programs: "curl",
        long: "config engine remote-header-name variable",
        short: "KJ",
        valued: "HdoXAebuFTmTUwxyYzECDPQrt",
        ..ROW
    },
    Row {
        programs: "wget",
        long: "use-askpass execute config use-server-timestamps-command content-disposition recursive mirror input-file \
            page-requisites force-directories trust-server-names input-metalink metalink-over-http retr-symlinks",
        short: "ermixp",
        valued: "OoaPUitTwQIRDXAB",
        ..ROW
    },
    Row {
        programs: "aria",
        long: "on-download-complete on-download-start on-download-stop on-download-error on-download-pause \
            on-bt-download-complete conf-path",
        ..ROW
    },
    Row { programs: "lftp ftp", short: "ecf", contains: "!", ..ROW },
    Row { programs: "rclone", long: "config password-command metadata-mapper", contains: ":ssh ssh=", ..ROW },
    Row { programs: "find gfind", starts: "-exec -ok -delete -fprint -fls -files0-from", ..ROW },
    Row { programs: "fd fdfind", long: "exec exec-batch", short: "xX", valued: "eEtSdcjoTC", ..ROW },
    // Text tools.
    Row { programs: "sort gsort", long: "compress-program", ..ROW },
    Row { programs: "split gsplit", long: "filter", ..ROW },
    Row { programs: "rg", long: "pre hostname-bin", ..ROW },
    Row { programs: "ag ack", long: "pager ackrc", ..ROW },
    Row { programs: "bat batcat", long: "pager", ..ROW },
    Row { programs: "delta difft", long: "pager config", ..ROW },
    Row { programs: "man", long: "pager html preprocessor troff-device browser config-file", short: "PHpC", ..ROW },
    Row {
        programs: "less more most",
        starts: "+",
        long: "lesskey-file lesskey-src lesskey-content tag tag-file log-file LOG-FILE",
        short: "kTotO",
        contains: "!",
        ..ROW
    },
    Row {
        programs: "awk gawk mawk nawk original-awk",
        long: "file include load exec source dump-variables pretty-print profile debug",
        short: "fiElDWodp",
        valued: "vF",
        contains: "system | > getline @ close ARGV ENVIRON",
        ..ROW
    },
    Row { programs: "sed gsed", long: "file", short: "f", valued: "iel", ..ROW },
    Row { programs: "jq yq", long: "from-file", short: "fL", ..ROW },
    Row { programs: "printf", starts: "-v", contains: "$( `", ..ROW },
    Row { programs: "[ test", starts: "-v -R -eq -ne -lt -le -gt -ge", contains: "$( `", ..ROW },
    // Editors.
    Row {
        programs: "vim vi nvim view vimdiff ex gvim rvim rview gview gvimdiff evim eview rgvim rgview vimx nvi nex elvis vile",
        long: "cmd startuptime remote remote-expr remote-send remote-silent remote-tab remote-wait embed headless listen server",
        // Tags and lists of errors name the files that are opened; `w` and `V` write what was typed or said.
        short: "cSsuUielWtqwV",
        starts: "+",
        ..ROW
    },
    Row {
        programs: "emacs emacsclient",
        long: "eval execute funcall load script batch insert",
        short: "eflxQq",
        starts: "-",
        ..ROW
    },
    Row { programs: "ed red nano joe micro kak hx", short: "cesT", long: "speller rcfile", contains: "!", ..ROW },
    // Builders and package managers.
    Row {
        programs: "make gmake bmake nmake",
        long: "eval include-dir",
        short: "E",
        valued: "CfIojlW",
        contains: "SHELL $ != MAKEFLAGS MAKE= CC= CXX= LD= AR= RM=",
        ..ROW
    },
    Row {
        programs: "ninja cmake ctest",
        short: "EP",
        long: "build-makeprogram",
        contains: "_LAUNCHER _COMPILER",
        ..ROW
    },
    Row { programs: "cargo", long: "config", ..ROW },
    Row { programs: "cargo", sequence: "rustc", ..ROW },
    Row { programs: "cargo", sequence: "rustdoc", ..ROW },
    Row {
        programs: "rustc rustdoc",
        starts: "-Clinker linker=",
        long: "codegen runtool test-runtool test-builder sysroot",
        short: "C",
        ..ROW
    },
    Row {
        programs: "go",
        starts: "-exec --exec -toolexec --toolexec -vettool --vettool -ldflags --ldflags -gccgoflags -overlay -modfile",
        ..ROW
    },
    Row { programs: "go", sequence: "generate", ..ROW },
    Row { programs: "go", verbs: "env", starts: "-w --w -u --u", ..ROW },
    Row {
        programs: "gcc g++ c++ cc clang clang++ gfortran ld cpp",
        starts: "-wrapper -fplugin -specs --specs -B -Xclang -fuse-ld -plugin --plugin @ -load --config --ld-path",
        contains: "-plugin -fpass-plugin -wrapper",
        ..ROW
    },
    Row {
        programs: "npm npx pnpm yarn bunx",
        long: "script-shell call shell node-options userconfig globalconfig git editor browser viewer",
        ..ROW
    },
    Row { programs: "npm", sequence: "exec", ..ROW },
    Row { programs: "npm", sequence: "x", ..ROW },
    Row { programs: "npm", sequence: "config set", ..ROW },
    Row { programs: "npm", sequence: "set", ..ROW },
    Row { programs: "npm", sequence: "edit", ..ROW },
    Row { programs: "npm", sequence: "explore", ..ROW },
    Row { programs: "npx", short: "c", ..ROW },
    Row { programs: "pip pipx", long: "global-option config-settings python", ..ROW },
    Row {
        programs: "dpkg apt apt-get aptitude apt-cache",
        long: "option config-file pre-invoke post-invoke instdir root admindir",
        short: "oc",
        contains: "::",
        ..ROW
    },
    Row {
        programs: "dpkg-buildpackage rpm rpmbuild dnf yum",
        long: "eval define pipe setopt config hook",
        short: "DEc",
        ..ROW
    },
    Row {
        programs: "bundle bundler rake composer mix gradle gradlew mvn sbt",
        long: "eval execute init-script exec",
        short: "eEI",
        contains: "exec:exec exec:java",
        ..ROW
    },
    // Databases, clusters, the rest.
    Row { programs: "psql", contains: "\\! \\| \\o \\g \\w \\i PROGRAM program", ..ROW },
    Row { programs: "mysql mariadb", contains: "system \\! pager tee source", long: "pager tee init-command", ..ROW },
    Row {
        programs: "sqlite",
        contains: ".sh .sy .lo .re .out .once .read .import | load_extension edit(",
        long: "init cmd",
        starts: "-init -cmd",
        ..ROW
    },
    Row { programs: "redis-cli mongo mongosh", long: "eval file", contains: "EVAL eval run(", ..ROW },
    Row { programs: "openssl", starts: "-provider -config", contains: "engine", ..ROW },
    Row {
        programs: "gpg gpg2",
        long: "exec-path photo-viewer agent-program dirmngr-program pinentry-program options homedir keyserver-options",
        ..ROW
    },
    Row { programs: "ffmpeg ffprobe convert magick mogrify", contains: "| msl: ephemeral: @", ..ROW },
    Row {
        programs: "pdflatex latex xelatex lualatex tex latexmk",
        starts: "-shell-escape --shell-escape -enable-write --enable-write -e -pdflatex \\",
        ..ROW
    },
    Row { programs: "ip", verbs: "netns vrf", starts: "exec ex e", ..ROW },
    Row { programs: "tcpdump tshark dumpcap", short: "zX", ..ROW },
    Row { programs: "nmap", long: "script interactive", ..ROW },
    Row { programs: "systemctl loginctl", starts: "edit -H --host link set-environment import-environment", ..ROW },
    Row { programs: "terraform tofu", sequence: "console", ..ROW },
    Row { programs: "jobs", short: "x", ..ROW },
    Row {
        programs: "pytest py.test",
        long: "override-ini rootdir config-file pdbcls confcutdir",
        short: "pco",
        valued: "kmrWn",
        ..ROW
    },
    Row { programs: "pytest tox nox", starts: "-p -c --rootdir -o --override-ini --pdbcls --confcutdir", ..ROW },
];
