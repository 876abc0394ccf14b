//! Tables of commands that run other commands or change the shell itself.
//! Takes a program's name; gives how it reaches other commands. A name in these tables is never
//! auto-allowed and is looked through by blocklist, deletion and self-protection.

/// How a wrapper names the command it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Some tail of its arguments is the command: `sudo -u bob rm x`.
    Words,
    /// Its arguments are, or are joined to, shell text: `eval 'rm x'`, `ssh host 'rm x'`.
    Text,
    /// The words behind an option are the command: `find . -exec rm {} ;`. Ordinary without that option.
    AfterOption,
    /// A shell: text behind `-c`, otherwise a script file or standard input.
    Shell,
}

/// How the program reaches other commands; `None` for ordinary programs. Takes the result of `program`.
pub(super) fn reach(program: &str) -> Option<Reach> {
    if listed(SHELLS, program) {
        Some(Reach::Shell)
    } else if listed(TEXT_RUNNERS, program) {
        Some(Reach::Text)
    } else if listed(OPTION_RUNNERS, program) {
        Some(Reach::AfterOption)
    } else if listed(WORD_RUNNERS, program) {
        Some(Reach::Words)
    } else {
        None
    }
}

/// Ordinary programs that can start any other program. An entry may allow them (`npx`, `uv:run pytest*`), but
/// blocklist and deletion look through them.
pub(super) fn starts_programs(program: &str) -> bool {
    listed(OPEN_RUNNERS, program)
}

/// Whether the commands that a program starts are found among its words.
pub(super) fn is_looked_through(program: &str) -> bool {
    reach(program).is_some() || starts_programs(program)
}

/// Whether the builtin evaluates text or changes variables, options, aliases or descriptors of the shell.
pub(super) fn changes_shell(program: &str) -> bool {
    listed(SHELL_STATE, program)
}

pub(super) fn changes_directory(program: &str) -> bool {
    ["cd", "chdir", "pushd", "popd", "z", "zoxide"].contains(&program)
}

/// The name under which the tables know a command word: last path component, ASCII lower case (file systems
/// may ignore case), without `.exe` and without a version (`python3.12`, `gcc-14`).
pub(super) fn program(command_word: &str) -> String {
    let lower = basename(command_word).to_ascii_lowercase();
    let name = lower.strip_suffix(".exe").unwrap_or(&lower);
    let bare = name.trim_end_matches(|character: char| character.is_ascii_digit() || matches!(character, '.' | '-'));
    if bare.is_empty() { name.to_owned() } else { bare.to_owned() }
}

pub(super) fn basename(command_word: &str) -> &str {
    command_word.rsplit(['/', '\\']).next().unwrap_or(command_word)
}

/// Whether a table of names, parted by blanks, holds the name.
pub(super) fn listed(table: &str, name: &str) -> bool {
    table.split_ascii_whitespace().any(|known| known == name)
}

const SHELLS: &str = "\
    sh bash dash zsh ksh mksh pdksh oksh lksh yash posh ash hush fish csh tcsh rbash rksh rzsh elvish nu \
    xonsh pwsh powershell cmd osh ysh rc es";

/// These get shell text as an argument, or join their arguments to it.
const TEXT_RUNNERS: &str = "\
    eval trap alias su runuser sg ssh autossh mosh rsh rlogin dbclient slogin watch viddy entr parallel \
    sem script expect tmux screen byobu dtach abduco fzf sk at batch crontab emulate sched hyperfine \
    concurrently start xterm gnome-terminal konsole osascript wsl dbus-launch nodemon watchexec \
    inotifywait cargo-watch complete compgen mapfile readarray bind fc direnv nix-shell";

const OPTION_RUNNERS: &str = "find gfind fd fdfind";

/// Options of the above behind which a command stands.
pub(super) const COMMAND_OPTIONS: &[&str] =
    &["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];

/// Wrappers whose first argument is the command, unless it is an option or an assignment.
pub(super) fn takes_command_first(program: &str) -> bool {
    listed(COMMAND_FIRST, program)
}

const COMMAND_FIRST: &str = "\
    env sudo doas xargs nohup nice ionice setsid stdbuf time command builtin exec coproc strace ltrace \
    noglob nocorrect pkexec caffeinate chronic fakeroot valgrind not shell";

/// Some tail of the arguments of these is a command.
const WORD_RUNNERS: &str = "\
    env sudo sudoedit doas pkexec gosu su-exec setuidgid chpst s6-setuidgid xargs gxargs nohup nice \
    ionice timeout gtimeout stdbuf setsid setpriv setarch linux unshare nsenter chroot chrt taskset \
    numactl flock lockf setlock softlimit prlimit capsh strace ltrace dtruss ktrace truss gdb lldb \
    valgrind perf rr catchsegv time gtime busybox toybox command builtin exec coproc noglob nocorrect \
    repeat not and or begin - systemd-run systemd-inhibit dbus-run-session firejail bwrap proot fakeroot \
    fakechroot faketime unbuffer ld.so ld-linux-x86-64.so ld-linux.so run-parts parallel-ssh torsocks \
    torify proxychains tsocks caffeinate arch open xdg-open rlwrap socat nc ncat netcat daemonize \
    start-stop-daemon runcon newgrp cpulimit choom ssh-agent sshpass dotenv xvfb-run vglrun optirun \
    primusrun winpty wine flatpak-spawn distrobox-enter toolbox chronic ifne ts pee lckdo zrun mispipe \
    retry cross-env nsjail aa-exec dumb-init tini";

const SHELL_STATE: &str = "\
    eval source . exec trap command builtin alias unalias enable hash bind complete compopt compgen \
    mapfile readarray declare export readonly local typeset unset unsetenv setenv let read getopts set \
    shopt umask ulimit disown suspend logout history fc caller bg fg autoload functions zmodload zle \
    zstyle bindkey emulate sched vared unfunction unhash setopt unsetopt compdef integer float private \
    limit unlimit rehash print abbr funced funcsave disable zformat zparseopts zcompile nameref";

const OPEN_RUNNERS: &str = "\
    npx npm pnpm yarn bun bunx uv uvx pipx poetry pipenv hatch pdm rye tox nox bundle bundler conda \
    mamba micromamba nix mise asdf rustup rbenv pyenv volta fnm docker podman nerdctl kubectl oc vagrant \
    lxc machinectl multipass devcontainer toolwarden";
