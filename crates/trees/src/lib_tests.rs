//! What becomes a tree, with which places, and what does not.

use super::{Format, Node, Place, Value, parse};

fn at(node: Option<&Node>) -> Option<(u32, u32)> {
    node.map(|node| (node.place.line, node.place.column))
}

fn fault(text: &[u8], format: Format) -> Option<(Place, String)> {
    parse(text, format).err().map(|error| (error.place, error.message))
}

#[test]
fn places_are_right_in_every_format_also_with_crlf_and_byte_order_mark() {
    let jsonc = "\u{feff}{ // ä\r\n  \"ä\": 1, \"b\": [true,\r\n null,],\r\n}";
    let tree = parse(jsonc.as_bytes(), Format::Jsonc).ok();
    assert_eq!(at(tree.as_ref().and_then(|node| node.get("ä"))), Some((2, 8)));
    assert_eq!(at(tree.as_ref().and_then(|node| node.get("b"))), Some((2, 16)));

    let yaml = "\u{feff}ä: 1\r\nb:\r\n  - x\r\n  - {c: ~}\r\n";
    let tree = parse(yaml.as_bytes(), Format::Yaml).ok();
    assert_eq!(at(tree.as_ref().and_then(|node| node.get("b"))), Some((3, 3)));

    let toml = "\u{feff}a = 1\r\n[b]\r\n\"ä\" = [1,\r\n  2]\r\n";
    let tree = parse(toml.as_bytes(), Format::Toml).ok();
    let list = tree.as_ref().and_then(|node| node.get("b")?.get("ä"));
    assert_eq!(at(list), Some((3, 7)));
    let second = list.and_then(|node| match &node.value {
        Value::List(items) => items.get(1),
        _ => None,
    });
    assert_eq!(at(second), Some((4, 3)));
}

#[test]
fn duplicate_keys_name_both_places() {
    let found = fault(b"{\"a\": 1,\n \"b\": {\"c\": 1, \"c\": 2}}", Format::Jsonc);
    assert_eq!(found, Some((Place { line: 2, column: 16 }, "duplicate key `c`, first at line 2, column 8".to_owned())));
    let found = fault(b"a: 1\nb: 2\na: 3\n", Format::Yaml);
    assert_eq!(found, Some((Place { line: 3, column: 1 }, "duplicate key `a`, first at line 1, column 1".to_owned())));
    let found = fault(b"[x]\nkey = 1\nother = 2\nkey = 3\n", Format::Toml);
    assert_eq!(
        found,
        Some((Place { line: 4, column: 1 }, "duplicate key `key`, first at line 2, column 1".to_owned()))
    );
    let found = fault(b"[x.y]\nkey = 1\n[z]\n[x.y]\n", Format::Toml);
    assert_eq!(found.map(|(place, _)| place.line), Some(4));
}

#[test]
fn deep_nesting_is_refused_by_a_message_not_by_the_stack() {
    let deep = |open: &str, times: usize| open.repeat(times);
    for (text, format) in [
        (deep("[", 1_000_000), Format::Jsonc),
        (deep("{\"a\":", 500_000), Format::Jsonc),
        (deep("[", 100_000), Format::Yaml),
        (deep("- ", 1_000_000), Format::Yaml),
        (deep("? ", 100_000), Format::Yaml),
        (deep("{a: ", 100_000), Format::Yaml),
        (format!("a = {}", deep("[", 1_000_000)), Format::Toml),
        (format!("a = {}", deep("{a=", 500_000)), Format::Toml),
        (format!("{}a = 1", deep("a.", 1_000_000)), Format::Toml),
        (format!("[{}a]", deep("a.", 1_000_000)), Format::Toml),
        (deep("[", 1_000_000), Format::YamlOrJson),
    ] {
        let message = fault(text.as_bytes(), format).map(|(_, message)| message).unwrap_or_default();
        assert!(
            ["deep", "recursion", "a key that is"].iter().any(|word| message.contains(word)),
            "{format:?}: {message}"
        );
    }
}

#[test]
fn wide_files_are_refused() {
    let wide = format!("[{}1]", "1,".repeat(1_500_000));
    for format in [Format::Jsonc, Format::Yaml] {
        let message = fault(wide.as_bytes(), format).map(|(_, message)| message).unwrap_or_default();
        assert!(message.contains("200000"), "{format:?}: {message}");
    }
    let toml = "a = 1\n".repeat(600_000);
    assert!(fault(toml.as_bytes(), Format::Toml).is_some_and(|(_, message)| message.contains("200000")));
}

#[test]
fn yaml_that_means_more_than_it_shows_is_refused() {
    for (text, word) in [
        ("a: &x 1\nb: *x\n", "anchor"),
        ("a: !!str 1\n", "tag"),
        ("a: !!python/object:os.system ls\n", "tag"),
        ("a: {<<: {b: 1}}\n", "merge key"),
        ("? [a, b]\n: 1\n", "key that is"),
        ("a: 1\n---\nb: 2\n", "second document"),
    ] {
        let message = fault(text.as_bytes(), Format::Yaml).map(|(_, message)| message).unwrap_or_default();
        assert!(message.contains(word), "{text:?}: {message}");
    }
}

#[test]
fn yaml_scalars_follow_the_core_schema() {
    let text = "a: yes\nb: true\nc: 0x10\nd: 1e3\ne: '1'\nf: 09:00-17:00\ng: -5\nh: .5\ni: 1_000\n";
    let tree = parse(text.as_bytes(), Format::Yaml).ok();
    let value = |key: &str| tree.as_ref().and_then(|node| node.get(key)).map(|node| node.value.clone());
    assert_eq!(value("a"), Some(Value::String("yes".to_owned())));
    assert_eq!(value("b"), Some(Value::Bool(true)));
    assert_eq!(value("c"), Some(Value::String("0x10".to_owned())));
    assert_eq!(value("d"), Some(Value::Float(1000.0)));
    assert_eq!(value("e"), Some(Value::String("1".to_owned())));
    assert_eq!(value("f"), Some(Value::String("09:00-17:00".to_owned())));
    assert_eq!(value("g"), Some(Value::Integer(-5)));
    assert_eq!(value("h"), Some(Value::Float(0.5)));
    assert_eq!(value("i"), Some(Value::String("1_000".to_owned())));
}
