//! The newcomer's walk of the README, as it stands there.

use std::path::Path;
use std::process::Command;

use crate::house::House;
use crate::server::Server;

/// The block behind the mark in the README.
fn walk() -> String {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let text = std::fs::read_to_string(readme).unwrap_or_default();
    let block = text.split_once("<!-- walk -->\n```sh\n").and_then(|(_, rest)| rest.split_once("```"));
    block.map(|(block, _)| block.to_owned()).unwrap_or_default()
}

#[test]
fn the_walk_of_the_readme_goes_as_it_says() {
    let house = House::new();
    let server = Server::start(&house);
    let walk = walk().replace("127.0.0.1:8665", server.address());
    assert!(walk.contains("policy rollback"), "{walk}");
    let directory = Path::new(env!("CARGO_BIN_EXE_toolwarden")).parent().map(Path::to_path_buf).unwrap_or_default();
    let ran = Command::new("bash")
        .args(["-eu", "-c", &walk])
        .current_dir(house.path("space"))
        .env_clear()
        .env("HOME", house.path("home"))
        .env("PATH", format!("{}:/usr/bin:/bin", directory.display()))
        .output();
    let Ok(ran) = ran else { unreachable!("bash runs") };
    let (said, told) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{said}\n{told}");
    let answers: Vec<&str> = said.lines().filter(|line| line.starts_with("{\"jsonrpc\"")).collect();
    let note = |answer: &&str| answer.contains("kept by the demo server");
    let unknown = |answer: &&str| answer.to_lowercase().contains("unknown tool");
    assert!(
        matches!(answers.as_slice(), [read, write, off, again] if note(read) && unknown(write) && unknown(off) && note(again)),
        "{said}"
    );
    for words in [
        "scope",
        "deny",
        "allow",
        "switch `notes:read_note` off (a walk)",
        "+ enabled: false",
        "as it was at version 4",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
}
