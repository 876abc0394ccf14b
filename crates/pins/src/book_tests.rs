//! Pins on disk and in several processes, what starts a server, and who has looked.

use std::os::unix::fs::MetadataExt;

use toolwarden_core::json::Part;
use toolwarden_core::{Layer, Origin, Secret};
use toolwarden_policy::input::{Declared, Launch, ServerInput};
use toolwarden_sources::{ServerDefinition, WorkspaceTrust};
use toolwarden_vault::FileKeyring;

use super::*;
use crate::{accept, choose, digest_of_waiting, read};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

struct Place {
    locations: Locations,
    keyring: FileKeyring,
    directory: tempfile::TempDir,
}

fn place() -> Place {
    let Ok(directory) = tempfile::tempdir() else { unreachable!("there is room for a directory") };
    let path = directory.path().to_path_buf();
    let Ok(keyring) = FileKeyring::open(&path.join("keys")) else { unreachable!("a key is made") };
    let locations = Locations {
        git_configs: Vec::new(),
        home: path.clone(),
        config_dir: path.join("config"),
        data_dir: path.join("data"),
        config: None,
        working_directory: path.clone(),
        workspace: None,
        user: "ada".to_owned(),
        user_id: std::fs::metadata(&path).map(|found| found.uid()).unwrap_or_default(),
        system_admin_file: None,
        workspace_trust: WorkspaceTrust::default(),
    };
    Place { locations, keyring, directory }
}

fn server(name: &str, arguments: &[&str]) -> ServerDefinition {
    let mut input = ServerInput::new(name, Origin::record(Layer::Config, "test"), Declared::ByOperator);
    let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    input.launch = Launch::Command { command: "run".to_owned(), arguments };
    ServerDefinition::of(input)
}

fn open(place: &Place, definitions: &[ServerDefinition]) -> Book {
    let book = Book::open(Some(place.locations.clone()), definitions, &place.keyring, NOW);
    match book {
        Ok(book) => book,
        Err(error) => unreachable!("{error}"),
    }
}

fn ada() -> Arc<Caller> {
    Arc::new(Caller::local_person("ada"))
}

fn sighting(book: &Book, kind: Kind, page: Part) -> Sighting {
    let after = book.changes_heard("s");
    Sighting { server: "s".into(), kind, caller: ada(), pages: vec![page], is_whole: true, after }
}

fn look(book: &Book, kind: Kind, result: &str) -> Sighted {
    let Ok(page) = Part::composed(result.to_owned()) else { unreachable!("{result} is JSON") };
    let sighting = sighting(book, kind, page);
    match book.sight(&sighting).map_or_else(|| book.record(&sighting, NOW), Ok) {
        Ok(seen) => seen,
        Err(error) => unreachable!("{error}"),
    }
}

/// A person accepts everything that waits, in another process.
fn accepts(place: &Place) {
    let pins = read(&place.locations, "s");
    let chosen = pins.map(|pins| choose(&pins, None, Some(&digest_of_waiting(&pins))));
    let Ok(Ok(chosen)) = chosen else { unreachable!("something waits") };
    assert!(matches!(accept(&place.locations, "s", &chosen, ("ada", NOW)), Ok(Ok(()))));
}

fn standing(book: &Book, tool: &str) -> Definition {
    book.standing("s", Some((Kind::Tool, tool)), &ada())
}

#[test]
fn mode_7_what_starts_a_server_is_pinned_and_a_change_bars_it() {
    let place = place();
    assert!(open(&place, &[server("s", &["1"])]).may_start("s"));
    assert!(open(&place, &[server("s", &["1"])]).may_start("s"));
    let changed = [
        server("s", &["1", "--more"]),
        {
            let mut changed = server("s", &["1"]);
            changed.connection.env.insert("NODE_OPTIONS".to_owned(), Secret::new("--require x".to_owned()));
            changed
        },
        {
            let mut changed = server("s", &["1"]);
            changed.connection.working_directory = Some("elsewhere".to_owned());
            changed
        },
        {
            let mut changed = server("s", &["1"]);
            changed.input.launch = Launch::Url("https://example.com/mcp".to_owned());
            changed
        },
    ];
    for changed in &changed {
        let book = open(&place, &[changed.clone(), server("other", &["1"])]);
        assert!(!book.may_start("s") && book.may_start("other"), "{changed:?}");
        assert_eq!(standing(&book, "any"), Definition::ServerChanged);
        assert_eq!(book.standing("s", None, &ada()), Definition::ServerChanged);
        assert_eq!(book.standing("other", None, &ada()), Definition::Accepted);
        assert!(open(&place, &[server("s", &["1"])]).may_start("s"), "the former one is still accepted");
    }
}

#[test]
fn mode_7_a_barred_server_may_start_once_a_person_accepted_it() {
    let place = place();
    open(&place, &[server("s", &["1"])]);
    let book = open(&place, &[server("s", &["2"])]);
    assert!(!book.may_start("s"));
    accepts(&place);
    assert!(!book.may_start("s"), "not heard of yet");
    assert_eq!(book.refresh(), ["s".into()]);
    assert!(book.may_start("s") && book.refresh().is_empty());
    let third = open(&place, &[server("s", &["3"])]);
    open(&place, &[server("s", &["1"])]);
    assert_eq!(third.refresh(), ["s".into()], "nothing waits any more");
    assert!(!third.may_start("s"), "but what would start it here was never accepted");
}

#[test]
fn values_of_the_environment_are_not_on_record_and_those_of_headers_do_not_count() {
    let place = place();
    let mut with = server("s", &["1"]);
    with.connection.env.insert("TOKEN".to_owned(), Secret::new("planted-secret".to_owned()));
    with.connection.headers.insert("authorization".to_owned(), Secret::new("Bearer planted-secret".to_owned()));
    open(&place, &[with.clone()]);
    let records = std::fs::read_dir(place.directory.path().join("data/pins")).into_iter().flatten().flatten();
    let texts: Vec<String> = records.filter_map(|file| std::fs::read_to_string(file.path()).ok()).collect();
    assert!(texts.len() == 1 && texts.iter().all(|text| text.contains("TOKEN") && !text.contains("planted")));
    with.connection.headers.insert("authorization".to_owned(), Secret::new("another".to_owned()));
    assert!(open(&place, &[with]).may_start("s"));
}

#[test]
fn secrets_in_arguments_and_addresses_are_not_on_record_and_still_count() {
    let with_url = |url: &str| {
        let mut with = server("s", &[]);
        with.input.launch = Launch::Url(url.to_owned());
        with
    };
    for [first, second] in [
        [server("s", &["--api-key", "planted-1"]), server("s", &["--api-key", "planted-2"])],
        [server("s", &["--token=planted-1"]), server("s", &["--token=planted-2"])],
        [with_url("https://planted-1@h/mcp"), with_url("https://planted-2@h/mcp")],
        [with_url("https://h/mcp?key=planted-1"), with_url("https://h/mcp?key=planted-2")],
        [with_url("https://h/mcp#planted-1"), with_url("https://h/mcp#planted-2")],
    ] {
        let place = place();
        assert!(open(&place, std::slice::from_ref(&first)).may_start("s"));
        assert!(open(&place, std::slice::from_ref(&first)).may_start("s"), "it is the same as before");
        assert!(!open(&place, &[second]).may_start("s"), "another secret is another launch");
        let record = std::fs::read_to_string(place.locations.data_dir.join(crate::path("s")));
        assert!(record.as_ref().is_ok_and(|record| !record.contains("planted")), "{record:?}");
    }
}

#[test]
fn what_one_process_accepted_as_found_another_compares_with() {
    let place = place();
    let definitions = [server("s", &[])];
    let (first, second) = (open(&place, &definitions), open(&place, &definitions));
    look(&first, Kind::Tool, r#"{"tools":[{"name":"a","description":"1"}]}"#);
    let seen = look(&second, Kind::Tool, r#"{"tools":[{"name":"a","description":"2"},{"name":"b"}]}"#);
    let before: Arc<str> = r#"{"name":"a","description":"1"}"#.into();
    assert_eq!(seen.shown, [Shown::Instead(before), Shown::Hidden]);
    assert_eq!((standing(&second, "a"), standing(&second, "B")), (Definition::Changed, Definition::New));
    assert_eq!(standing(&first, "a"), Definition::Accepted, "it has not heard of it");
    assert_eq!(first.refresh(), ["s".into()]);
    assert_eq!(standing(&first, "a"), Definition::Changed, "nobody saw an accepted version since");
    look(&first, Kind::Tool, r#"{"tools":[{"name":"a","description":"1"}]}"#);
    assert_eq!(standing(&first, "a"), Definition::Accepted);
}

#[test]
fn what_another_process_put_on_record_first_is_held_here_too() {
    let place = place();
    let definitions = [server("s", &[])];
    let (first, second) = (open(&place, &definitions), open(&place, &definitions));
    let list = |description: &str| format!(r#"{{"tools":[{}]}}"#, tool("a", description));
    look(&first, Kind::Tool, &list("1"));
    look(&second, Kind::Tool, &list("1"));
    look(&first, Kind::Tool, &list("2"));
    look(&second, Kind::Tool, &list("2"));
    assert_eq!(standing(&second, "a"), Definition::Changed);
}

#[test]
fn a_changed_definition_does_not_hide_behind_an_accepted_one_of_the_same_name() {
    let place = place();
    let book = open(&place, &[server("s", &[])]);
    let (one, two) = (r#"{"name":"a","description":"1"}"#, r#"{"name":"a","description":"2"}"#);
    look(&book, Kind::Tool, &format!(r#"{{"tools":[{one}]}}"#));
    for list in [format!(r#"{{"tools":[{one},{two}]}}"#), format!(r#"{{"tools":[{two},{one}]}}"#)] {
        let seen = look(&book, Kind::Tool, &list);
        assert!(seen.shown.iter().all(|shown| !matches!(shown, Shown::Instead(text) if text.contains("2"))));
        assert_eq!(standing(&book, "a"), Definition::Changed);
    }
}

#[test]
fn names_that_differ_in_case_alone_stand_as_the_worse_of_them() {
    for (changed, other) in [("Read", "read"), ("read", "Read")] {
        let place = place();
        let book = open(&place, &[server("s", &[])]);
        let (first, second) = (tool(changed, "1"), tool(changed, "2"));
        look(&book, Kind::Tool, &format!(r#"{{"tools":[{first}]}}"#));
        look(&book, Kind::Tool, &format!(r#"{{"tools":[{second}]}}"#));
        look(&book, Kind::Tool, &format!(r#"{{"tools":[{first},{}]}}"#, tool(other, "1")));
        for spelled in [changed, other] {
            assert_eq!(standing(&book, spelled), Definition::New, "{spelled}: one is accepted, the other is new");
            let beside = file::standing(&place.locations, "s", Some((Kind::Tool, spelled)), Changes::Wait);
            assert!(matches!(beside, Ok(Definition::New)), "{beside:?}");
        }
    }
}

fn tool(name: &str, description: &str) -> String {
    format!(r#"{{"name":"{name}","description":"{description}"}}"#)
}

#[test]
fn a_caller_looks_again_after_the_server_may_have_changed() {
    let place = place();
    let book = open(&place, &[server("s", &[])]);
    assert!(!book.has_looked("s", Kind::Tool, &ada()) && !book.has_baseline("s", Kind::Tool));
    look(&book, Kind::Tool, r#"{"tools":[]}"#);
    assert!(book.has_looked("s", Kind::Tool, &ada()) && book.has_baseline("s", Kind::Tool));
    assert!(!book.has_looked("s", Kind::Tool, &Caller::person("eve")) && !book.has_looked("s", Kind::Prompt, &ada()));
    book.forget_looks("s");
    assert!(!book.has_looked("s", Kind::Tool, &ada()) && book.has_baseline("s", Kind::Tool));
}

#[test]
fn a_list_that_was_asked_for_before_a_change_is_no_look_at_what_changed() {
    let place = place();
    let book = open(&place, &[server("s", &[])]);
    let Ok(page) = Part::composed(r#"{"tools":[]}"#.to_owned()) else { unreachable!("it is JSON") };
    let asked_before = sighting(&book, Kind::Tool, page);
    // The server says that it changed while its answer is on the way.
    book.forget_looks("s");
    assert!(book.record(&asked_before, NOW).is_ok());
    assert!(!book.has_looked("s", Kind::Tool, &ada()));
    look(&book, Kind::Tool, r#"{"tools":[]}"#);
    assert!(book.has_looked("s", Kind::Tool, &ada()));
}

#[test]
fn nobody_waits_for_a_disk_who_only_asks() {
    let place = place();
    let book = Arc::new(open(&place, &[server("s", &[])]));
    look(&book, Kind::Tool, r#"{"tools":[{"name":"a"}]}"#);
    let Ok(held) = toolwarden_sources::stored::lock(&place.locations) else { unreachable!("nobody else has it") };
    let Ok(page) = Part::composed(r#"{"tools":[{"name":"b"}]}"#.to_owned()) else { unreachable!("it is JSON") };
    let (writer, late) = (book.clone(), sighting(&book, Kind::Tool, page));
    let writing = std::thread::spawn(move || writer.record(&late, NOW).is_ok());
    let (asks, answer) = std::sync::mpsc::channel();
    // Nobody answers yet: by then the writer waits for the lock.
    assert!(answer.recv_timeout(std::time::Duration::from_millis(300)).is_err());
    let asker = book.clone();
    let asking = std::thread::spawn(move || {
        let known = asker.has_baseline("s", Kind::Tool) && asker.definitions("s").len() == 1;
        asks.send(known && asker.refresh().is_empty() && asker.waiting("s") == 0)
    });
    let answered = answer.recv_timeout(std::time::Duration::from_secs(3));
    drop(held);
    assert!(matches!(writing.join(), Ok(true)) && asking.join().is_ok());
    assert_eq!(answered, Ok(true), "it was not answered while the lock was held");
    assert_eq!(book.waiting("s"), 1);
}

#[test]
fn what_a_person_accepted_is_taken_over_although_a_list_came_first() {
    let place = place();
    let book = open(&place, &[server("s", &[])]);
    look(&book, Kind::Tool, r#"{"tools":[]}"#);
    look(&book, Kind::Tool, r#"{"tools":[{"name":"a"}]}"#);
    accepts(&place);
    look(&book, Kind::Tool, r#"{"tools":[{"name":"a"},{"name":"b"}]}"#);
    assert_eq!(book.refresh(), ["s".into()], "whoever listens is to be told of it");
    assert!(book.refresh().is_empty());
}

#[test]
fn gate_12_what_was_never_listed_is_new_once_there_is_a_baseline() {
    for kind in [Kind::Tool, Kind::Prompt] {
        let place = place();
        let mut follows = server("s", &[]);
        let list = r#"{"tools":[{"name":"a"}],"prompts":[{"name":"a"}]}"#;
        let book = open(&place, std::slice::from_ref(&follows));
        let stands = |book: &Book, name: &str| book.standing("s", Some((kind, name)), &ada());
        let beside = |changes: Changes| file::standing(&place.locations, "s", Some((kind, "b")), changes);
        assert_eq!(stands(&book, "b"), Definition::Accepted, "nothing is known yet");
        look(&book, kind, list);
        assert_eq!(stands(&book, "a"), Definition::Accepted);
        assert_eq!((stands(&book, "b"), stands(&book, "A")), (Definition::New, Definition::New));
        assert!(matches!(beside(Changes::Wait), Ok(Definition::New)));
        assert!(matches!(beside(Changes::Follow), Ok(Definition::Accepted)));
        assert_eq!(book.standing("s", None, &ada()), Definition::Accepted);
        let again = open(&place, std::slice::from_ref(&follows));
        assert_eq!(stands(&again, "b"), Definition::New, "after a restart, too");
        follows.follows_changes = true;
        assert_eq!(stands(&open(&place, &[follows]), "b"), Definition::Accepted, "nobody has to accept anything");
    }
}

#[test]
fn gate_12_what_is_listed_beyond_what_is_kept_is_new() {
    let place = place();
    let book = open(&place, &[server("s", &[])]);
    let tools: Vec<String> =
        (0..=crate::pins::MOST_DEFINITIONS).map(|number| tool(&format!("t{number}"), "")).collect();
    look(&book, Kind::Tool, &format!(r#"{{"tools":[{}]}}"#, tools.join(",")));
    assert_eq!(standing(&book, "t0"), Definition::Accepted);
    assert_eq!(standing(&book, &format!("t{}", crate::pins::MOST_DEFINITIONS)), Definition::New);
}

#[test]
fn a_record_that_cannot_be_read_is_not_an_empty_one() {
    let place = place();
    let definitions = [server("s", &[])];
    open(&place, &definitions);
    let path = place.locations.data_dir.join(crate::path("s"));
    assert!(std::fs::write(path, "{").is_ok());
    assert!(Book::open(Some(place.locations.clone()), &definitions, &place.keyring, NOW).is_err());
}

fn pinned(place: &Place) -> ServerPins {
    match read(&place.locations, "s") {
        Ok(pins) => pins,
        Err(error) => unreachable!("{error}"),
    }
}

#[test]
fn what_waited_before_changes_were_followed_is_taken_over_at_next_sight() {
    let place = place();
    let mut definition = server("s", &[]);
    let book = open(&place, std::slice::from_ref(&definition));
    let list = |tools: &[String]| format!(r#"{{"tools":[{}]}}"#, tools.join(","));
    look(&book, Kind::Tool, &list(&[tool("a", "1"), tool("b", "1")]));
    look(&book, Kind::Tool, &list(&[tool("a", "2"), tool("b", "2"), tool("left", "1")]));
    look(&book, Kind::Tool, &list(&[tool("a", "1"), tool("b", "2"), tool("new", "1")]));
    assert_eq!(book.waiting("s"), 4);
    definition.follows_changes = true;
    let book = open(&place, &[definition]);
    let seen = look(&book, Kind::Tool, &list(&[tool("a", "1"), tool("b", "2"), tool("new", "1")]));
    assert_eq!(seen.shown, [Shown::AsGiven, Shown::AsGiven, Shown::AsGiven]);
    assert_eq!((book.waiting("s"), pinned(&place).waiting()), (0, 0));
    for name in ["a", "b", "new"] {
        assert_eq!(standing(&book, name), Definition::Accepted, "{name}");
    }
    let names: Vec<String> = pinned(&place).tools.entries.into_keys().collect();
    assert_eq!(names, ["a", "b", "new"], "nobody ever accepted what is left over");
}

#[test]
fn what_a_server_does_not_list_any_more_is_gone_and_stands_as_before() {
    let place = place();
    let definitions = [server("s", &[])];
    let (book, other) = (open(&place, &definitions), open(&place, &definitions));
    let both = r#"{"tools":[{"name":"a"},{"name":"b"}]}"#;
    let gone = || pinned(&place).tools.is_gone("b");
    look(&book, Kind::Tool, both);
    other.refresh();
    look(&other, Kind::Tool, both);
    assert!(!gone());
    look(&book, Kind::Tool, r#"{"tools":[{"name":"a"}]}"#);
    assert!(book.has_unkept_offers() && !gone(), "nobody waits for a disk to look");
    book.keep_offers();
    assert!(book.refresh().is_empty() && !book.has_unkept_offers() && gone());
    assert_eq!(standing(&book, "b"), Definition::Accepted);
    assert!(
        other.refresh().is_empty() && other.has_looked("s", Kind::Tool, &ada()),
        "nobody has to look again for that"
    );
    look(&other, Kind::Tool, both);
    other.keep_offers();
    assert!(!gone());
    let Ok(page) = Part::composed(r#"{"tools":[{"name":"a"}],"nextCursor":"2"}"#.to_owned()) else {
        unreachable!("it is JSON")
    };
    let first = Sighting { is_whole: false, ..sighting(&book, Kind::Tool, page) };
    assert!(book.refresh().is_empty() && book.sight(&first).is_some());
    book.keep_offers();
    assert!(!gone(), "it may be on another page");
}

/// What a book says of `s` once it is open for these servers.
fn turned(place: &Place, book: &Book, definitions: &[ServerDefinition]) -> (bool, Vec<String>) {
    let Ok(next) = book.next(definitions, &place.keyring, NOW) else { unreachable!("it is put on record") };
    let noted = book.take_over(next, NOW).into_iter().map(|(server, noted)| format!("{server} {:?}", noted.how));
    (book.may_start("s"), noted.collect())
}

#[test]
fn mode_7_a_book_that_is_open_turns_to_other_servers_as_one_that_is_opened_for_them() {
    let place = place();
    let book = open(&place, &[server("s", &["1"])]);
    look(&book, Kind::Tool, r#"{"tools":[{"name":"a"}]}"#);
    assert!(book.has_looked("s", Kind::Tool, &ada()));
    // The same once more, and another beside it.
    let both = [server("s", &["1"]), server("t", &["1"])];
    assert_eq!(turned(&place, &book, &both), (true, vec!["t Baseline".to_owned()]));
    assert!(book.has_looked("s", Kind::Tool, &ada()), "it is not disturbed");
    // Put on record is not in force.
    let other = server("s", &["2"]);
    assert!(book.next(std::slice::from_ref(&other), &place.keyring, NOW).is_ok() && book.may_start("s"));
    assert!(!turned(&place, &book, std::slice::from_ref(&other)).0);
    assert_eq!(standing(&book, "a"), Definition::ServerChanged);
    assert!(!book.has_looked("s", Kind::Tool, &ada()) && book.definitions("s").len() == 1);
    // As it was accepted; followed; gone, and back.
    assert!(turned(&place, &book, &[server("s", &["1"])]).0);
    assert!(!turned(&place, &book, std::slice::from_ref(&other)).0);
    let followed = ServerDefinition { follows_changes: true, ..other.clone() };
    assert!(turned(&place, &book, std::slice::from_ref(&followed)).0);
    assert!(!turned(&place, &book, &[server("s", &["3"])]).0 && turned(&place, &book, &[]).0);
    assert!(book.refresh().is_empty(), "nobody looks after what is not there");
    assert!(!turned(&place, &book, &[server("s", &["3"])]).0);
    assert!(turned(&place, &book, std::slice::from_ref(&other)).0, "it was followed once");
}

#[test]
fn mode_7_what_is_kept_nowhere_is_known_as_long_as_the_book_is_open() {
    let place = place();
    let Ok(book) = Book::open(None, &[server("s", &["1"])], &place.keyring, NOW) else { unreachable!("it is opened") };
    look(&book, Kind::Tool, r#"{"tools":[{"name":"a"}]}"#);
    assert!(!turned(&place, &book, &[server("s", &["2"])]).0);
    assert!(turned(&place, &book, &[]).0);
    assert!(turned(&place, &book, &[server("s", &["1"])]).0 && book.definitions("s").len() == 1);
}
