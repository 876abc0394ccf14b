//! What is a location, what is not, and that no password shows.

use std::path::{Path, PathBuf};

use super::{Location, LocationError, file_url};

fn file(text: &str) -> Option<PathBuf> {
    match Location::parse(text, Path::new("/data")) {
        Ok(Location::File(path)) => Some(path),
        _ => None,
    }
}

#[test]
fn files_count_from_the_base() {
    assert_eq!(file("sqlite:a.db").as_deref(), Some(Path::new("/data/a.db")));
    assert_eq!(file("sqlite:/x/a.db").as_deref(), Some(Path::new("/x/a.db")));
    assert_eq!(file("sqlite:///x/a.db").as_deref(), Some(Path::new("/x/a.db")));
}

#[test]
fn what_is_no_location_is_said_without_repeating_it() {
    let cases = [
        ("", LocationError::Scheme),
        ("mysql://root:hunter2@host/x", LocationError::Scheme),
        ("sqlite:", LocationError::NoPath),
        ("sqlite://", LocationError::NoPath),
        ("postgres://user:hunter2@host:port/x", LocationError::Address),
    ];
    for (text, expected) in cases {
        let found = Location::parse(text, Path::new("/data")).err();
        assert_eq!(found, Some(expected), "{text}");
        assert!(!format!("{found:?}{expected}").contains("hunter2"));
    }
}

#[test]
fn a_password_never_shows() {
    let text = "postgres://warden:hunter2@db.example:5433/gate?sslmode=require&password=hunter2";
    let Ok(location) = Location::parse(text, Path::new("/data")) else { unreachable!("it is a location") };
    assert_eq!(location.to_string(), "postgres://db.example:5433/gate");
    assert!(!format!("{location:?}").contains("hunter2"));
    assert!(matches!(location, Location::Server(server) if server.url() == text));
}

#[test]
fn every_path_reaches_the_driver_as_it_is() {
    assert_eq!(file_url(Path::new("/a b/100%?#.db")), "sqlite:///a%20b/100%25%3F%23.db?mode=rw");
}
