//! What a server says of itself: as the result of `initialize`, or of `server/discover`.

use toolwarden_core::json::{Kind, Value, unescape};

use super::SERVER_INFO;
use crate::compose::quoted;
use crate::versions::Version;

/// What every revision knows; what is left out has no form in the other era.
const BOTH: [&str; 5] = ["tools", "prompts", "resources", "completions", "logging"];
/// Works by what it puts into lists and results, whatever the era.
const EXTENSION: &str = "io.modelcontextprotocol/ui";

/// What a modern server said, for a legacy client that speaks `version`. `name` stands in where the
/// server does not give one.
#[must_use]
pub fn initialize_result(discovered: Value<'_>, version: Version, name: &str) -> String {
    let about = discovered.get("_meta").and_then(|meta| meta.get(SERVER_INFO)).or(discovered.get("serverInfo"));
    let about = about.filter(|about| about.get("name").is_some() && about.get("version").is_some());
    let about = about.map_or_else(|| format!(r#"{{"name":{},"version":"0"}}"#, quoted(name)), |it| it.raw().to_owned());
    let mut text = format!(
        r#"{{"protocolVersion":{},"capabilities":{},"serverInfo":{about}"#,
        quoted(version.as_str()),
        capabilities(discovered.get("capabilities"))
    );
    push_instructions(&mut text, discovered);
    text.push('}');
    text
}

/// What a legacy server said, for a modern client.
#[must_use]
pub fn discover_result(initialized: Value<'_>) -> String {
    let versions: Vec<String> = Version::modern().map(|version| quoted(version.as_str())).collect();
    let mut text = format!(
        r#"{{"resultType":"complete","supportedVersions":[{}],"capabilities":{},"ttlMs":0,"cacheScope":"private""#,
        versions.join(","),
        capabilities(initialized.get("capabilities"))
    );
    push_instructions(&mut text, initialized);
    if let Some(about) = initialized.get("serverInfo") {
        text.push_str(&format!(r#","_meta":{{"{SERVER_INFO}":{}}}"#, about.raw()));
    }
    text.push('}');
    text
}

fn push_instructions(text: &mut String, said: Value<'_>) {
    if let Some(words) = said.get("instructions").filter(|words| words.kind() == Kind::String) {
        text.push_str(",\"instructions\":");
        text.push_str(words.raw());
    }
}

fn capabilities(said: Option<Value<'_>>) -> String {
    let entries = said.into_iter().flat_map(Value::entries);
    let kept = entries.filter_map(|(key, value)| match &*unescape(key) {
        name if BOTH.contains(&name) => Some(format!("{key}:{}", value.raw())),
        "extensions" => value.get(EXTENSION).map(|ui| format!("{key}:{{\"{EXTENSION}\":{}}}", ui.raw())),
        _ => None,
    });
    format!("{{{}}}", kept.collect::<Vec<_>>().join(","))
}
