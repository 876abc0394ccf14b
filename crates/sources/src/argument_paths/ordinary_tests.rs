//! The short way finds what the long way finds.

use std::os::unix::fs::symlink;

use proptest::prelude::*;
use toolwarden_policy::shell::Places;

use super::super::Found;
use super::is_ordinary;

#[test]
fn what_can_be_decoded_expanded_or_run_goes_the_long_way() {
    for text in
        ["small", "/some/where/small", "src/a b.txt", "see src/lib.rs, then run it (now)", "a=b;c", "", "..", "../x"]
    {
        assert!(is_ordinary(text), "{text}");
    }
    for text in [
        "~/x",
        "$HOME/x",
        "%2e",
        "a\\x2fb",
        "@file",
        "file:/x",
        "su''b/k",
        "\"x\"",
        "*.rs",
        "a?",
        "[a]",
        "{a,b}",
        "cd sub && ls",
        "pushd sub; ls",
        "`x`",
        "\u{e9}",
        "a\u{0}b",
        &"x".repeat(4_097),
    ] {
        assert!(!is_ordinary(text), "{text}");
    }
}

/// A workspace with a directory, a file, a link to a directory and a link to a file.
fn workspace() -> std::io::Result<tempfile::TempDir> {
    let home = tempfile::tempdir()?;
    let root = home.path().join("w");
    std::fs::create_dir_all(root.join("sub/deep"))?;
    std::fs::write(root.join("sub/file"), "x")?;
    symlink(root.join("sub"), root.join("link"))?;
    symlink("sub/file", root.join("short"))?;
    Ok(home)
}

const WORDS: [&str; 22] = [
    "sub", "link", "short", "file", "deep", "absent", "/", "/", "/", ".", "..", "./", "../", " ", " ", ",", "=", "\n",
    "--- ", "copy ", "a-b_x", "+",
];

proptest! {
    #[test]
    fn self_1_the_short_way_finds_what_the_long_way_finds(
        texts in prop::collection::vec(prop::collection::vec(0..WORDS.len(), 0..7), 1..5),
        is_bound in any::<bool>(),
    ) {
        let home = workspace()?;
        let root = home.path().join("w");
        let places = Places::compile(&[], None);
        let bound = is_bound.then_some(root.as_path());
        let (mut short, mut long) = (Found::new(&places, bound), Found::new(&places, bound));
        for words in texts {
            let text: String = words.into_iter().filter_map(|at| WORDS.get(at).copied()).collect();
            prop_assert!(is_ordinary(&text), "{:?}", text);
            long.in_every_form(&text);
            short.ordinary(text.into());
        }
        prop_assert_eq!(&short.paths, &long.paths);
        prop_assert_eq!(short.join(), long.join());
        prop_assert_eq!(&short.paths, &long.paths);
        short.take_ordinary();
        prop_assert_eq!(&short.pieces, &long.pieces);
        prop_assert_eq!(&short.wholes, &long.wholes);
    }
}
