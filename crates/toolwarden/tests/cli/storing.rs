//! `[store] url`: a database of one's own choosing, shared by several data directories.

use std::collections::BTreeSet;

use toolwarden_test_postgres::Cluster;

use crate::house::House;
use crate::server::Server;

const CONFIG: &str = "home/.config/toolwarden/toolwarden.toml";
const KEY: &str = "home/.config/toolwarden/master.key";

/// Who recorded what is in the index, as somebody reads it.
fn nodes(house: &House) -> BTreeSet<String> {
    let rows = house.json(&["audit", "query"]);
    let node = |row: &serde_json::Value| row.get("node").and_then(|node| node.as_str()).map(str::to_owned);
    rows.as_array().into_iter().flatten().filter_map(node).collect()
}

/// Whoever shares a store needs the key it is sealed with.
fn share_key(houses: &[House], house: &House) {
    let [from, to] = [houses.first(), Some(house)].map(|house| house.map(|house| house.path(KEY)).unwrap_or_default());
    assert!(std::fs::copy(from, to).is_ok());
}

#[test]
fn gate_15_several_data_directories_deliver_to_one_postgres() {
    let cluster = Cluster::start();
    assert!(cluster.is_ok(), "{cluster:?}");
    let Ok(cluster) = cluster else { unreachable!("asserted") };
    let houses = [House::new(), House::new()];
    for (before, house) in houses.iter().enumerate() {
        house.write(CONFIG, &format!("[store]\nurl = \"{}\"\n", cluster.url()));
        if before > 0 {
            let refused = house.run(&["allow", "notes:read"]);
            assert!(refused.code == 1 && refused.err.contains("the stored keys are sealed by"), "{}", refused.err);
            share_key(&houses, house);
        }
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

#[test]
fn vault_4_another_key_opens_nothing_and_destroys_nothing() {
    let house = House::new();
    assert_eq!(house.run(&["allow", "notes:read"]).code, 0);
    let key = house.read(KEY);
    let other = key.replace(|digit: char| digit.is_ascii_hexdigit() && !"toolwarden-key-1:".contains(digit), "7");
    assert_ne!(key, other);
    house.write(KEY, &other);
    for command in [&["allow", "notes:write"][..], &["audit", "verify"], &["doctor"], &["serve"]] {
        let ran = house.run(command);
        let said = format!("{}{}", ran.out, ran.err);
        assert!(ran.code == 1 && said.contains("sealed by"), "{command:?}: {said}");
    }
    house.write(KEY, &key);
    assert_eq!((house.run(&["audit", "verify"]).code, house.run(&["allow", "notes:write"]).code), (0, 0));
}

#[test]
fn vault_4_the_key_is_kept_where_the_config_says() {
    let house = House::new();
    house.write(CONFIG, "[vault]\nkey = \"file:keys/mine.key\"\n");
    assert_eq!(house.run(&["allow", "notes:read"]).code, 0);
    assert!(house.path("home/.config/toolwarden/keys/mine.key").exists() && !house.path(KEY).exists());
    assert_eq!(house.run(&["doctor"]).code, 0);
    // Named no more, it is asked for, and none is made in its place.
    house.write(CONFIG, "");
    let ran = house.run(&["allow", "notes:write"]);
    assert!(ran.code == 1 && ran.err.contains("no new key was made") && !house.path(KEY).exists(), "{}", ran.err);
    let house = House::new();
    house.write(CONFIG, "[vault]\nkey = \"plaintext\"\n");
    assert_eq!(house.run(&["allow", "notes:read"]).code, 0);
    let doctor = house.run(&["doctor"]);
    assert!(
        doctor.out.contains("basic_text") && doctor.out.contains("whoever can read the database"),
        "{}",
        doctor.out
    );
    house.write(CONFIG, "[vault]\nkey = \"memory\"\n");
    let ran = house.run(&["allow", "notes:write"]);
    assert!(ran.code == 2 && ran.err.contains("outlives the process"), "{}", ran.err);
}

#[test]
fn gate_15_a_record_without_its_store_is_checked_by_the_key_and_that_is_told() {
    let house = House::new();
    assert_eq!(house.run(&["allow", "notes:read"]).code, 0);
    let store = house.path("home/.local/share/toolwarden/toolwarden.sqlite");
    assert!(std::fs::remove_file(&store).is_ok());
    let ran = house.run(&["audit", "verify"]);
    assert!(ran.code == 0 && ran.err.contains("may go unnoticed") && ran.err.contains("is gone"), "{}", ran.err);
    assert!(!store.exists(), "looking makes nothing");
}

#[test]
fn self_7_a_new_store_has_a_root_of_its_own_and_its_record_outlives_it() {
    let house = House::new();
    assert_eq!(house.run(&["allow", "notes:read"]).code, 0);
    let data = "home/.local/share/toolwarden";
    let copy = house.read(&format!("{data}/roots.json"));
    assert!(copy.contains("\"state\": \"current\"") && copy.contains("\"id\": 1"), "{copy}");
    // With the key file and without what the store sealed by it nothing can be checked: the file is no root.
    let store = house.path(&format!("{data}/toolwarden.sqlite"));
    assert!(std::fs::remove_file(&store).is_ok());
    assert!(std::fs::remove_file(house.path(&format!("{data}/roots.json"))).is_ok());
    let ran = house.run(&["audit", "verify"]);
    assert!(ran.code == 1, "{} {}", ran.out, ran.err);
    // With the copy a record is checked, and continued under the same roots.
    house.write(&format!("{data}/roots.json"), &copy);
    let owner_only = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    assert!(std::fs::set_permissions(house.path(&format!("{data}/roots.json")), owner_only).is_ok());
    let ran = house.run(&["audit", "verify"]);
    assert!(ran.code == 0, "{} {}", ran.out, ran.err);
    assert_eq!(house.run(&["allow", "notes:write"]).code, 0);
    assert_eq!(house.read(&format!("{data}/roots.json")), copy);
    assert_eq!(house.run(&["audit", "verify"]).code, 0);
}
