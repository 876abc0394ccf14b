//! What a running server tells of itself: to Prometheus, to whoever asks whether it is ready, to doctor, in its log.

use crate::house::House;
use crate::server::{Server, eventually};

const CONFIG: &str = "home/.config/toolwarden/toolwarden.toml";

#[test]
fn a_refused_policy_is_seen_everywhere_until_the_next_good_one() {
    let house = House::new();
    house.write(CONFIG, "");
    let server = Server::start(&house);
    let doctor = || house.run(&["doctor", "--listen", "127.0.0.1:0"]).out;
    assert!(server.page("/readyz").contains("\"refused\":null"));
    assert!(server.page("/metrics").contains("toolwarden_policy_is_current 1\n"));
    assert!(doctor().contains("judges by the policy of these files"), "{}", doctor());

    house.write(CONFIG, "[gateway]\nlistens = \"127.0.0.1:1\"\n");
    assert!(eventually(|| server.page("/metrics").contains("toolwarden_policy_is_current 0\n")));
    let ready = server.page("/readyz");
    assert!(
        ready.starts_with("HTTP/1.1 200") && ready.contains("toolwarden.toml:2") && ready.contains("listens"),
        "{ready}"
    );
    let page = server.page("/metrics");
    assert!(page.contains("toolwarden_policy_reloads_total{result=\"refused\"} 1\n"), "{page}");
    assert!(!page.contains("listens"), "{page}");
    let told = doctor();
    assert!(told.contains("keeps its former policy since") && told.contains("listens"), "{told}");
    assert!(house.read("server.log").contains("the former one stays in force"));

    house.write(CONFIG, "[gateway]\n");
    assert!(eventually(|| server.page("/metrics").contains("toolwarden_policy_is_current 1\n")));
    assert!(server.page("/readyz").contains("\"refused\":null"));
    assert!(doctor().contains("judges by the policy of these files"), "{}", doctor());
    server.stop();
}

#[test]
fn children_are_counted_while_they_run() {
    let house = House::new();
    let server = Server::start(&house);
    let page = server.page("/metrics");
    assert!(page.contains("toolwarden_server_lines{server=\"notes\"} 1\n"), "{page}");
    assert!(page.contains("toolwarden_build_info{version=\""), "{page}");
    assert!(eventually(|| server.page("/metrics").contains("toolwarden_journal_undelivered_records ")));
    server.stop();
}
