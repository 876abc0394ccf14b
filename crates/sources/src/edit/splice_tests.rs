//! ALLOW-4: an edit changes one entry and nothing else, whatever the formatting.

use proptest::prelude::{ProptestConfig, any, prop};
use proptest::{prop_assert, prop_assert_eq, proptest};

use super::{append, remove};
use crate::tree::{self, BYTE_ORDER_MARK, Format};

/// The same list in many hands' formatting.
const FORMATTED: [&str; 22] = [
    "{\"mcpAllowlist\":[]}",
    "{\"mcpAllowlist\": [ ]}",
    "{ \"mcpAllowlist\" : [\n  ] }\n",
    "{\n\t\"mcpAllowlist\": [\n\t]\n}",
    "{\"mcpAllowlist\": [\"a:b\"]}",
    "{\"mcpAllowlist\": [ \"a:b\" ]}",
    "{\"mcpAllowlist\": [\"a:b\",]}",
    "{\"mcpAllowlist\": [\"a:b\",\"c:d\"]}",
    "{\"mcpAllowlist\": [\"a:b\" , \"c:d\" , ]}",
    "{\n  \"mcpAllowlist\": [\n    \"a:b\",\n    \"c:d\"\n  ]\n}\n",
    "{\n  \"mcpAllowlist\": [\n    \"a:b\",\n    \"c:d\", // last\n  ],\n}\n",
    "{\r\n  \"mcpAllowlist\": [\r\n    \"a:b\" // only\r\n  ]\r\n}\r\n",
    "\u{feff}{\n  // head\n  \"mcpAllowlist\": [ // open\n    \"a:b\" /* x */ /* y */\n    // tail\n  ] // close\n} // end\n",
    "{\"mcpAllowlist\": [\"a:b\" /* x */]}",
    "{\"mcpAllowlist\": [ /* none */ ]}",
    "{\"mcpAllowlist\": [ // none\n ]}",
    "{\"mcpAllowlist\": [\n  // none\n]}",
    "{\"mcpAllowlist\": [\"a:b\" // c\n]}",
    "{\"mcpAllowlist\": [\"a:b\",\n\"c:d\"]}",
    "{\n    \"terminalAllowlist\": [\"x\"],\n    \"mcpAllowlist\": [\"a:b\",\n                     \"c:d\"],\n    \"autoRun\": {\"allow_instructions\": [\"mcpAllowlist\"]}\n}",
    "{\"mcp\\u0041llowlist\": [\"a:b\"]}",
    "{\"mcpAllowlist\": [\"a:b\", /* before */ \"c:d\" /* after\n two lines */ ]}",
];

/// The list as a reader finds it.
fn entries(text: &str) -> Vec<String> {
    let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let tree = tree::parse(body.as_bytes(), Format::Jsonc).ok().map(|node| node.to_json());
    let list = tree.and_then(|tree| tree.get("mcpAllowlist")?.as_array().cloned()).unwrap_or_default();
    list.iter().filter_map(|entry| entry.as_str().map(str::to_owned)).collect()
}

#[test]
fn a_missing_list_is_added_in_the_style_of_the_file() {
    for (text, expected) in [
        ("{}", "{\"mcpAllowlist\": [\"a:b\"]}"),
        ("{\n}\n", "{\n  \"mcpAllowlist\": [\"a:b\"]\n}\n"),
        ("{\n\t\"x\": 1 // c\n}\n", "{\n\t\"x\": 1, // c\n\t\"mcpAllowlist\": [\"a:b\"]\n}\n"),
        (
            "// head\n{\"x\": {\"mcpAllowlist\": []},}",
            "// head\n{\"x\": {\"mcpAllowlist\": []}, \"mcpAllowlist\": [\"a:b\"],}",
        ),
    ] {
        assert_eq!(append(text, "mcpAllowlist", "a:b").as_deref(), Some(expected));
    }
    assert_eq!(append("[]", "mcpAllowlist", "a:b"), None);
    assert_eq!(append("{\"mcpAllowlist\": 1}", "mcpAllowlist", "a:b"), None);
    assert_eq!(append("{\"mcpAllowlist\": {\"x\": []}}", "mcpAllowlist", "a:b"), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn add_then_remove_leaves_every_byte(entry in "[a-z]{3,8}:[a-zA-Z0-9_. \"\\\\é/-]{1,12}") {
        for text in FORMATTED {
            let added = append(text, "mcpAllowlist", &entry).unwrap_or_default();
            prop_assert_eq!(entries(&added).pop(), Some(entry.clone()), "{:?} became {:?}", text, added);
            let removed = remove(&added, "mcpAllowlist", |found| found == entry);
            prop_assert_eq!(removed.as_deref(), Some(text), "by way of {:?}", added);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any of several entries can be removed, and any added, among any comments and breaks.
    #[test]
    fn the_other_entries_and_all_comments_stay(
        gaps in prop::collection::vec(prop::sample::select(GAPS.to_vec()), 7),
        which in 0..3_usize,
        trailing in any::<bool>(),
    ) {
        let gap = |index: usize| gaps.get(index).copied().unwrap_or_default();
        let comma = if trailing { "," } else { "" };
        let text = format!(
            "{{\"mcpAllowlist\": [{}\"a:0\"{},{}\"a:1\"{},{}\"a:2\"{}{comma}{}]}}",
            gap(0), gap(1), gap(2), gap(3), gap(4), gap(5), gap(6)
        );
        let comments = |text: &str| text.matches("// c").count() + text.matches("/* c").count();
        let gone = format!("a:{which}");
        let after = remove(&text, "mcpAllowlist", |found| found == gone).unwrap_or_default();
        prop_assert_eq!(comments(&after), comments(&text), "{:?} became {:?}", text, after);
        prop_assert_eq!(entries(&after).len(), 2, "{:?} became {:?}", text, after);
        let added = append(&text, "mcpAllowlist", "new:x").unwrap_or_default();
        prop_assert_eq!(comments(&added), comments(&text), "{:?} became {:?}", text, added);
        prop_assert_eq!(entries(&added).len(), 4, "{:?} became {:?}", text, added);
        let back = remove(&added, "mcpAllowlist", |found| found == "new:x").unwrap_or_default();
        prop_assert!(back == text, "{:?} became {:?} by way of {:?}", text, back, added);
    }
}

const GAPS: [&str; 8] = ["", " ", "\n  ", " /* c */ ", " // c\n", "\r\n\t", "\n // c\n ", " /* c\n */ "];
