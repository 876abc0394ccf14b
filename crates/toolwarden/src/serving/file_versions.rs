//! Policy files as versions of the policy (SELF-2): a change of files that is put in force is a version in the store, by the
//! person who asked for it (`allow`, `trust`), else by the author `file`.
//!
//! A version keeps the digest and the size of a file, and its text where that cannot hold a secret: rules, modes and
//! permissions. Configs and client files can, so of these the digest alone tells that they changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Value, json};
use toolwarden_core::Digest;
use toolwarden_core::name::shown;
use toolwarden_core::records::{Kind, Place};
use toolwarden_store::State;
use toolwarden_store::state::{Author, Committed};

use crate::environment;

/// The author of a change that nobody asked for, and where it comes from.
const FILE: &str = "file";
/// The record of trusted files: the clerk writes it, so that it is no file to a person.
const TRUST: &str = "trust.json";
/// Longer texts are kept by their digest alone.
const LONGEST_TEXT: usize = 64 * 1024;
/// As much of what changed as the history tells.
const LONGEST_SUMMARY: usize = 400;

/// What of files is kept, by path. Files that are not there are not in it.
pub type Contents = BTreeMap<PathBuf, Value>;

/// What files hold now. Blocks.
pub fn contents(files: &[PathBuf]) -> Contents {
    let of = |path: &PathBuf| {
        let bytes = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).and(std::fs::read(path).ok())?;
        let mut content = json!({ "sha256": Digest::of_bytes(&bytes).to_string(), "bytes": bytes.len() });
        let text = String::from_utf8(bytes).ok().filter(|text| text.len() <= LONGEST_TEXT && is_shown(path));
        if let (Some(text), Some(content)) = (text, content.as_object_mut()) {
            content.insert("text".to_owned(), text.lines().collect());
        }
        Some((path.clone(), content))
    };
    files.iter().filter_map(of).collect()
}

/// Whether the text of a file can be shown to whoever may see the history.
fn is_shown(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name == "permissions.json" || name == ".roomodes" || name.ends_with(".cedar")
}

/// Stores what changed as a version, by the one who asked for it; none where nothing did.
///
/// # Errors
/// It cannot be stored.
pub async fn store(
    state: &State,
    (before, after): (&Contents, &Contents),
    wider: &[String],
    by: Option<Author>,
) -> Result<Option<Committed>> {
    let paths = before.keys().chain(after.keys());
    let changed: std::collections::BTreeSet<&PathBuf> =
        paths.filter(|path| before.get(*path) != after.get(*path)).collect();
    if changed.is_empty() {
        return Ok(None);
    }
    let mut draft = state.change().await?;
    for path in &changed {
        let place = Place::of_house(Kind::File, path.to_string_lossy());
        match after.get(*path) {
            Some(content) => draft.put(place, content.clone()),
            None => draft.remove(place),
        }
    }
    let unknown = || Author { user: FILE.to_owned(), door: FILE.to_owned(), time: environment::now() };
    let author = by.unwrap_or_else(unknown);
    let (trust, others): (Vec<&PathBuf>, Vec<&PathBuf>) = changed.iter().partition(|path| path.ends_with(TRUST));
    let names: Vec<String> = others.iter().map(|path| shown(&path.to_string_lossy()).into_owned()).collect();
    let mut said = Vec::new();
    // Which ones, says the record of events.
    said.extend((!trust.is_empty()).then(|| "other workspace files are trusted (`toolwarden trust`)".to_owned()));
    said.extend((!names.is_empty()).then(|| format!("changed by file: {}", names.join(", "))));
    let mut summary = said.join("; ");
    if !wider.is_empty() {
        summary.push_str(&format!("; newly allowed: {}", shown(&wider.join("; "))));
    }
    summary.truncate(summary.floor_char_boundary(LONGEST_SUMMARY));
    Ok(Some(draft.commit(&author, &summary, None).await?))
}

#[cfg(test)]
#[test]
fn self_2_texts_that_may_hold_secrets_are_kept_by_their_digest_alone() {
    for (path, is_so) in [
        ("/h/.cursor/permissions.json", true),
        ("/h/rules/a.cedar", true),
        ("/w/.roomodes", true),
        ("/h/toolwarden.toml", false),
        ("/w/.mcp.json", false),
        ("/w/.cursor/mcp.json", false),
        ("/h/permissions.json.toml", false),
    ] {
        assert_eq!(is_shown(Path::new(path)), is_so, "{path}");
    }
}
