//! Finds commands that stop Toolwarden: signals, service managers, containers, removal.
//! Takes a program and its arguments, or a whole line; gives why it would stop Toolwarden. Names are compared as widely as
//! these programs compare them: parts of names, regular expressions, patterns, names of services.

use crate::line::{ShellLine, Word};
use crate::patterns;
use crate::wrappers::{listed, program as program_of};

const NAME: &str = "toolwarden";

/// What our processes may be called with all of their words.
const WHOLE: [&str; 4] = [
    "/usr/local/bin/toolwarden serve",
    "/home/.cargo/bin/toolwarden stdio",
    "/opt/homebrew/bin/toolwarden run edge hook",
    "/usr/bin/toolwarden --config",
];

/// Managers of services, containers and packages with the words by which they stop or remove what they are given.
const MANAGERS: &[(&str, &str)] = &[
    (
        "systemctl",
        "stop kill restart try-restart reload-or-restart try-reload-or-restart condrestart condstop disable mask isolate \
         freeze revert clean set-property",
    ),
    ("service rc-service invoke-rc.d initctl", "stop restart force-reload force-stop condrestart try-restart"),
    ("launchctl", "unload bootout remove stop kill disable kickstart"),
    ("docker podman nerdctl docker-compose podman-compose", "stop kill rm restart pause down remove rmi"),
    ("kubectl oc", "delete scale drain rollout replace"),
    (
        "supervisorctl sv pm circusctl rc-update update-rc.d monit machinectl lxc incus",
        "stop restart remove shutdown exit down kill delete force-stop force-shutdown term del disable terminate poweroff",
    ),
    ("tmux screen byobu zellij", "kill-session kill-server kill-window kill-pane quit kill delete-session"),
    ("cargo pip pipx npm pnpm yarn brew snap flatpak", "remove uninstall rm un stop disable disconnect"),
    (
        "apt apt-get aptitude dnf yum zypper apk pacman port nix-env dpkg rpm",
        "stop remove purge uninstall erase autoremove del -r -P -R -e -Rs --remove --purge --erase --uninstall",
    ),
];

/// These end whatever they are given.
const ENDERS: &str = "taskkill stop-process spps stop-service skill snice slay wmic s6-svc s6-svunlink fuser";
/// These end, hold or look into processes by number.
const BY_NUMBER: &str = "kill gcore gdb lldb strace ltrace dtruss perf renice prlimit reptyr criu";
/// These find the numbers of processes by name.
const FINDERS: &str = "pgrep pidof pidwait";
const BY_NAME: &str = "pkill killall";

/// Whether a program may stop another.
pub(super) fn is_stopper(program: &str) -> bool {
    listed(BY_NAME, program)
        || listed(ENDERS, program)
        || program == "kill"
        || MANAGERS.iter().any(|(names, _)| listed(names, program))
}

/// Why a command would stop Toolwarden.
pub(super) fn stops(program: &str, arguments: &[Word]) -> Option<String> {
    let texts = || arguments.iter().map(|word| word.text.to_ascii_lowercase());
    let is_ours = |text: &String| text.contains(NAME) || (patterns::is_pattern(text) && is_fitting(text));
    let stops = match program {
        "pkill" | "killall" => ends_by_name(program, arguments),
        // `kill -9 -1`: every process there is.
        "kill" => texts().skip(1).any(|text| text == "-1"),
        _ if listed(ENDERS, program) => texts().any(|text| is_ours(&text)),
        _ => {
            let verbs = MANAGERS.iter().find(|(names, _)| listed(names, program)).map(|(_, verbs)| *verbs)?;
            // Letters of package managers count as they are written.
            let is_verb = |word: &Word| listed(verbs, &word.text) || listed(verbs, &word.text.to_ascii_lowercase());
            arguments.iter().any(is_verb) && texts().any(|text| is_ours(&text))
        }
    };
    stops.then(|| format!("`{program}` would stop toolwarden"))
}

/// A pattern of a service manager: `tool*`.
fn is_fitting(pattern: &str) -> bool {
    ["toolwarden", "toolwarden.service", "toolwarden.socket", "toolwarden.exe"]
        .iter()
        .any(|own| patterns::fits(pattern, own))
}

/// Why a line would end processes that it finds by our name: `kill $(pgrep toolwarden)`, `pidof toolwarden | xargs kill`.
pub(super) fn ends_found(line: &ShellLine, program: &str) -> Option<String> {
    let hands_over = line.source.contains(['$', '`', '|']);
    if !listed(BY_NUMBER, program) || !hands_over {
        return None;
    }
    let finds = |name: &str, arguments: &[Word]| match name {
        _ if listed(FINDERS, name) => ends_by_name("pkill", arguments),
        "grep" | "egrep" | "rg" | "awk" | "gawk" => {
            let shows = line.commands.iter().filter_map(|one| one.name.as_deref()).any(|name| name == "ps");
            let words = arguments.iter().filter(|word| word.literal && !word.text.starts_with('-'));
            shows && words.into_iter().any(|word| may_match(&word.text.replace('/', "."), false))
        }
        _ => false,
    };
    let found = line.commands.iter().any(|one| {
        let name = one.command_word.as_ref().map(|word| program_of(&word.text)).unwrap_or_default();
        finds(&name, &one.arguments)
    });
    let is_named = line.source.to_ascii_lowercase().contains(NAME);
    (found || is_named).then(|| format!("`{program}` is given processes that may be toolwarden's"))
}

/// Options of these whose value is the next word.
const VALUED: &str = "\
    -u -U -g -G -s -t -P -F -r -o -y -Z -n -c -d --euid --uid --group --pgroup --session --terminal --parent --pidfile --signal \
    --older-than --younger-than --user --context --ns --runstates --cgroup --env";

/// Whether processes of ours may be among those that are named.
fn ends_by_name(program: &str, arguments: &[Word]) -> bool {
    let has = |letter: char, long: &str| {
        arguments.iter().any(|word| match (word.text.strip_prefix("--"), word.text.strip_prefix('-')) {
            (Some(name), _) => name.len() > 1 && long.starts_with(name),
            (None, Some(bundle)) => bundle.contains(letter),
            (None, None) => false,
        })
    };
    if has('l', "list") && program == "killall" || has('V', "version") || has('h', "help") {
        return false;
    }
    let names: Vec<&Word> = arguments.iter().filter(|word| !word.text.starts_with('-')).collect();
    let valued = arguments.iter().filter(|word| listed(VALUED, &word.text)).count();
    // Without a name all processes of a person, a group or a terminal are meant.
    if names.len() <= valued || (program == "pkill" && has('v', "inverse")) {
        return !arguments.is_empty();
    }
    let is_pattern = program == "pkill" || has('r', "regexp") || has('m', "match");
    let is_whole = program == "pkill" && has('f', "full");
    names.into_iter().any(|word| match word.literal {
        false => true,
        true if is_pattern => may_match(&word.text, is_whole),
        true => program_of(&word.text) == NAME || word.text.to_ascii_lowercase().contains(NAME),
    })
}

/// Whether a regular expression may match our name, or our name with all of its words. Wide: only the plain stretches of
/// it are compared.
fn may_match(pattern: &str, is_whole: bool) -> bool {
    let pattern = pattern.to_ascii_lowercase();
    let candidates = WHOLE.iter().filter(|_| is_whole).copied().chain([NAME]);
    candidates.into_iter().any(|candidate| {
        pattern.split('|').any(|alternative| stretches(alternative).iter().all(|stretch| candidate.contains(stretch)))
    })
}

/// The plain stretches of a regular expression.
fn stretches(pattern: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match letter {
            // What stands before these may be there or not.
            '*' | '?' | '{' => {
                if let Some(last) = found.last_mut() {
                    last.pop();
                }
                if letter == '{' {
                    letters.by_ref().find(|next| *next == '}');
                }
                found.push(String::new());
            }
            '[' => {
                letters.next();
                letters.by_ref().find(|next| *next == ']');
                found.push(String::new());
            }
            '\\' => {
                letters.next();
                found.push(String::new());
            }
            '.' | '+' | '^' | '$' | '(' | ')' => found.push(String::new()),
            other => {
                if let Some(last) = found.last_mut() {
                    last.push(other);
                }
            }
        }
    }
    found.retain(|stretch| !stretch.is_empty());
    found
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::{Places, changes_toolwarden, read, text_changes_toolwarden, words_change_toolwarden};

    const HELD: [&str; 40] = [
        "pkill toolwarden",
        "pkill -9 -f tool",
        "pkill toolw",
        "pkill -f 't..lward'",
        "pkill '[t]oolwarden'",
        "pkill 'node|tool'",
        "pkill TOOLW",
        "pkill -f 'toolwarden serve'",
        "pkill -f serve",
        "pkill -f bin/tool",
        "pkill -u ann",
        "pkill -v node",
        "pkill .",
        "sudo pkill toolwarden",
        "killall toolwarden",
        "killall -9 toolwarden",
        "killall -r 'tool.*'",
        "killall -u ann",
        "systemctl stop toolwarden",
        "systemctl --user restart toolwarden.service",
        "systemctl stop 'tool*'",
        "systemctl kill -s 9 toolwarden",
        "systemctl disable --now toolwarden",
        "service toolwarden stop",
        "launchctl unload ~/Library/LaunchAgents/com.example.toolwarden.plist",
        "launchctl bootout gui/501/com.example.toolwarden",
        "docker stop toolwarden",
        "docker compose kill toolwarden",
        "podman rm -f toolwarden",
        "kubectl delete pod toolwarden-0",
        "kill $(pgrep toolwarden)",
        "kill -9 `pidof toolwarden`",
        "kill $(pgrep -f tool)",
        "pgrep toolwarden | xargs kill -9",
        "ps aux | grep toolw | awk '{print $2}' | xargs kill",
        "kill $(cat /run/toolwarden.pid)",
        "kill -9 -1",
        "sh -c 'pkill toolwarden'",
        "apt-get remove toolwarden",
        "taskkill /F /IM toolwarden.exe",
    ];

    const FREE: [&str; 20] = [
        "pkill node",
        "pkill -f 'npm run dev'",
        "pkill -f vite",
        "pkill -9 -f 'python3 server.py'",
        "pkill -u ann node",
        "killall node",
        "killall -9 firefox",
        "killall -l",
        "systemctl status toolwarden",
        "systemctl stop nginx",
        "systemctl restart postgresql",
        "service nginx stop",
        "docker stop web",
        "docker ps -f name=toolwarden",
        "docker compose down",
        "kill 1234",
        "kill -9 $(lsof -ti:8080)",
        "kill %1",
        "kill -1 1234",
        "pgrep toolwarden",
    ];

    fn is_held(text: &str) -> bool {
        read(text)
            .is_ok_and(|line| changes_toolwarden(&line, &[], Path::new("/w"), Some(Path::new("/home/u"))).is_some())
    }

    #[test]
    fn self_1_stopping_toolwarden_is_changing_it() {
        for text in HELD {
            assert!(is_held(text), "{text}");
        }
        for text in FREE {
            assert!(!is_held(text), "{text}");
        }
    }

    #[test]
    fn self_1_stopping_toolwarden_by_an_argument_is_changing_it() {
        let places =
            Places::compile(&[Path::new("/home/u/.config/toolwarden").to_path_buf()], Some(Path::new("/home/u")));
        let is_held = |text: &str| {
            let json = format!("{{\"command\":{text:?}}}");
            let looked = places.may_be_named_in(&json) && places.may_be_run_in(text);
            looked && text_changes_toolwarden(text, &places, Path::new("/w")).is_some()
        };
        for text in HELD.into_iter().filter(|text| !text.contains(" -1")) {
            assert!(is_held(text), "{text}");
        }
        for text in FREE.into_iter().chain(["kill the process, then start toolwarden again", "stop toolwarden"]) {
            assert!(!is_held(text), "{text}");
        }
        for words in [
            &["systemctl", "stop", "toolwarden"][..],
            &["sudo", "pkill", "-9", "-f", "tool"],
            &["/usr/bin/killall", "toolwarden"],
            &["docker", "stop", "toolwarden"],
        ] {
            assert!(words_change_toolwarden(words.iter().copied()).is_some(), "{words:?}");
        }
        for words in [&["systemctl", "status", "toolwarden"][..], &["pkill", "node"], &["toolwarden", "docker", "stop"]]
        {
            assert!(words_change_toolwarden(words.iter().copied()).is_none(), "{words:?}");
        }
    }
}
