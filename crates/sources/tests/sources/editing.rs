//! ALLOW-4: entries are added and removed where they take effect, and nothing else changes.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use toolwarden_sources::List;
use toolwarden_sources::edit::{Added, EditError, Write, add_entry};
use toolwarden_sources::records::StoredUser;

use crate::home::{Home, Outcome};

const FILE: &str = "home/.cursor/permissions.json";

#[test]
fn allow_4_without_a_file_the_stored_list_is_used() -> Outcome {
    let home = Home::new()?;
    let added = home.add("me", List::Mcp, "github:create_issue")?;
    assert!(matches!(added, Added::Added { place, .. } if place == "stored lists of me"));
    assert_eq!(home.user("me").mcp_allowlist, ["github:create_issue"]);
    assert!(!home.path(FILE).exists());
    let removed = home.remove("me", List::Mcp, "GitHub:create_issue")?;
    assert_eq!((removed.places.len(), removed.still_granted_by.len()), (1, 0));
    assert!(home.user("me").mcp_allowlist.is_empty());
    Ok(())
}

#[test]
fn allow_4_a_file_that_defines_the_key_is_edited_in_place() -> Outcome {
    let home = Home::new()?;
    home.write(FILE, "{\n  // mine\n  \"mcpAllowlist\": [\n    \"a:b\" // why\n  ]\n}\n")?;
    fs::set_permissions(home.path(FILE), Permissions::from_mode(0o640))?;
    home.add("me", List::Mcp, "c:d")?;
    assert_eq!(home.read(FILE)?, "{\n  // mine\n  \"mcpAllowlist\": [\n    \"a:b\", // why\n    \"c:d\"\n  ]\n}\n");
    assert_eq!(fs::metadata(home.path(FILE))?.permissions().mode() & 0o777, 0o640);
    // The other key is not defined, so that list stays stored.
    let added = home.add("me", List::Terminal, "git:status")?;
    assert!(matches!(added, Added::Added { place, .. } if place == "stored lists of me"));
    // Nobody else's list is in that file.
    let added = home.add("anna", List::Mcp, "e:f")?;
    assert!(matches!(added, Added::Added { place, .. } if place == "stored lists of anna"));
    assert!(!home.read(FILE)?.contains("e:f"));
    Ok(())
}

#[test]
fn allow_4_what_is_there_or_covered_changes_nothing_and_is_named() -> Outcome {
    let home = Home::new()?;
    let text = "{\"mcpAllowlist\": [\"GitHub:x\", \"linear:*\"], \"terminalAllowlist\": [\"git\", \"npm:install*\"]}";
    home.write(FILE, text)?;
    let place = home.path(FILE).display().to_string();
    for (list, entry, expected) in [
        (List::Mcp, "github:X", Added::AlreadyThere { entry: "GitHub:x".to_owned(), place: place.clone() }),
        (List::Mcp, "linear:y", Added::CoveredBy { entry: "linear:*".to_owned(), place: place.clone() }),
        (List::Terminal, "git:push", Added::CoveredBy { entry: "git".to_owned(), place: place.clone() }),
        (List::Terminal, "npm:install --foo", Added::CoveredBy { entry: "npm:install*".to_owned(), place }),
    ] {
        assert_eq!(home.add("me", list, entry)?, expected);
    }
    assert_eq!(home.read(FILE)?, text);
    Ok(())
}

#[test]
fn allow_4_invalid_entries_and_broken_files_change_nothing_and_say_why() -> Outcome {
    let home = Home::new()?;
    for (list, entry) in [(List::Mcp, "github"), (List::Mcp, "a:b*"), (List::Terminal, "*"), (List::Terminal, "")] {
        let error = home.add("me", list, entry).err();
        assert!(matches!(error, Some(EditError::Invalid { .. })), "{entry}");
    }
    assert_eq!(home.user("me"), StoredUser::default());
    home.write(FILE, "{\"mcpAllowlist\": [")?;
    let error = home.add("me", List::Mcp, "a:b").err();
    assert!(matches!(&error, Some(EditError::Broken { findings, .. }) if !findings.is_empty()));
    assert_eq!(home.read(FILE)?, "{\"mcpAllowlist\": [");
    Ok(())
}

#[test]
fn allow_4_where_only_the_workspace_defines_the_key_nothing_changes_and_the_ways_are_named() -> Outcome {
    let home = Home::new()?;
    home.write("work/.cursor/permissions.json", "{\"mcpAllowlist\": [\"w:*\"]}")?;
    home.trust()?;
    let refused = home.add("me", List::Mcp, "a:b").err().map(|error| error.to_string()).unwrap_or_default();
    for part in ["defines this list", "nothing was changed", "toolwarden trust", "--workspace"] {
        assert!(refused.contains(part), "{refused}");
    }
    assert!(!home.path(FILE).exists());
    assert!(home.user("me").mcp_allowlist.is_empty());
    // The user's file exists, without this key: it must not begin to define it either.
    home.write(FILE, "{\"terminalAllowlist\": []}")?;
    assert!(matches!(home.add("me", List::Mcp, "a:b"), Err(EditError::OnlyWorkspace { .. })));
    assert_eq!(home.read(FILE)?, "{\"terminalAllowlist\": []}");
    // What is in that list already needs no entry.
    let place = home.path("work/.cursor/permissions.json").display().to_string();
    assert_eq!(home.add("me", List::Mcp, "w:x")?, Added::CoveredBy { entry: "w:*".to_owned(), place });
    // Elsewhere the same entry goes to the stored list, whatever that file says.
    let added = home.add("anna", List::Mcp, "a:b")?;
    assert!(matches!(added, Added::Added { place, .. } if place == "stored lists of anna"));
    let removed = home.remove("me", List::Mcp, "w:x")?;
    assert!(removed.places.is_empty());
    assert_eq!(removed.still_granted_by.len(), 1, "{removed:?}");
    Ok(())
}

#[test]
fn allow_4_removing_says_what_still_grants() -> Outcome {
    let home = Home::new()?;
    home.write(FILE, "{\"mcpAllowlist\": [\"a:b\", \"*:b\", \"A:b\"]}")?;
    let removed = home.remove("me", List::Mcp, "a:b")?;
    assert_eq!(home.read(FILE)?, "{\"mcpAllowlist\": [\"*:b\"]}");
    assert_eq!(removed.still_granted_by, [("*:b".to_owned(), home.path(FILE).display().to_string())]);
    let removed = home.remove("me", List::Mcp, "x:y")?;
    assert_eq!((removed.places.len(), removed.still_granted_by.len()), (0, 0));
    Ok(())
}

#[test]
fn allow_4_add_then_remove_leaves_every_byte_on_the_disk() -> Outcome {
    let home = Home::new()?;
    let text = "\u{feff}{\r\n  // head\r\n  \"mcpAllowlist\": [ // open\r\n    \"a:b\" /* x */\r\n    // tail\r\n  ], // close\r\n} // end";
    home.write(FILE, text)?;
    home.add("me", List::Mcp, "c:d")?;
    let loaded = home.load()?;
    let entries: Vec<_> = loaded.input.local.here().flat_map(|file| file.mcp_allowlist.iter().flatten()).collect();
    assert_eq!(entries.iter().map(|entry| entry.value.as_str()).collect::<Vec<_>>(), ["a:b", "c:d"]);
    home.remove("me", List::Mcp, "c:d")?;
    assert_eq!(home.read(FILE)?, text);
    Ok(())
}

#[test]
fn allow_4_a_linked_file_stays_a_link() -> Outcome {
    let home = Home::new()?;
    home.write("dotfiles/permissions.json", "{\"mcpAllowlist\": []}")?;
    symlink(home.path("dotfiles/permissions.json"), home.path(FILE))?;
    home.add("me", List::Mcp, "a:b")?;
    assert!(fs::symlink_metadata(home.path(FILE))?.file_type().is_symlink());
    assert_eq!(home.read("dotfiles/permissions.json")?, "{\"mcpAllowlist\": [\"a:b\"]}");
    Ok(())
}

#[test]
fn allow_4_many_writers_lose_nothing() -> Outcome {
    let home = Home::new()?;
    home.write(FILE, "{\"mcpAllowlist\": []}")?;
    let locations = &home.locations;
    let all = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                scope.spawn(move || {
                    (0..10).all(|number| {
                        let entry = format!("w{writer}:t{number}");
                        let whose = ("me", &mut StoredUser::default());
                        add_entry(locations, whose, (List::Mcp, &entry), Write::Yes).is_ok()
                    })
                })
            })
            .collect();
        writers.into_iter().all(|writer| writer.join().unwrap_or(false))
    });
    assert!(all);
    let loaded = home.load()?;
    let entries: usize = loaded.input.local.here().flat_map(|file| file.mcp_allowlist.iter()).map(Vec::len).sum();
    assert_eq!(entries, 80);
    let left: Vec<_> = fs::read_dir(home.path("home/.cursor"))?.flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["permissions.json"], "no temporary file is left");
    Ok(())
}

#[test]
fn a_lock_somebody_else_holds_is_told() -> Outcome {
    let home = Home::new()?;
    let held = toolwarden_sources::DataLock::take(&home.locations.data_dir, std::time::Duration::ZERO)?;
    let second = toolwarden_sources::DataLock::take(&home.locations.data_dir, std::time::Duration::from_millis(30));
    assert!(second.err().is_some_and(|error| error.to_string().contains("in use by another toolwarden process")));
    drop(held);
    assert!(toolwarden_sources::DataLock::take(&home.locations.data_dir, std::time::Duration::ZERO).is_ok());
    Ok(())
}
