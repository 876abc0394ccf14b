//! What of a launch can be read, and that what cannot be read still counts.

use toolwarden_vault::FileKeyring;

use super::*;

/// With the shape of a real key, and nobody's.
const SHAPED: &str = "ghp_x7Kd92LmQp4RtV8wYz1AbC3dEf5GhJ6kN0sU";

fn with_veil<T>(look: impl FnOnce(&Veil<'_>) -> T) -> T {
    let Ok(directory) = tempfile::tempdir() else { unreachable!("there is room for a directory") };
    let Ok(keyring) = FileKeyring::open(&directory.path().join("keys")) else { unreachable!("a key is made") };
    look(&Veil::new(&keyring))
}

fn arguments(veil: &Veil<'_>, given: &[&str]) -> Vec<String> {
    veil.arguments(&given.iter().map(|argument| (*argument).to_owned()).collect::<Vec<_>>())
}

#[test]
fn values_behind_names_that_mean_secrets_are_marks_and_the_rest_is_as_it_was() {
    with_veil(|veil| {
        let mark = veil.mark("hunter2");
        for (given, shown) in [
            (vec!["--api-key", "hunter2", "serve"], vec!["--api-key", &mark, "serve"]),
            (vec!["--Auth-Token=hunter2"], vec![&*format!("--Auth-Token={mark}")]),
            (vec!["-e", "DB_PASSWORD=hunter2"], vec!["-e", &*format!("DB_PASSWORD={mark}")]),
            (vec!["--env=CLIENT_SECRET=hunter2"], vec![&*format!("--env=CLIENT_SECRET={mark}")]),
            (vec!["--no-token", "--port", "80"], vec!["--no-token", "--port", "80"]),
            (vec!["--token", "${env:TOKEN}"], vec!["--token", "${env:TOKEN}"]),
            (
                vec!["-y", "@scope/server@1.2.3", "/home/ada/notes"],
                vec!["-y", "@scope/server@1.2.3", "/home/ada/notes"],
            ),
        ] {
            assert_eq!(arguments(veil, &given), shown);
        }
    });
}

#[test]
fn what_has_the_shape_of_a_secret_is_a_mark_wherever_it_stands() {
    with_veil(|veil| {
        for given in [SHAPED.to_owned(), format!("run --with {SHAPED} now"), format!("https://h/{SHAPED}/mcp")] {
            let shown = veil.words(&given);
            assert!(!shown.contains(SHAPED) && shown.contains(&veil.mark(SHAPED)), "{shown}");
        }
    });
}

#[test]
fn of_addresses_the_place_and_the_names_can_be_read() {
    with_veil(|veil| {
        let mark = |value: &str| veil.mark(value);
        let shown = veil.words("https://ada:pw@h.example:8443/mcp?key=abc&mode=x&bare&empty=#part");
        let expected = format!(
            "https://{}@h.example:8443/mcp?key={}&mode={}&{}&empty=#{}",
            mark("ada:pw"),
            mark("abc"),
            mark("x"),
            mark("bare"),
            mark("part")
        );
        assert_eq!(shown, expected);
        for plain in ["https://tools.example.com/mcp", "http://127.0.0.1:8080", "https://h/mcp?key=${env:KEY}"] {
            assert_eq!(veil.words(plain), plain);
        }
        let argued = veil.words("--url=https://h/mcp?key=abc");
        assert_eq!(argued, format!("--url=https://h/mcp?key={}", mark("abc")));
    });
}

#[test]
fn a_text_does_not_pass_for_the_mark_of_another() {
    with_veil(|veil| {
        let mark = veil.mark(SHAPED);
        assert_ne!(veil.words(&mark), veil.words(SHAPED));
        assert_ne!(veil.words(&format!("run {mark}")), veil.words(&format!("run {SHAPED}")));
    });
}

#[test]
fn very_long_arguments_are_read_to_their_end() {
    let long = "a=".repeat(1_000_000);
    assert_eq!(with_veil(|veil| veil.words(&long)), long);
}
