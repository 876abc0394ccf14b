//! `[store] url`: a database of one's own choosing, shared by several data directories.

use std::collections::BTreeSet;

use toolwarden_test_postgres::Cluster;

use crate::house::House;
use crate::server::Server;

const CONFIG: &str = "home/.config/toolwarden/toolwarden.toml";

/// Who recorded what is in the index, as somebody reads it.
fn nodes(house: &House) -> BTreeSet<String> {
    let rows = house.json(&["audit", "query"]);
    let node = |row: &serde_json::Value| row.get("node").and_then(|node| node.as_str()).map(str::to_owned);
    rows.as_array().into_iter().flatten().filter_map(node).collect()
}

#[test]
fn gate_15_several_data_directories_deliver_to_one_postgres() {
    let cluster = Cluster::start();
    assert!(cluster.is_ok(), "{cluster:?}");
    let Ok(cluster) = cluster else { unreachable!("asserted") };
    let houses = [House::new(), House::new()];
    for (before, house) in houses.iter().enumerate() {
        house.write(CONFIG, &format!("[store]\nurl = \"{}\"\n", cluster.url()));
        let server = Server::start(house);
        assert_eq!(house.run(&["allow", "notes:read"]).code, 0);
        assert_eq!(nodes(house).len(), before + 1);
        drop(server);
    }
    for house in &houses {
        assert_eq!(nodes(house).len(), 2, "{:?}", nodes(house));
        let whole = house.run(&["audit", "verify"]);
        assert!(whole.code == 0 && whole.out.starts_with("serve-1  whole: "), "{}", whole.out);
        assert!(!house.path("home/.local/share/toolwarden/toolwarden.sqlite").exists());
    }
}

#[test]
fn a_database_that_cannot_be_reached_is_named_without_its_password() {
    let house = House::new();
    let url = "postgres://warden:hunter2@127.0.0.1:1/gate";
    house.write(CONFIG, &format!("[store]\nurl = \"{url}\"\n"));
    for command in [&["audit", "query"][..], &["doctor"], &["serve"]] {
        let ran = house.run(command);
        let said = format!("{}{}", ran.out, ran.err);
        assert!(ran.code == 1 && said.contains("postgres://127.0.0.1:1/gate"), "{command:?}: {said}");
        assert!(said.contains("cannot be reached") && !said.contains("hunter2"), "{command:?}: {said}");
    }
    house.write(CONFIG, "[store]\nurl = \"${env:NOBODY_SET_THIS}\"\n");
    let ran = house.run(&["audit", "query"]);
    assert!(ran.code == 2 && ran.err.contains("`${env:NOBODY_SET_THIS}` has no value here"), "{}", ran.err);
}

#[test]
fn perm_4_a_workspace_does_not_choose_the_store() {
    let house = House::new();
    house.write("space/toolwarden.toml", "[store]\nurl = \"sqlite:stolen.sqlite\"\n");
    assert_eq!(house.run(&["trust", "."]).code, 0);
    assert_eq!(house.run(&["audit", "query"]).code, 0);
    assert!(!house.path("space/stolen.sqlite").exists());
    let ran = house.run(&["lint"]);
    assert!(format!("{}{}", ran.out, ran.err).contains("`url` counts only in the user's own config"), "{}", ran.out);
    house.write(CONFIG, "[store]\nurl = \"sqlite:mine.sqlite\"\n");
    assert_eq!(house.run(&["audit", "query"]).code, 0);
    assert!(house.path("home/.config/toolwarden/mine.sqlite").exists(), "relative to the config that says it");
}
