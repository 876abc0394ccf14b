//! Makes a mode, or changes one that is stored: entry by entry, so that two people who change it lose nothing, or as a
//! whole (MODE-9).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolwarden_core::name::shown;
use toolwarden_core::records::{Kind as Sort, Place as Spot};
use toolwarden_core::{Layer, Origin};

use crate::deciding::{Done, Terms};
use crate::editing::{Editing, refuse_shadowed, table};
use crate::place::Opened;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

const AUTO_REVIEW: &str = "auto_review";

/// The operation.
#[derive(Debug)]
pub struct ModesSet;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    pub slug: String,
    /// All of it, with the keys of `[modes.SLUG]`; what is given below is laid over it.
    pub definition: Option<Value>,
    pub name: Option<String>,
    pub extends: Option<String>,
    pub groups: Option<Vec<String>>,
    pub allow_servers: Vec<String>,
    pub disallow_servers: Vec<String>,
    /// Neither allowed nor disallowed any more.
    pub inherit_servers: Vec<String>,
    pub allow_tools: Vec<String>,
    pub disallow_tools: Vec<String>,
    pub inherit_tools: Vec<String>,
    /// Servers need not be allowed one by one any more; the same for tools.
    pub any_server: bool,
    pub any_tool: bool,
    /// Whether a classifier may pay for some holds in this mode.
    pub auto_review: Option<Switch>,
    pub terms: Terms,
}

/// On, off, or whatever counts without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Switch {
    On,
    Off,
    Inherit,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    pub slug: String,
    /// As it is stored.
    pub definition: Value,
    pub done: Done,
}

impl Operation for ModesSet {
    const PATH: &'static str = "/api/v1/modes/set";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    const FOR: Role = Role::Admin;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        let slug = request.slug.clone();
        let spot = Spot::of_house(Sort::Mode, slug.as_str());
        let words = format!("set the mode `{}`", shown(&slug));
        let terms = request.terms.clone();
        let editing = Editing { actor, operation: "modes_set", terms: &terms, spot, words, narrows: false };
        let mut definition = Value::Null;
        let done = clerk
            .edit_record(editing, |content, before| {
                if let Some(first) = of_file(before, &slug) {
                    refuse_shadowed(&format!("the mode `{}`", shown(&slug)), &first)?;
                }
                definition = Value::Object(request.applied(content)?);
                Ok(Some(definition.clone()))
            })
            .await?;
        Ok(Outcome { slug, definition, done })
    }
}

/// Where a file defines a mode for everybody. One of a workspace counts there only.
pub(super) fn of_file(opened: &Opened, slug: &str) -> Option<Origin> {
    let modes = &opened.loaded.input.base.modes;
    let of_files = [Layer::Config, Layer::UserFile];
    let found = modes.iter().find(|mode| mode.slug == slug && of_files.contains(&mode.origin.layer))?;
    Some(found.origin.clone())
}

impl Request {
    fn applied(self, content: Option<&Value>) -> Result<Map<String, Value>, ControlError> {
        let mut mode = match self.definition {
            None => table(content),
            Some(Value::Object(whole)) => whole,
            Some(_) => return Err(ControlError::BadInput("the definition of a mode is a table".to_owned())),
        };
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                mode.insert(key.to_owned(), value);
            }
        };
        put("name", self.name.map(Value::from));
        put("extends", self.extends.map(Value::from));
        put("groups", self.groups.map(Value::from));
        match self.auto_review {
            Some(Switch::On) => put(AUTO_REVIEW, Some(true.into())),
            Some(Switch::Off) => put(AUTO_REVIEW, Some(false.into())),
            Some(Switch::Inherit) => drop(mode.remove(AUTO_REVIEW)),
            None => {}
        }
        let lists = [
            ("servers", self.allow_servers, self.disallow_servers, self.inherit_servers, self.any_server),
            ("tools", self.allow_tools, self.disallow_tools, self.inherit_tools, self.any_tool),
        ];
        for (what, allow, disallow, inherit, any) in lists {
            let (allowed, disallowed) = (format!("allowed_{what}"), format!("disallowed_{what}"));
            for name in allow.iter().chain(&inherit) {
                take_out(&mut mode, &disallowed, name);
            }
            for name in disallow.iter().chain(&inherit) {
                take_out(&mut mode, &allowed, name);
            }
            allow.iter().for_each(|name| put_in(&mut mode, &allowed, name));
            disallow.iter().for_each(|name| put_in(&mut mode, &disallowed, name));
            if any {
                mode.remove(&allowed);
            }
            if mode.get(&disallowed).and_then(Value::as_array).is_some_and(Vec::is_empty) {
                mode.remove(&disallowed);
            }
        }
        Ok(mode)
    }
}

/// An entry as text: `server`, or `server:tool`, which may also be written as a table.
fn text(entry: &Value) -> Option<String> {
    if let Some(text) = entry.as_str() {
        return Some(text.to_owned());
    }
    Some(format!("{}:{}", entry.get("server")?.as_str()?, entry.get("tool")?.as_str()?))
}

/// An allowed list that becomes empty stays, and permits nothing: to have none is to permit everything.
fn take_out(mode: &mut Map<String, Value>, key: &str, name: &str) {
    if let Some(Value::Array(entries)) = mode.get_mut(key) {
        entries.retain(|entry| text(entry).is_none_or(|known| !known.eq_ignore_ascii_case(name)));
    }
}

fn put_in(mode: &mut Map<String, Value>, key: &str, name: &str) {
    let entries = mode.entry(key).or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(entries) = entries
        && !entries.iter().any(|entry| text(entry).as_deref() == Some(name))
    {
        entries.push(name.into());
    }
}
