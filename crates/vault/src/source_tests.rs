//! Sources: what a configuration may say, and that each gives its key, or says clearly why not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use super::{Asking, KeySource, SourceError, Supplies};
use crate::kit::{KNOWN, Outcome, Process, known_master, tells_of};
use crate::{Backend, KEY_FILE, Ring, RingError, StoredKey};

fn error(source: &str, process: &Process, stored: &[StoredKey]) -> Outcome<SourceError> {
    let source: KeySource = source.parse()?;
    source.obtain(process, stored).err().ok_or_else(|| format!("{source} gave a key").into())
}

#[test]
fn a_configuration_names_one_of_seven_sources() -> Outcome {
    let good = [
        ("auto", KeySource::Auto),
        ("keyring", KeySource::Keyring),
        ("file:/etc/a b:c.key", KeySource::File(PathBuf::from("/etc/a b:c.key"))),
        ("file:master.key", KeySource::File(PathBuf::from("master.key"))),
        ("env:TOOLWARDEN_KEY", KeySource::Environment("TOOLWARDEN_KEY".to_owned())),
        ("passphrase", KeySource::Passphrase),
        ("memory", KeySource::Memory),
        ("plaintext", KeySource::Plaintext),
    ];
    for (text, source) in good {
        assert_eq!(text.parse::<KeySource>()?, source);
        assert_eq!(source.to_string(), text);
    }
    let bad = [
        ("", "allowed are auto, keyring, file:PATH"),
        ("keyrng", "did you mean `keyring`?"),
        ("File:/a", "did you mean `file:PATH`?"),
        ("plain", "allowed are"),
        ("auto:", "did you mean `auto`?"),
        ("file", "it needs a path"),
        ("file:", "it needs a path"),
        ("env:", "it needs the name"),
        ("env:A B", "letters, digits and `_`"),
        ("env:1A", "letters, digits and `_`"),
        ("a\nb", "allowed are"),
    ];
    for (text, said) in bad {
        let error = text.parse::<KeySource>().err().ok_or(text)?.to_string();
        assert!(error.contains(said) && error.contains("plaintext") && !error.contains('\n'), "{error}");
    }
    Ok(())
}

#[test]
fn vault_6_a_key_in_the_place_of_a_name_is_not_shown() -> Outcome {
    let digits: String = KNOWN.iter().map(|byte| format!("{byte:02x}")).collect();
    for text in [format!("env:{digits}"), format!("env:{}", digits.replacen('3', "b", 1)), digits] {
        let error = text.parse::<KeySource>().err().ok_or("taken for a name")?;
        assert!(!tells_of(&format!("{error} {error:?}"), &KNOWN), "{error}");
    }
    Ok(())
}

#[test]
fn vault_4_a_named_file_is_made_owner_only_and_found_again() -> Outcome {
    let process = Process::new()?;
    let path = process.place("keys/deep/a.key");
    let source: KeySource = format!("file:{}", path.display()).parse()?;
    let made = source.obtain(&process, &[])?;
    assert_eq!((made.backend(), made.is_protected()), (Backend::File, true));
    assert_eq!(fs::metadata(&path)?.permissions().mode() & 0o777, 0o600);
    assert_eq!(source.obtain(&process, &[])?.mark(), made.mark());
    assert!(!process.place("config").exists());
    KeySource::File("b.key".into()).obtain(&process, &[])?;
    assert!(process.place("config/b.key").is_file(), "a relative path starts in the configuration's directory");
    Ok(())
}

#[test]
fn vault_4_a_missing_file_is_never_made_beside_stored_keys() -> Outcome {
    let process = Process::new()?;
    let (_, stored) = Ring::first(&KeySource::Auto.obtain(&process, &[])?)?;
    let file = process.place("config").join(KEY_FILE);
    fs::rename(&file, process.place("moved"))?;
    for source in ["auto", "file:master.key"] {
        let error = error(source, &process, std::slice::from_ref(&stored))?.to_string();
        assert!(error.contains("no new key was made") && error.contains(&stored.sealed_by()?.short()), "{error}");
        assert!(!file.exists());
    }
    fs::rename(process.place("moved"), &file)?;
    let back = KeySource::Auto.obtain(&process, std::slice::from_ref(&stored))?;
    assert_eq!(Ring::open(&back, &[stored])?.current(), 1);
    Ok(())
}

#[test]
fn vault_4_a_variable_holds_the_key_and_is_never_shown() -> Outcome {
    let digits: String = KNOWN.iter().map(|byte| format!("{byte:02x}")).collect();
    let process = Process::new()?.with_variable("KEY", &digits);
    let master = KeySource::Environment("KEY".to_owned()).obtain(&process, &[])?;
    assert_eq!(master.backend(), Backend::Environment);
    assert_eq!(master.mark(), known_master(Backend::File)?.mark(), "the same key, wherever it comes from");
    assert!(!tells_of(&format!("{master:?} {}", master.mark()), &KNOWN));
    let said = error("env:OTHER", &process, &[])?.to_string();
    assert!(said.contains("`OTHER` is not set"), "{said}");
    for text in [format!("{digits}0"), format!("x{digits}"), "0".repeat(64), String::new()] {
        let process = Process::new()?.with_variable("KEY", &text);
        let error = error("env:KEY", &process, &[])?;
        assert!(error.to_string().contains("`KEY` holds no key"), "{error}");
        assert!(!tells_of(&format!("{error} {error:?}"), &KNOWN), "{error:?}");
    }
    // The name of the variable is nobody's to guess.
    let (_, stored) = Ring::first(&master)?;
    let said = error("auto", &process, &[stored])?.to_string();
    assert!(said.contains("`env:NAME`"), "{said}");
    Ok(())
}

#[test]
fn vault_4_a_passphrase_opens_what_it_sealed_and_no_other_does() -> Outcome {
    let process = Process::new()?.typing("correct horse");
    let master = KeySource::Passphrase.obtain(&process, &[])?;
    assert_eq!(master.backend(), Backend::Passphrase);
    let (_, stored) = Ring::first(&master)?;
    let stored = [stored];
    for source in [KeySource::Passphrase, KeySource::Auto] {
        assert!(Ring::open(&source.obtain(&process, &stored)?, &stored).is_ok());
    }
    let wrong = KeySource::Passphrase.obtain(&Process::new()?.typing("correct horsf"), &stored)?;
    let error = Ring::open(&wrong, &stored).err().ok_or("opened")?;
    assert!(matches!(error, RingError::WrongMaster { .. }) && error.to_string().contains("passphrase"), "{error}");
    assert!(!error.to_string().contains("horse") && !error.to_string().contains("argon2id"), "{error}");
    Ok(())
}

#[test]
fn a_passphrase_is_asked_for_only_where_it_can_help() -> Outcome {
    assert!(matches!(error("passphrase", &Process::new()?.typing(""), &[])?, SourceError::EmptyPassphrase));
    let nobody = Process::new()?;
    let said = error("passphrase", &nobody, &[])?.to_string();
    assert!(said.contains("nobody is here"), "{said}");
    let (_, stored) = Ring::first(&known_master(Backend::File)?)?;
    let process = Process::new()?.typing("correct horse");
    assert!(matches!(error("passphrase", &process, &[stored])?, SourceError::Missing { .. }));
    assert_eq!(process.asked.load(Ordering::Relaxed), 0);
    Ok(())
}

#[test]
fn a_passphrase_is_asked_for_as_new_or_as_known() -> Outcome {
    struct Listening(Process, std::sync::Mutex<Vec<Asking>>);
    impl Supplies for Listening {
        fn variable(&self, _: &str) -> Option<toolwarden_core::Secret> {
            None
        }
        fn passphrase(&self, asking: Asking) -> Result<toolwarden_core::Secret, String> {
            self.1.lock().map_err(|_| "poisoned")?.push(asking);
            self.0.passphrase(asking)
        }
        fn directory(&self) -> &std::path::Path {
            self.0.directory()
        }
    }
    let process = Listening(Process::new()?.typing("correct horse"), std::sync::Mutex::new(Vec::new()));
    let (_, stored) = Ring::first(&KeySource::Passphrase.obtain(&process, &[])?)?;
    KeySource::Auto.obtain(&process, &[stored])?;
    assert_eq!(process.1.into_inner()?, [Asking::New, Asking::Known]);
    Ok(())
}

#[test]
fn vault_4_a_key_of_memory_is_another_one_in_each_process() -> Outcome {
    let process = Process::new()?;
    let (first, second) = (KeySource::Memory.obtain(&process, &[])?, KeySource::Memory.obtain(&process, &[])?);
    assert_ne!(first.mark(), second.mark());
    assert_eq!((first.backend(), first.is_protected()), (Backend::Memory, true));
    let (_, stored) = Ring::first(&first)?;
    for source in ["memory", "auto"] {
        let said = error(source, &process, std::slice::from_ref(&stored))?.to_string();
        assert!(said.contains("gone with the process"), "{said}");
    }
    assert!(!process.place("config").exists(), "nothing is written");
    Ok(())
}

#[test]
fn vault_4_plaintext_is_the_same_everywhere_and_says_that_it_protects_nothing() -> Outcome {
    let (process, other) = (Process::new()?, Process::new()?);
    let master = KeySource::Plaintext.obtain(&process, &[])?;
    assert_eq!((master.backend().as_str(), master.is_protected()), ("basic_text", false));
    let (_, stored) = Ring::first(&master)?;
    let stored = [stored];
    assert!(Ring::open(&KeySource::Plaintext.obtain(&other, &stored)?, &stored).is_ok());
    // Nobody gets there without saying so.
    let said = error("auto", &other, &stored)?.to_string();
    assert!(said.contains("choose `plaintext`"), "{said}");
    for backend in Backend::ALL {
        assert_eq!(backend.is_protected(), backend != Backend::BasicText);
    }
    Ok(())
}
