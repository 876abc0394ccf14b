//! Every key that readers take is acted on somewhere: the table names the code outside of the readers, and the next key
//! that is accepted and ignored fails here (SELF-6).

use std::collections::BTreeMap;

use toolwarden_sources::readers::known::{Section, Standing};

use crate::workspace;

const TABLE: &str = include_str!("settings.txt");

/// Section and key, to code and a text of it.
fn rows() -> BTreeMap<(String, String), (String, String)> {
    let mut rows = BTreeMap::new();
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split(" | ").collect();
        let [section, key, file, text] = columns.as_slice() else { unreachable!("four columns: {line}") };
        let key = ((*section).to_owned(), (*key).to_owned());
        assert!(rows.insert(key, ((*file).to_owned(), (*text).to_owned())).is_none(), "twice: {line}");
    }
    rows
}

#[test]
fn self_6_every_key_that_is_used_names_the_code_that_acts_on_it() {
    let mut rows = rows();
    // Sections of the config are tables of their own.
    for section in Section::ALL.into_iter().filter(|section| *section != Section::Config) {
        for (key, standing) in section.rows() {
            let row = rows.remove(&(format!("{section:?}"), (*key).to_owned()));
            match (standing, row) {
                (Standing::Used, Some((file, text))) => {
                    assert!(!file.contains("/readers/") && file.contains("/src/"), "{section:?} {key}: {file}");
                    let source = std::fs::read_to_string(workspace::root().join(&file)).unwrap_or_default();
                    assert!(source.contains(&text), "{section:?} {key}: {file} does not hold `{text}`");
                }
                (Standing::Used, None) => unreachable!("{section:?} `{key}` is accepted, and no code is named for it"),
                (_, row) => assert!(row.is_none(), "{section:?} `{key}` does not act, and code is named for it"),
            }
        }
    }
    assert!(rows.is_empty(), "no reader knows {:?}", rows.keys().collect::<Vec<_>>());
}
