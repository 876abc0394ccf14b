//! The key file: made owner-only, the same for everybody, refused when anything about it is off.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use super::{KEY_FILE, KeyFileError};
use crate::key_text::KeyBytes;

type Outcome = Result<(), Box<dyn std::error::Error>>;

struct Place {
    _root: tempfile::TempDir,
    directory: PathBuf,
    file: PathBuf,
}

fn read_or_create(directory: &Path) -> Result<KeyBytes, KeyFileError> {
    super::read_or_create(&directory.join(KEY_FILE))
}

fn place() -> Result<Place, std::io::Error> {
    let root = tempfile::tempdir()?;
    let directory = root.path().join("deep/config");
    Ok(Place { file: directory.join(KEY_FILE), directory, _root: root })
}

#[test]
fn vault_4_the_key_is_made_once_and_owner_only() -> Outcome {
    let place = place()?;
    let first = read_or_create(&place.directory)?;
    assert_eq!(read_or_create(&place.directory)?, first);
    assert_eq!(fs::metadata(&place.file)?.permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(&place.directory)?.permissions().mode() & 0o777, 0o700);
    let names = fs::read_dir(&place.directory)?.count();
    assert_eq!(names, 1, "no temporary file is left");
    assert_ne!(read_or_create(&place.directory.join("other"))?, first);
    Ok(())
}

#[test]
fn processes_that_start_at_once_end_with_the_same_key() -> Outcome {
    for _ in 0..20 {
        let place = place()?;
        let directory = &place.directory;
        let keys: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| read_or_create(directory).ok())).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok().flatten()).collect()
        });
        assert_eq!(keys.len(), 8);
        assert!(keys.windows(2).all(|pair| pair.first() == pair.last()));
    }
    Ok(())
}

#[test]
fn self_3_a_file_open_to_others_is_refused() -> Outcome {
    let place = place()?;
    read_or_create(&place.directory)?;
    for mode in [0o640, 0o604, 0o660, 0o601] {
        fs::set_permissions(&place.file, Permissions::from_mode(mode))?;
        let error = read_or_create(&place.directory).err();
        assert!(matches!(&error, Some(KeyFileError::WrongMode { wanted: 0o600, .. })), "{mode:o}: {error:?}");
        assert!(error.is_some_and(|error| error.to_string().contains("chmod 600")));
    }
    Ok(())
}

#[test]
fn self_3_a_directory_others_can_change_is_refused() -> Outcome {
    let place = place()?;
    read_or_create(&place.directory)?;
    fs::set_permissions(&place.directory, Permissions::from_mode(0o770))?;
    assert!(matches!(read_or_create(&place.directory), Err(KeyFileError::WrongMode { wanted: 0o700, .. })));
    // Others may look into a configuration directory; they cannot read the key there.
    fs::set_permissions(&place.directory, Permissions::from_mode(0o755))?;
    assert!(read_or_create(&place.directory).is_ok());
    Ok(())
}

#[test]
fn self_3_links_and_other_kinds_of_files_are_refused() -> Outcome {
    let place = place()?;
    read_or_create(&place.directory)?;
    let moved = place.directory.join("moved");
    fs::rename(&place.file, &moved)?;
    symlink(&moved, &place.file)?;
    assert!(matches!(read_or_create(&place.directory), Err(KeyFileError::Link { .. })));
    fs::remove_file(&moved)?;
    assert!(matches!(read_or_create(&place.directory), Err(KeyFileError::Link { .. })), "a link that leads nowhere");
    fs::remove_file(&place.file)?;
    fs::create_dir(&place.file)?;
    assert!(matches!(read_or_create(&place.directory), Err(KeyFileError::NotRegular { .. })));
    fs::remove_dir(&place.file)?;
    let _listener = UnixListener::bind(&place.file)?;
    assert!(matches!(read_or_create(&place.directory), Err(KeyFileError::NotRegular { .. })));
    Ok(())
}

#[test]
fn a_file_in_place_of_the_directory_is_refused() -> Outcome {
    let root = tempfile::tempdir()?;
    let path = root.path().join("config");
    fs::write(&path, "")?;
    assert!(matches!(read_or_create(&path), Err(KeyFileError::NotADirectory { .. })));
    Ok(())
}

#[test]
fn self_3_a_foreign_file_is_refused() -> Outcome {
    let place = place()?;
    read_or_create(&place.directory)?;
    if !rustix::process::geteuid().is_root() {
        // Only root can give files away; everybody else meets a file of root's.
        let error = super::check_owner(&fs::metadata("/")?, Path::new("/"));
        assert!(matches!(error, Err(KeyFileError::WrongOwner { found: 0, .. })), "{error:?}");
        return Ok(());
    }
    std::os::unix::fs::chown(&place.file, Some(12345), None)?;
    assert!(matches!(read_or_create(&place.directory), Err(KeyFileError::WrongOwner { found: 12345, .. })));
    std::os::unix::fs::chown(&place.file, Some(rustix::process::geteuid().as_raw()), None)?;
    std::os::unix::fs::chown(&place.directory, Some(12345), None)?;
    assert!(matches!(read_or_create(&place.directory), Err(KeyFileError::WrongOwner { found: 12345, .. })));
    Ok(())
}

#[test]
fn vault_4_a_malformed_key_is_refused_kept_and_never_shown() -> Outcome {
    let place = place()?;
    read_or_create(&place.directory)?;
    let good = fs::read_to_string(&place.file)?;
    let digits = good.trim_start_matches("toolwarden-key-1:").trim_end();
    let cases = [
        String::new(),
        digits.to_owned(),
        good.trim_end().to_owned(),
        format!("{good}\n"),
        format!("{good}{good}"),
        good.replace("key-1", "key-2"),
        format!("toolwarden-key-1:{}\n", digits.to_uppercase().replace(|c: char| c.is_ascii_digit(), "A")),
        format!("toolwarden-key-1:{}\n", "0".repeat(64)),
        format!("toolwarden-key-1:{}\n", digits.get(1..).unwrap_or_default()),
    ];
    for text in cases {
        fs::write(&place.file, &text)?;
        let error = read_or_create(&place.directory).err();
        assert!(matches!(error, Some(KeyFileError::Malformed { .. })), "{error:?}");
        let told = error.map(|error| format!("{error} {error:?}")).unwrap_or_default();
        assert!(!told.contains(digits) && told.contains("backup"), "{told}");
        assert_eq!(fs::read_to_string(&place.file)?, text, "nothing is destroyed");
    }
    Ok(())
}

#[test]
fn reading_makes_nothing() -> Outcome {
    let place = place()?;
    assert!(super::read(&place.file)?.is_none());
    assert!(!place.directory.exists());
    let made = super::read_or_create(&place.file)?;
    assert!(super::read(&place.file)?.is_some_and(|read| *read == *made));
    Ok(())
}
