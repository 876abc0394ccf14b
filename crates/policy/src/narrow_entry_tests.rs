//! Entries over arguments: their one text, what they cover, and the tricks that must not be covered.

use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq, prop_assume, proptest};
use toolwarden_core::json::{Document, Limits};
use toolwarden_core::{Layer, Origin};

use super::*;

fn covers(entry: &str, arguments: &str) -> bool {
    let entry = NarrowEntry::parse(entry);
    assert!(entry.is_ok(), "{entry:?}");
    let Ok(document) = Document::parse(arguments, Limits::DEFAULT) else { return false };
    let entries = NarrowEntries::compile([&Sourced::new(
        entry.as_ref().map(ToString::to_string).unwrap_or_default(),
        Origin::record(Layer::Settings, "test"),
    )]);
    let found = entries.find("notes", "write", Some(document.root())).is_some();
    let Ok(entry) = entry else { return false };
    assert_eq!(entry.covers("notes", "write", Some(document.root())), found, "compiled and not, they agree");
    found
}

/// Whether an entry with this one demand on `/x` covers this one argument.
fn fits(likeness: &str, value: &str, argument: &str) -> bool {
    let entry = format!("notes:write where {{\"/x\":{{\"{likeness}\":{}}}}}", quoted(value));
    covers(&entry, &serde_json::json!({ "x": argument }).to_string())
}

fn is_entry(text: &str) -> bool {
    NarrowEntry::parse(text).is_ok()
}

#[test]
fn review_3_an_entry_has_one_text() {
    for text in [
        r#"notes:write where {"/path":{"path":"src"}}"#,
        r#"notes:write where {"/n":{"equals":5},"/on":{"equals":true},"/x":{"equals":null}}"#,
        r#"notes:write where {"/a/b":{"branch":"feature"},"/text":"free","/url":{"host":"a.test:8443"}}"#,
        r#"notes:write where {"/name":{"equals":"it\u0027s \"ü\" \\ \u202e"}}"#,
        r#"notes:write where {"/p":{"path":"/srv/data"}}"#,
    ] {
        let read = NarrowEntry::parse(text).map(|entry| entry.to_string());
        assert_eq!(read.as_deref(), Ok(text));
    }
    for text in [
        "notes:write",
        "notes:write where ",
        "notes:write where {}",
        "notes:write where []",
        r#"notes:write where {"/x":"free"}"#,
        r#"notes:* where {"/x":{"equals":1}}"#,
        r#"*:write where {"/x":{"equals":1}}"#,
        r#"a:b:c where {"/x":{"equals":1}}"#,
        r#"builtin:shell.run where {"/x":{"equals":1}}"#,
        r#"notes:resources/read where {"/x":{"equals":1}}"#,
        r#"notes:write where {"x":{"equals":1}}"#,
        r#"notes:write where {"/x~2":{"equals":1}}"#,
        r#"notes:write where {"/x": {"equals":1}}"#,
        r#"notes:write where {"/x":{"equals":1},"/x":"free"}"#,
        r#"notes:write where {"/y":{"equals":1},"/x":{"equals":1}}"#,
        r#"notes:write where {"/x":{"equals":1},"/y":"any"}"#,
        r#"notes:write where {"/x":{"equals":[1]}}"#,
        r#"notes:write where {"/x":{"like":"a*"}}"#,
        r#"notes:write where {"/x":{"equals":1,"path":"src"}}"#,
        r#"notes:write where {"/x":"free","/x/y":{"equals":1}}"#,
        r#"notes:write where {"/x":{"equals":"it's"}}"#,
    ] {
        assert!(!is_entry(text), "{text}");
    }
    let many: Vec<String> = (0..9).map(|number| format!("\"/{number}\":{{\"equals\":1}}")).collect();
    assert!(!is_entry(&format!("notes:write where {{{}}}", many.join(","))));
    assert!(is_entry(&format!("notes:write where {{{}}}", many.get(..8).unwrap_or_default().join(","))));
}

#[test]
fn review_3_values_that_nothing_could_be_like_are_no_entries() {
    for (likeness, values) in [
        ("path", vec!["", "/", "src/", ".", "..", "src/..", "~", "~/x", "a//b", "a\\b", "a%2e", "a b", "src."]),
        (
            "host",
            vec!["", "A.test", "a.test.", "a@b.test", "https://a.test", "a.test/", "ä.test", "a.test:443", "[::1]"],
        ),
        ("branch", vec!["", "/", "a/", "/a", "a..b", "a/../b", "-x", ".a", "a.lock", "@", "a b", "a~1", "a^", "a:b"]),
    ] {
        for value in values {
            let text = format!("notes:write where {{\"/x\":{{\"{likeness}\":{}}}}}", quoted(value));
            assert!(!is_entry(&text), "{text}");
        }
    }
}

#[test]
fn review_3_paths_are_below_a_directory_by_whole_names() {
    for argument in ["src/a", "src/a/b.rs", "src/.hidden", "src/ünter/x", "src/a-b_c+d@e"] {
        assert!(fits("path", "src", argument), "{argument}");
    }
    for argument in [
        "src",
        "src/",
        "src-evil/a",
        "srca",
        "SRC/a",
        "./src/a",
        "/src/a",
        "a/src/b",
        "src/../a",
        "src/..",
        "src/a/..",
        "src/./a",
        "src//a",
        "src/%2e%2e/a",
        "src/%2E%2E%2Fa",
        "src\\..\\a",
        "src/..\\a",
        "~/src/a",
        "src/~",
        "src/$HOME",
        "src/a\0b",
        "src/a\nb",
        "src/a b",
        "src/\u{ff0e}\u{ff0e}/a",
        "src/\u{2024}\u{2024}/a",
        "src\u{ff0f}a",
        "src\u{2215}a",
        "src/...",
        "src/.. ",
        "src/a.",
        "src/a;rm",
        "src/`a`",
        "src/*",
        "file:src/a",
        "",
        "/",
        "..",
    ] {
        assert!(!fits("path", "src", argument), "{argument:?}");
    }
    assert!(fits("path", "/srv/data", "/srv/data/a"));
    for argument in ["/srv/data", "/srv/database/a", "srv/data/a", "//srv/data/a", "/srv/data/../../etc/passwd"] {
        assert!(!fits("path", "/srv/data", argument), "{argument}");
    }
    let deep = format!("src/{}x", "a/".repeat(70));
    assert!(!fits("path", "src", &deep));
    assert!(!fits("path", "src", &format!("src/{}", "a".repeat(5000))));
}

#[test]
fn review_3_hosts_are_read_as_every_reader_would() {
    for argument in [
        "https://a.test",
        "https://a.test/x?y#z",
        "http://a.test/",
        "https://A.TEST/",
        "a.test",
        "https://a.test:443/",
        "https://a.test?u=@b.test",
    ] {
        assert!(fits("host", "a.test", argument), "{argument}");
    }
    for argument in [
        "https://b.test",
        "https://a.test.b.test/",
        "https://xa.test/",
        "https://sub.a.test/",
        "https://a.test@b.test/",
        "https://u@a.test/",
        "https://u:p@a.test/",
        "https://b.test#@a.test/",
        "https://b.test\\@a.test/",
        "https://a.test:8443/",
        "http://a.test:443/",
        "https://a.test./",
        "https://a.test%2eb.test/",
        "https://a%2etest/",
        "ftp://a.test/",
        "file://a.test/",
        "HTTPS://a.test/",
        "https:a.test",
        "https:/a.test",
        "https:///a.test",
        "//a.test/",
        " https://a.test/",
        "https://a.test\t.b.test/",
        "https://a.test\n/",
        "https://\u{430}.test/",
        "https://a\u{3002}test/",
        "a.test/x",
        "a.test:x",
        "javascript://a.test/",
        "a.test@b.test",
        "https://a.test\\.b.test/",
        "https://a.test:/",
        "https://",
    ] {
        let expected = argument == "https://a.test:/";
        assert_eq!(fits("host", "a.test", argument), expected, "{argument:?}");
    }
    assert!(fits("host", "a.test:8443", "https://a.test:8443/x"));
    assert!(fits("host", "xn--bcher-kva.test", "https://xn--bcher-kva.test/"));
    assert!(!fits("host", "xn--bcher-kva.test", "https://bücher.test/"));
    assert!(fits("host", "127.0.0.1", "http://127.0.0.1/"));
    for argument in ["http://0x7f.1/", "http://127.1/", "http://2130706433/", "http://0177.0.0.1/", "http://[::1]/"] {
        assert!(!fits("host", "127.0.0.1", argument), "{argument}");
    }
}

#[test]
fn review_3_branches_are_the_same_or_below() {
    for argument in ["feature", "feature/a", "feature/a/b-c_1.2"] {
        assert!(fits("branch", "feature", argument), "{argument}");
    }
    for argument in [
        "main",
        "feature2",
        "feature-x",
        "Feature/a",
        "feature/../main",
        "feature/",
        "/feature",
        "feature//a",
        "feature/.a",
        "feature/a.lock",
        "feature/a..b",
        "feature/-a",
        "-feature",
        "feature/@",
        "feature/@{1}",
        "feature~1",
        "feature^",
        "feature/a b",
        "feature/a:main",
        "+feature:main",
        "feature\\a",
        "feature/a\u{0}",
        "refs/heads/feature/a",
        "feature/a*",
        "feature/a.",
        "",
    ] {
        assert!(!fits("branch", "feature", argument), "{argument:?}");
    }
}

#[test]
fn review_3_what_is_equal_is_of_the_same_type_and_spelled_the_same() {
    let number = r#"notes:write where {"/x":{"equals":5}}"#;
    assert!(covers(number, r#"{"x":5}"#));
    for arguments in [
        r#"{"x":"5"}"#,
        r#"{"x":5.0}"#,
        r#"{"x":5e0}"#,
        r#"{"x":50e-1}"#,
        r#"{"x":-5}"#,
        r#"{"x":[5]}"#,
        r#"{"x":{"x":5}}"#,
        r#"{"x":null}"#,
        r#"{"x":true}"#,
        r#"{}"#,
        r"[]",
        "5",
        r#"{"X":5}"#,
        r#"{"x":5,"x":5}"#,
        r#"{"x":5,"\u0078":6}"#,
        r#"{"x":5,"y":1}"#,
    ] {
        assert!(!covers(number, arguments), "{arguments}");
    }
    let text = r#"notes:write where {"/x":{"equals":"a\"b"}}"#;
    assert!(covers(text, r#"{"x":"a\"b"}"#) && covers(text, r#"{"x":"\u0061\u0022b"}"#));
    for arguments in [r#"{"x":"a\"B"}"#, r#"{"x":"a\"b "}"#, r#"{"x":"a\\\"b"}"#] {
        assert!(!covers(text, arguments), "{arguments}");
    }
    let truth = r#"notes:write where {"/x":{"equals":true}}"#;
    assert!(covers(truth, r#"{"x":true}"#) && !covers(truth, r#"{"x":"true"}"#) && !covers(truth, r#"{"x":1}"#));
}

#[test]
fn review_3_every_argument_must_be_named() {
    let entry = r#"notes:write where {"/a/b":{"equals":1},"/c":"free"}"#;
    for arguments in [
        r#"{"a":{"b":1}}"#,
        r#"{"a":{"b":1},"c":2}"#,
        r#"{"a":{"b":1},"c":{"d":[{"e":1}]}}"#,
        r#"{"c":[],"a":{"b":1}}"#,
    ] {
        assert!(covers(entry, arguments), "{arguments}");
    }
    for arguments in [
        r#"{"a":{"b":2}}"#,
        r#"{"a":{"b":1,"x":1}}"#,
        r#"{"a":{"b":1},"d":null}"#,
        r#"{"a":{"b":1},"d":{}}"#,
        r#"{"a":{"b":1},"cc":1}"#,
        r#"{"a":[1]}"#,
        r#"{"a":{"b":[1]}}"#,
        r#"{"a":{"b":{}}}"#,
        r#"{"a/b":1}"#,
        r#"{"a.b":1}"#,
        r#"{"c":1}"#,
        r#"{"a":{"b":1},"":1}"#,
        r#"{"a":{"b":1},"c/d":1}"#,
    ] {
        assert!(!covers(entry, arguments), "{arguments}");
    }
    let wide: Vec<String> = (0..300).map(|number| format!("\"f{number}\":1")).collect();
    assert!(!covers(entry, &format!("{{\"a\":{{\"b\":1}},{}}}", wide.join(","))));
    let Ok(entry) = NarrowEntry::parse(entry) else { unreachable!("it is one") };
    let Ok(document) = Document::parse(r#"{"a":{"b":1}}"#, Limits::DEFAULT) else { unreachable!("it is JSON") };
    for (server, tool) in [("notes", "Write"), ("Notes", "write"), ("notes", "writ"), ("other", "write")] {
        assert!(!entry.covers(server, tool, Some(document.root())), "{server}:{tool}");
    }
    assert!(!entry.covers("notes", "write", None));
}

#[test]
fn review_3_the_rule_is_cedar_and_strictly_typed() {
    let text = r#"notes:write where {"/path":{"path":"src"},"/text":"free"}"#;
    let rule = NarrowEntry::parse(text).ok().and_then(|entry| entry.rule_text()).unwrap_or_default();
    for words in [
        "permit",
        r#"resource == Mcp::Tool::"notes:write""#,
        r#"["/path", "/text"].containsAll(context.names)"#,
        r#"context.path.hasTag("/path") && context.path.getTag("/path").contains("src")"#,
    ] {
        assert!(rule.contains(words), "{words}: {rule}");
    }
}

#[test]
fn review_3_what_a_person_chooses_covers_the_call_or_is_refused() {
    let arguments = r#"{"path":"src/a.rs","n":5,"text":"long","deep":{"x":"y"}}"#;
    let Ok(document) = Document::parse(arguments, Limits::DEFAULT) else { unreachable!("it is JSON") };
    let choose = |conditions: &[&str], free: &[&str]| {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let chosen = Narrowing { conditions: texts(conditions), free: texts(free) };
        NarrowEntry::choose(("notes", "write"), document.root(), &chosen)
            .map(|entry| entry.to_string())
            .map_err(|fault| fault.to_string())
    };
    assert_eq!(
        choose(&["path=path:src", "n=equals:5", "/deep/x=equals:y"], &["text"]).as_deref(),
        Ok(r#"notes:write where {"/deep/x":{"equals":"y"},"/n":{"equals":5},"/path":{"path":"src"},"/text":"free"}"#)
    );
    for (conditions, free, words) in [
        (vec!["path=path:src"], vec!["n", "text"], "`/deep/x`, of which nothing is said"),
        (vec!["path=path:lib"], vec!["n", "text", "deep"], "`/path` of this call is not so"),
        (vec!["path=path:src", "other=equals:1"], vec!["n", "text", "deep"], "`/other` of this call is not so"),
        (vec!["path=path:src", "path=equals:x"], vec![], "named twice"),
        (vec!["path=path:src"], vec!["path"], "named twice"),
        (vec!["path=like:src"], vec![], "is no kind"),
        (vec!["path"], vec![], "not NAME=KIND:VALUE"),
        (vec!["path=path:src/../x"], vec![], "is no plain path"),
        (vec![], vec!["path", "n", "text", "deep"], "the whole tool"),
        (vec!["n=equals:6"], vec!["path", "text", "deep"], "is not so"),
        (vec!["deep=equals:x"], vec!["path", "text", "n"], "of which nothing is said"),
    ] {
        let refused = choose(&conditions, &free).err().unwrap_or_default();
        assert!(refused.contains(words), "{words}: {refused}");
    }
}

#[test]
fn review_3_suggestions_say_where_a_call_goes() {
    let suggested = |arguments: &str| -> Vec<String> {
        let Ok(document) = Document::parse(arguments, Limits::DEFAULT) else { return Vec::new() };
        let found = NarrowEntry::suggest(("notes", "write"), document.root());
        for (chosen, entry) in &found {
            let again = NarrowEntry::choose(("notes", "write"), document.root(), chosen);
            assert_eq!(again.as_ref(), Ok(entry));
            assert!(entry.covers("notes", "write", Some(document.root())));
        }
        found.into_iter().map(|(_, entry)| entry.to_string().replace("notes:write where ", "")).collect()
    };
    assert_eq!(
        suggested(r#"{"path":"src/x/a.rs","text":"hello"}"#),
        [
            r#"{"/path":{"path":"src/x"},"/text":{"equals":"hello"}}"#,
            r#"{"/path":{"path":"src/x"},"/text":"free"}"#,
            r#"{"/path":"free","/text":{"equals":"hello"}}"#,
        ]
    );
    assert_eq!(suggested(r#"{"url":"https://a.test/x"}"#), [r#"{"/url":{"host":"a.test"}}"#]);
    assert_eq!(suggested(r#"{"branch":"feature/x"}"#), [r#"{"/branch":{"branch":"feature"}}"#]);
    assert_eq!(suggested(r#"{"list":[1],"n":1}"#), [r#"{"/list":"free","/n":{"equals":1}}"#]);
    assert!(suggested(r#"{"list":[1]}"#).is_empty() && suggested("{}").is_empty() && suggested("[]").is_empty());
    let many: Vec<String> = (0..30).map(|number| format!("\"f{number}\":{number}")).collect();
    assert!(suggested(&format!("{{{}}}", many.join(","))).len() <= 6);
}

/// A path as the most obliging reader could take it: decoded twice, folded, both slashes, dots resolved.
fn obliging(text: &str) -> String {
    use unicode_normalization::UnicodeNormalization;
    let mut text: String = text.nfkc().collect();
    for _ in 0..2 {
        text = text.replace("%2e", ".").replace("%2E", ".").replace("%2f", "/").replace("%2F", "/").replace("%25", "%");
    }
    let mut parts: Vec<&str> = Vec::new();
    let text = text.replace('\\', "/");
    for part in text.split('/').map(|part| part.trim_end_matches(' ')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4_000) })]

    #[test]
    fn review_3_no_reader_finds_a_covered_path_elsewhere(text in r"(src)?[a./\\%2eE5~ \u{ff0e}\u{2024}\u{2025}\u{2215}-]{0,10}") {
        if Likeness::Path.of_text(&text).contains(&"src".to_owned()) {
            prop_assert!(obliging(&text).starts_with("src/"), "{text:?}");
        }
    }

    #[test]
    fn review_3_plain_paths_are_covered_as_their_text_says(text in "/?[ab]{1,2}(/[ab]{1,2}){0,3}", directory in "/?[ab]{1,2}(/[ab]{1,2}){0,1}") {
        let is_below = text.starts_with(&format!("{directory}/"));
        prop_assert_eq!(Likeness::Path.of_text(&text).contains(&directory), is_below);
        let is_branch = !text.starts_with('/') && (is_below || text == directory);
        prop_assert_eq!(Likeness::Branch.of_text(&text).contains(&directory), is_branch);
    }

    #[test]
    fn review_3_no_reader_finds_a_covered_address_elsewhere(text in r"(https?://)?[ab.:@/\\?#%4 \t-]{0,12}") {
        // A text in which no host is found is covered by nothing.
        for host in Likeness::Host.of_text(&text) {
            // Read by hand, and as generously as can be: whatever could end or begin a host does.
            let rest = text.split_once("://").map_or(&*text, |(_, rest)| rest);
            for end in [&['/', '?', '#'][..], &['/', '?', '#', '\\'], &['/', '\\', '?', '#', ' ', '\t', '%']] {
                let authority = rest.split(end).next().unwrap_or_default();
                let behind_user = authority.rsplit('@').next().unwrap_or_default();
                let name = behind_user.split(':').next().unwrap_or_default();
                prop_assert_eq!(host.split(':').next().unwrap_or_default(), name.to_ascii_lowercase());
            }
        }
    }

    #[test]
    fn review_3_branches_that_are_covered_are_names_git_takes(text in r"[a./@{~^:?*\[\\ \-]{0,8}") {
        for name in Likeness::Branch.of_text(&text) {
            let is_bad = ["..", "//", "@{", "\\", " ", "~", "^", ":", "?", "*", "["].iter().any(|sign| name.contains(sign));
            prop_assert!(!is_bad && !name.starts_with(['/', '.', '-']) && !name.ends_with(['/', '.']), "{name}");
            prop_assert!(name.split('/').all(|part| !part.starts_with('.') && !part.ends_with(".lock")) && name != "@");
            let is_beginning = text.strip_prefix(&name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            prop_assert!(is_beginning);
        }
    }

    #[test]
    fn review_3_any_text_is_compared_as_itself(value in "\\PC{0,20}|[\"'\\\\{}\u{202e}\n\u{1F600}]{0,6}", other in "\\PC{0,3}") {
        prop_assert!(fits("equals", &value, &value));
        prop_assume!(value != other);
        prop_assert!(!fits("equals", &value, &other));
    }

    #[test]
    fn review_3_whatever_is_an_entry_is_well_typed(value in "[a-z/.\"\\\\]{0,6}", kind in 0_usize..4, pointer in "/[a-z~01\"/]{0,4}") {
        let likeness = Likeness::ALL.get(kind).map_or("equals", |likeness| likeness.as_str());
        let text = format!("notes:write where {{{}:{{\"{likeness}\":{}}}}}", quoted(&pointer), quoted(&value));
        if let Ok(entry) = NarrowEntry::parse(&text) {
            prop_assert!(entry.rule().is_some_and(|rule| template::is_well_typed(&rule)), "{text}");
        }
    }
}
