//! What of the disk makes an admin file one that counts, for whoever runs the tests.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use super::read_of;

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[test]
fn allow_10_an_admin_file_counts_only_when_its_owner_alone_can_change_it() -> Outcome {
    let directory = tempfile::tempdir()?;
    let place = directory.path().join("admin");
    fs::create_dir(&place)?;
    let path = place.join("admin.json");
    fs::write(&path, "{}")?;
    let owner = fs::metadata(&path)?.uid();
    let refusal = |owner: u32| read_of(owner, &path).err().map(|fault| fault.to_string()).unwrap_or_default();
    let set = |path: &std::path::Path, mode: u32| fs::set_permissions(path, Permissions::from_mode(mode));
    set(&path, 0o644)?;
    set(&place, 0o755)?;
    assert_eq!(read_of(owner, &path)?, b"{}");
    assert!(refusal(owner + 1).contains(&format!("belongs to user {owner}, not to root")));
    for mode in [0o666, 0o664, 0o646] {
        set(&path, mode)?;
        assert!(refusal(owner).contains(&format!("can be changed by others (mode {mode:o})")), "{mode:o}");
    }
    set(&path, 0o600)?;
    assert_eq!(refusal(owner), "");
    set(&place, 0o777)?;
    assert!(refusal(owner).contains("directory can be changed by everyone (mode 777)"), "{}", refusal(owner));
    // Also where a link in a good directory leads there.
    let good = directory.path().join("good");
    fs::create_dir(&good)?;
    set(&good, 0o755)?;
    std::os::unix::fs::symlink(&path, good.join("admin.json"))?;
    let linked = read_of(owner, &good.join("admin.json")).err().map(|fault| fault.to_string()).unwrap_or_default();
    assert!(linked.contains("directory can be changed by everyone"), "{linked}");
    Ok(())
}
