//! Names and URIs go out and come back, and never to another server.

use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

use super::{Alias, LONGEST, plain};

#[test]
fn aliases_are_plain() {
    for (name, alias) in [
        ("github", "github"),
        ("my server!", "my_server"),
        ("a__b", "a_b"),
        ("_x_", "x"),
        ("über", "ber"),
        ("..", "server"),
        ("a-b", "a-b"),
    ] {
        assert_eq!(plain(name), alias, "{name}");
    }
}

proptest! {
    #[test]
    fn names_come_back(server in "[ -~äß_]{1,80}", tool in "[a-zA-Z0-9_.äß-]{1,200}") {
        let alias = Alias(plain(&server));
        prop_assert!(!alias.0.contains("__") && !alias.0.starts_with('_') && !alias.0.ends_with('_'));
        let exposed = alias.expose(&tool);
        prop_assert!(exposed.len() <= LONGEST);
        let revealed = alias.reveal(&exposed, || vec![tool.clone()]);
        prop_assert_eq!(revealed.as_deref(), Some(tool.as_str()));
    }

    #[test]
    fn no_other_server_answers_to_a_name(one in "[a-z]{1,3}(_[a-z]{1,2})?", other in "[a-z]{1,3}(_[a-z]{1,2})?", tool in "[a-z_]{1,6}") {
        let (one, other) = (Alias(plain(&one)), Alias(plain(&other)));
        let exposed = one.expose(&tool);
        if one != other {
            prop_assert_eq!(other.reveal(&exposed, || vec![tool.clone()]), None);
        }
    }

    #[test]
    fn uris_come_back(uri in "([a-z]{2,8}|ui)://[ -~]{0,40}") {
        let alias = Alias("files".to_owned());
        let exposed = alias.expose_uri(&uri);
        if !super::is_web(&uri) {
            let revealed = alias.reveal_uri(&exposed);
            prop_assert_eq!(revealed.as_deref(), Some(uri.as_str()));
            prop_assert!(Alias("file".to_owned()).reveal_uri(&exposed).is_none());
        }
    }
}

#[test]
fn aliases_differ_whatever_the_case() {
    let first = Alias::among("Notes", &[]);
    let second = Alias::among("notes", std::slice::from_ref(&first));
    let third = Alias::among("NOTES", &[first.clone(), second.clone()]);
    assert_eq!([first.as_str(), second.as_str(), third.as_str()], ["Notes", "notes-2", "NOTES-3"]);
}
