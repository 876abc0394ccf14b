//! Which texts name a protected place, and that the quick look never misses what the slow one finds.

use std::path::{Path, PathBuf};

use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_assert, prop_oneof, proptest};

use super::Places;

const PROTECTED: [&str; 5] = [
    "/home/ann/.config/toolwarden",
    "/home/ann/.cursor/hooks.json",
    "/w/.cursor/hooks.json",
    "/w/.roomodes",
    "/w/rules/team.cedar",
];

fn places() -> Places {
    let paths: Vec<PathBuf> = PROTECTED.iter().map(PathBuf::from).collect();
    Places::compile(&paths, Some(Path::new("/home/ann")))
}

fn json(text: &str) -> String {
    // What any JSON writer makes of it.
    let escaped: String = text
        .chars()
        .map(|character| match character {
            '"' => "\\\"".to_owned(),
            '\\' => "\\\\".to_owned(),
            other if other.is_control() => format!("\\u{:04x}", u32::from(other)),
            other => other.to_string(),
        })
        .collect();
    format!("{{\"path\":\"{escaped}\"}}")
}

fn named(text: &str) -> bool {
    let places = places();
    let here = Some(Path::new("/w"));
    let slow = places.named_in(text, here).or_else(|| places.pattern_in(text, here, &mut 4_096)).is_some();
    assert!(!slow || places.may_be_named_in(&json(text)), "the quick look misses {text}");
    slow
}

#[test]
fn self_1_spellings_of_a_place_are_found() {
    for text in [
        "/home/ann/.config/toolwarden",
        "/home/ann/.config/toolwarden/",
        "/home/ann/.config/toolwarden/toolwarden.toml",
        "//home//ann/./.config/../.config/toolwarden",
        "~/.config/toolwarden/x",
        "~ann/.config/toolwarden/x",
        "$HOME/.config/toolwarden",
        "${HOME}/.config/toolwarden",
        "%USERPROFILE%\\.cursor\\hooks.json",
        "file:///home/ann/.config/toolwarden/x",
        "file://localhost/home/ann/.config/toolwarden",
        "file:/home/ann/.cursor/hooks.json",
        "FILE:///home/ann/.cursor/hooks.json?x#y",
        "file:///home/ann/%2Econfig/%74oolwarden",
        "/home/ann/%252econfig/toolwarden",
        "vscode://file/home/ann/.cursor/hooks.json",
        "/proc/self/root/home/ann/.config/toolwarden/x",
        "/HOME/Ann/.Config/TOOLWARDEN",
        "/home/ann/.cursor/hoo\u{212a}s.json",
        "/home/ann/.cursor/ho\u{200d}oks.json",
        "\u{ff0f}home/ann/.cursor/\u{ff48}ooks.json",
        ".cursor/hooks.json",
        "./.cursor//hooks.json",
        "../w/.cursor/hooks.json",
        "sub/../.cursor/hooks.json",
        "elsewhere/.cursor/hooks.json",
        ".roomodes",
        "rules/team.cedar",
        "/w/rules/team.cedar",
        "/home/ann/.config",
        "/home/ann",
        "~",
        "$HOME",
        ".cursor",
        "/w/.cursor",
        "./rules",
        "/w/.roomodes\u{0}.txt",
        "cat x > ~/.config/toolwarden/x",
        "open('/home/ann/.cursor/hooks.json', 'w')",
        "--output=/home/ann/.cursor/hooks.json",
        "a:/w/.roomodes:ro",
        "[\"/w/.roomodes\"]",
        "{\"path\": \".cursor/hooks.json\"}",
        "please change /w/.cursor/hooks.json.",
        "tee ~/.cursor/ho\"\"oks.json",
    ] {
        assert!(named(text), "{text}");
    }
}

#[test]
fn other_texts_are_left_alone() {
    for text in [
        "",
        "/",
        "/w",
        ".",
        "..",
        "../..",
        "src/main.rs",
        "/w/src/main.rs",
        "/home/bob/x",
        "/home/ann/.config/toolwarden2",
        "/home/ann/.config/other/toolwarden",
        "/home/ann/.configs",
        "/w/.cursor/rules/style.md",
        "hooks.json",
        "/w/hooks.json",
        "team.cedar",
        "rules",
        "config",
        "home",
        "/w/.roomodes.bak",
        "what does the .cursor directory hold?",
        "toolwarden",
        "about toolwarden and its rules",
        "https://example.com/?q=%20x",
        "größe: 5 µm",
    ] {
        assert!(!named(text), "{text}");
    }
}

#[test]
fn without_a_directory_only_what_is_certain_counts() {
    let places = places();
    for (text, expected) in [
        (".cursor/hooks.json", true),
        ("/w/.roomodes", true),
        ("rules/team.cedar", false),
        ("home", false),
        (".cursor", false),
        ("/home/ann", true),
    ] {
        assert_eq!(places.named_in(text, None).is_some(), expected, "{text}");
    }
}

#[test]
fn most_calls_cost_one_pass() {
    let places = places();
    for json in [
        r#"{"path":"src/main.rs","content":"fn main() {}\n"}"#,
        r#"{"query":"SELECT * FROM t WHERE a = 'b'","limit":100}"#,
        r#"{"text":"Länge, 大小, размер, café"}"#,
        "{}",
    ] {
        assert!(!places.may_be_named_in(json), "{json}");
    }
}

#[test]
fn odd_names_are_found_too() {
    let paths =
        ["/home/j\u{fc}rgen/.config/toolwarden", "/data/my files/a,b/toolwarden", "/w/a\"b/c"].map(PathBuf::from);
    let places = Places::compile(&paths, None);
    for text in [
        "/home/ju\u{308}rgen/.config/toolwarden/x",
        "/home/j%C3%BCrgen/.config/toolwarden",
        "/data/my files/a,b/toolwarden/x",
        "rm '/data/my files/a,b/toolwarden/x'",
        "/w/a\"b/c",
    ] {
        assert!(places.named_in(text, None).is_some(), "{text}");
        assert!(places.may_be_named_in(&json(text)), "{text}");
    }
}

#[test]
fn a_flood_of_names_is_held() {
    let text = "hooks.json ".repeat(20_000);
    assert!(!named("hooks.json hooks.json"));
    assert!(named(&text.replace("hooks", "x/hooks")));
}

/// A name as some file system would also take it.
fn spelt(name: &'static str) -> impl Strategy<Value = String> {
    let letter = |(character, how): (char, u8)| match how {
        0 => character.to_uppercase().to_string(),
        1 => format!("%{:02X}", u32::from(character)),
        2 => format!("%{:02x}", u32::from(character)),
        3 if character.is_ascii_graphic() => {
            char::from_u32(u32::from(character) + 0xfee0).unwrap_or(character).to_string()
        }
        4 => format!("{character}\u{200b}"),
        _ => character.to_string(),
    };
    proptest::collection::vec(0_u8..40, name.len())
        .prop_map(move |ways| name.chars().zip(ways).map(letter).collect::<String>())
}

/// Something between two names that leads nowhere.
fn between() -> impl Strategy<Value = &'static str> {
    prop_oneof![8 => Just("/"), 1 => Just("//"), 1 => Just("/./"), 1 => Just("/x/../"), 1 => Just("\\"), 1 => Just("/a/b/../../")]
}

fn start() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("/home/ann/"),
        Just("~/"),
        Just("$HOME/"),
        Just("${HOME}/"),
        Just("file:///home/ann/"),
        Just("/w/../home/ann/"),
        Just("../home/ann/"),
        Just("/home/bob/../ann/"),
    ]
}

fn around() -> impl Strategy<Value = (&'static str, &'static str)> {
    prop_oneof![
        Just(("", "")),
        Just(("tee ", "")),
        Just(("open('", "')")),
        Just(("{\"path\":\"", "\"}")),
        Just(("x > ", " && y")),
        Just(("--file=", "")),
        Just(("[", "]")),
        Just(("", "/below/it")),
        Just(("a,", ",b")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn self_1_every_spelling_built_from_its_names_is_found(
        (one, two) in prop_oneof![
            (spelt(".config"), spelt("toolwarden")),
            (spelt(".cursor"), spelt("hooks.json")),
        ],
        start in start(), between in between(), around in around(),
    ) {
        let text = format!("{}{start}{one}{between}{two}{}", around.0, around.1);
        prop_assert!(named(&text), "{}", text);
    }

    #[test]
    fn the_quick_look_misses_nothing(pieces in proptest::collection::vec(
        prop_oneof![
            Just("/".to_owned()), Just("..".to_owned()), Just("~".to_owned()), Just(" ".to_owned()), Just("w".to_owned()),
            Just("home".to_owned()), Just("ann".to_owned()), Just(".cursor".to_owned()), Just("hooks.json".to_owned()),
            Just("rules".to_owned()), Just("team.cedar".to_owned()), Just(".roomodes".to_owned()), Just("\"".to_owned()),
            Just("%2e".to_owned()), Just("\u{ff0f}".to_owned()), any::<char>().prop_map(|character| character.to_string()),
        ], 0..9)) {
        // `named` itself asserts it. Quotes inside a name hide it from the quick look where nothing else is plain.
        let text = pieces.concat();
        if !text.contains(['"', '\'', '\\']) {
            named(&text);
        }
    }
}

#[test]
fn self_1_encodings_and_patterns_of_a_place_are_found() {
    for text in [
        r#"{"path":"/home/ann/.conf\u0069g/toolwarden"}"#,
        r"/home/ann/.config/\x74oolwarden/master.key",
        r"/home/ann/.config/\164oolwarden/master.key",
        r"cat $'/home/ann/.config/\x74oolwarden/master.key'",
        "%5cu002fhome/ann/.config/toolwarden",
        "~/.config/tool*/master.key",
        "/home/ann/.config/toolwarde?/x",
        "/home/ann/.config/[t]oolwarden",
        "/home/*/.config/{toolwarden,x}/master.key",
        "/home/ann/.cursor/hooks.jso[n]",
        "$HOME/.cursor/h*.json",
        "file:///home/ann/.config/*/master.key",
        "../home/ann/.config/*/master.key",
        "look into /home/**/master.key, please",
        "/home/**",
        "/h*/ann/.cursor/hooks.json",
        "/[h]ome/ann/.cursor/*",
        "/{home,x}/ann/.config/toolwarden",
        "../*/ann/.config/toolwarden",
        "file:///*/ann/.config/toolwarden",
        "rules/*",
        "rules/team.ced?r",
    ] {
        assert!(named(text), "{text}");
    }
    for text in [
        "**/*",
        "*",
        "*.cedar",
        "**/*.json",
        "src/**/*.rs",
        "/home/ann/src/**",
        "/home/ann/**/*.rs",
        "~/*.txt",
        "why? because 2 ** 3 is 8",
        "**bold** and *plain*",
        r"C:\users\x",
        r"\d+\s*[a-z]{3}",
        "{}[]",
    ] {
        assert!(!named(text), "{text}");
    }
}

#[test]
fn work_1_a_text_of_too_many_patterns_is_held() {
    let many = |times: usize| "/home/ann/src/*.c ".repeat(times);
    assert!(!named(&many(200)));
    assert!(named(&many(300)));
    // What cannot lead to a place costs nothing.
    assert!(!named(&"/srv/*.c a* /** text */ ".repeat(2_000)));
}
