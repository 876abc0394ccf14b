//! What a tool's name lets expect, and what a misspelt one may mean. Only for suggestions: nothing is permitted because
//! of a name.

use toolwarden_core::name::shown;
use toolwarden_policy::input::ServerInput;
use toolwarden_sources::{misspelt, nearest};

const READING: [&str; 16] = [
    "get", "list", "read", "search", "find", "show", "view", "describe", "fetch", "query", "count", "status", "help",
    "lookup", "inspect", "explain",
];
const DANGEROUS: [&str; 24] = [
    "delete",
    "remove",
    "drop",
    "destroy",
    "purge",
    "truncate",
    "kill",
    "revoke",
    "reset",
    "wipe",
    "admin",
    "exec",
    "execute",
    "eval",
    "shell",
    "sudo",
    "deploy",
    "publish",
    "push",
    "merge",
    "force",
    "grant",
    "uninstall",
    "transfer",
];

/// The known `SERVER:TOOL` that an unknown one is most like, of servers that this user sees.
#[must_use]
pub fn most_alike(servers: &[ServerInput], user: Option<&str>, (server, tool): (&str, &str)) -> Option<String> {
    let visible = || servers.iter().filter(|one| one.owner.as_deref().is_none_or(|owner| Some(owner) == user));
    let Some(found) = visible().find(|one| one.name == server) else {
        let names: Vec<&str> = visible().map(|one| one.name.as_str()).collect();
        return misspelt(server, &names).map(|name| format!("{}:{}", shown(name), shown(tool)));
    };
    let tools: Vec<&str> = found.catalog.iter().flatten().map(|definition| definition.name.as_str()).collect();
    let name = misspelt(tool, &tools).or_else(|| nearest(tool, &tools))?;
    Some(format!("{}:{}", shown(server), shown(name)))
}

/// The next step for a name that nothing has: the name it may be meant for first, then where all of them are.
#[must_use]
pub fn or_nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>, otherwise: &str) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    // Short names are alike by chance.
    let first = |text: &str| text.chars().next().map(|letter| letter.to_ascii_lowercase());
    let close = misspelt(name, &known).or_else(|| nearest(name, &known));
    match close.filter(|close| first(close) == first(name)) {
        Some(close) => format!("did you mean `{}`? Otherwise {otherwise}", shown(close)),
        None => otherwise.to_owned(),
    }
}

/// Whether a known server lists it, or one whose tools nobody saw yet may.
pub(crate) fn may_be_listed(servers: &[ServerInput], (server, tool): (&str, &str)) -> bool {
    servers.iter().filter(|one| one.name.eq_ignore_ascii_case(server)).any(|one| {
        one.catalog.as_ref().is_none_or(|listed| listed.iter().any(|known| known.name.eq_ignore_ascii_case(tool)))
    })
}

/// Its words, in lower case: `createIssue`, `create_issue` and `create.issue` have the same.
fn words(tool: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in tool.chars() {
        let ends = !letter.is_alphanumeric() || (letter.is_uppercase() && was_lower);
        if ends {
            words.push(String::new());
        }
        if letter.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(letter.to_lowercase());
        }
        was_lower = letter.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether it sounds as if it only read.
pub(crate) fn sounds_reading(tool: &str) -> bool {
    let words = words(tool);
    words.iter().any(|word| READING.contains(&word.as_str())) && !sounds_dangerous(tool)
}

/// Whether it sounds as if what it does could hardly be undone.
pub(crate) fn sounds_dangerous(tool: &str) -> bool {
    words(tool).iter().any(|word| DANGEROUS.contains(&word.as_str()))
}

#[cfg(test)]
#[test]
fn names_are_read_in_every_spelling() {
    assert!(["get_issue", "listRepos", "db.read", "Search-Code"].into_iter().all(sounds_reading));
    assert!(["delete_repo", "repoDelete", "db.drop", "force-push"].into_iter().all(sounds_dangerous));
    assert!(
        !["create_issue", "targets", "forget"].into_iter().any(|name| sounds_reading(name) || sounds_dangerous(name))
    );
    assert!(!sounds_reading("list_and_delete"));
}
