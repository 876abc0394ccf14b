//! The policy in force, and what servers taught us about their tools.
//!
//! One snapshot for every decision; a change builds the next one beside it and swaps. What a server
//! lists becomes known to the judge here, because at an MCP door only listed tools exist (CORE-6).

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use tokio::sync::watch;
use toolwarden_core::json::Value;
use toolwarden_core::weak;
use toolwarden_policy::input::{ServerInput, ToolDefinition};
use toolwarden_policy::{Finding, PolicySet, Refused, read_input_schema, read_schema};

/// So many tools of one server are known; no real server comes near it, and every change of its list
/// builds the policy of all of them anew.
const MOST_TOOLS: usize = 5_000;

/// The snapshot and the server layer it was built from.
#[derive(Debug)]
pub struct Live {
    policy: ArcSwap<PolicySet>,
    servers: Mutex<Vec<ServerInput>>,
    /// Servers whose tools are refused, because a rule does not fit them, and what is said of it.
    refused: ArcSwap<BTreeMap<String, String>>,
    changes: watch::Sender<()>,
}

/// What is known of a server that a policy names.
#[derive(Debug, Default)]
pub struct Seen {
    /// Its tools, as they were accepted.
    pub tools: Vec<ToolDefinition>,
    /// Whether it is the one that is reached now: what it listed counts on.
    pub is_same: bool,
}

impl Live {
    pub fn new(policy: PolicySet, servers: Vec<ServerInput>) -> Self {
        Self {
            policy: ArcSwap::from_pointee(policy),
            servers: Mutex::new(servers),
            refused: ArcSwap::default(),
            changes: watch::Sender::new(()),
        }
    }

    pub fn policy(&self) -> arc_swap::Guard<Arc<PolicySet>> {
        self.policy.load()
    }

    pub fn snapshot(&self) -> Arc<PolicySet> {
        self.policy.load_full()
    }

    /// Which rules of which files do not fit what a server lists, so that its tools are refused; none where they fit.
    pub fn refused_tools(&self, server: &str) -> Option<String> {
        self.refused.load().get(server).cloned()
    }

    /// Tells of every policy that takes the place of another.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Tells everybody who follows to judge again, though the policy is the same.
    pub fn look_again(&self) {
        self.changes.send_replace(());
    }

    /// Takes over a whole new policy; catalogs learned so far stay known, but of servers that
    /// are reached otherwise. `seen` says what is known of a server that comes back. `first` is done once nothing
    /// stands in the way any more, and before anything is judged by it.
    ///
    /// # Errors
    /// A rule that does not fit the tools that are known.
    pub fn replace(
        &self,
        policy: &PolicySet,
        servers: Vec<ServerInput>,
        seen: impl Fn(&str) -> Seen,
        first: impl FnOnce(),
    ) -> Result<(), Refused> {
        let mut held = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let (next, servers, refused) = self.next(policy, servers, &held, seen)?;
        first();
        self.policy.store(Arc::new(next));
        self.refused.store(Arc::new(refused));
        *held = servers;
        drop(held);
        self.changes.send_replace(());
        Ok(())
    }

    /// The policy as it would be in force.
    ///
    /// # Errors
    /// As `replace`.
    pub fn preview(
        &self,
        policy: &PolicySet,
        servers: Vec<ServerInput>,
        seen: impl Fn(&str) -> Seen,
    ) -> Result<PolicySet, Refused> {
        let held = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        self.next(policy, servers, &held, seen).map(|(next, ..)| next)
    }

    fn next(
        &self,
        policy: &PolicySet,
        mut servers: Vec<ServerInput>,
        held: &[ServerInput],
        seen: impl Fn(&str) -> Seen,
    ) -> Result<Next, Refused> {
        let mut learned = Vec::new();
        for (place, server) in servers.iter_mut().enumerate() {
            if server.catalog.is_some() {
                continue;
            }
            learned.push(place);
            let Seen { tools, is_same } = seen(&server.name);
            let is_known = |known: &&ServerInput| known.name == server.name && known.launch == server.launch;
            let known = held.iter().find(is_known).filter(|_| is_same);
            server.catalog = known.and_then(|known| known.catalog.clone());
            if server.catalog.is_none() {
                server.catalog = Some(tools).filter(|seen| !seen.is_empty());
            }
        }
        // The version its store has it under, so that records, `/readyz` and the history speak of the same.
        match policy.with_servers(policy.version(), &servers) {
            Ok(next) => Ok((next, servers, BTreeMap::new())),
            // Rules that were in force before are not at fault.
            Err(_) if policy.has_rules_of(&self.policy.load()) => {
                without_what_stands_in_the_way(policy, servers, &learned)
            }
            Err(refused) => Err(refused),
        }
    }

    /// The servers as they are configured, without what they list.
    pub fn configured(&self) -> Vec<ServerInput> {
        let held = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        held.iter().map(|server| ServerInput { catalog: None, ..server.clone() }).collect()
    }

    /// Whether all of this was learned before: it can be asked while somebody else learns.
    pub fn knows(&self, server: &str, listed: &[ToolDefinition]) -> bool {
        let policy = self.policy.load();
        let Some(server) = policy.servers().get(server).filter(|server| server.listed) else { return false };
        let is_known = |tool: &ToolDefinition| {
            server.tool(&tool.name).is_some_and(|known| known.definition.as_ref() == Some(tool))
        };
        listed.iter().all(is_known)
    }

    /// Learns tools of a server. Tools are added or replaced, not forgotten: lists differ between
    /// clients, and whether a tool is still there is for its server to say.
    ///
    /// Nothing is learned where the server is another one by now, which `is_it` is asked at a moment at which none
    /// takes its place.
    pub fn learn(&self, server: &str, listed: &[ToolDefinition], is_it: impl FnOnce() -> bool) {
        self.take(server, listed, false, is_it);
    }

    /// The same, and what was made by the former snapshot counts no more, whether anything is new or not.
    pub fn renew(&self, server: &str, listed: &[ToolDefinition]) {
        self.take(server, listed, true, || true);
    }

    fn take(&self, server: &str, listed: &[ToolDefinition], mut changed: bool, is_it: impl FnOnce() -> bool) {
        let mut held = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_it() {
            return;
        }
        let former: Vec<_> =
            held.iter().filter(|input| input.name == server).map(|input| input.catalog.clone()).collect();
        for input in held.iter_mut().filter(|input| input.name == server) {
            changed |= input.catalog.is_none();
            changed |= merge(input.catalog.get_or_insert_default(), server, listed);
        }
        if !changed {
            return;
        }
        let policy = self.policy.load();
        match policy.with_servers(policy.version(), &held) {
            Ok(next) => {
                self.policy.store(Arc::new(next));
                self.note_refused(server, None);
            }
            // The old snapshot stays: it does not know the new tools, so they are refused. Nor are they kept: what
            // one server lists must not stand in the way of another, or of the next policy.
            Err(refused) => {
                let words = places(&refused);
                tracing::error!(server, "what it lists anew is refused until the rules are repaired: {words}");
                self.note_refused(server, Some(words));
                let held = held.iter_mut().filter(|input| input.name == server);
                held.zip(former).for_each(|(input, former)| input.catalog = former);
            }
        }
    }

    /// Called with the servers locked.
    fn note_refused(&self, server: &str, words: Option<String>) {
        let mut refused = BTreeMap::clone(&self.refused.load());
        match words {
            Some(words) => refused.insert(server.to_owned(), words),
            None => refused.remove(server),
        };
        self.refused.store(Arc::new(refused));
    }
}

/// A policy, its servers, and those among them whose tools are refused.
type Next = (PolicySet, Vec<ServerInput>, BTreeMap<String, String>);

/// What does not fit, each with its file and line, in one line.
fn places(refused: &Refused) -> String {
    let place = |finding: &Finding| format!("{}: {}", finding.origin, finding.message);
    let words: Vec<String> = refused.0.iter().map(place).collect();
    words.join("; ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The policy with what servers list, but for those whose lists its rules cannot be checked with: what one server lists
/// does not keep a policy from being in force. Tools of such a server are unknown, and so refused.
fn without_what_stands_in_the_way(
    policy: &PolicySet,
    mut servers: Vec<ServerInput>,
    learned: &[usize],
) -> Result<Next, Refused> {
    let mut lists: Vec<(usize, Option<Vec<ToolDefinition>>)> = Vec::new();
    for place in learned {
        lists.push((*place, servers.get_mut(*place).and_then(|server| server.catalog.take())));
    }
    // Without any of them: where this is refused, too, it is the policy's own fault.
    let mut next = policy.with_servers(policy.version(), &servers)?;
    let mut refused_tools = BTreeMap::new();
    for (place, list) in lists.into_iter().filter(|(_, list)| list.is_some()) {
        let Some(server) = servers.get_mut(place) else { continue };
        server.catalog = list;
        let name = server.name.clone();
        match policy.with_servers(policy.version(), &servers) {
            Ok(with_list) => next = with_list,
            Err(refused) => {
                let words = places(&refused);
                tracing::error!(server = name, "its tools are refused until the rules are repaired: {words}");
                refused_tools.insert(name, words);
                if let Some(server) = servers.get_mut(place) {
                    server.catalog = None;
                }
            }
        }
    }
    Ok((next, servers, refused_tools))
}

/// Adds what is new and replaces what differs; says whether anything did.
fn merge(catalog: &mut Vec<ToolDefinition>, server: &str, listed: &[ToolDefinition]) -> bool {
    let mut places: HashMap<String, usize> =
        catalog.iter().enumerate().map(|(place, known)| (known.name.clone(), place)).collect();
    let (mut changed, mut too_many) = (false, 0);
    for definition in listed {
        if let Some(known) = places.get(&definition.name).and_then(|place| catalog.get_mut(*place)) {
            if known != definition {
                known.clone_from(definition);
                changed = true;
            }
            continue;
        }
        if catalog.len() >= weak::limit(MOST_TOOLS) {
            too_many += 1;
            continue;
        }
        places.insert(definition.name.clone(), catalog.len());
        catalog.push(definition.clone());
        changed = true;
    }
    if too_many > 0 {
        tracing::warn!(server, "it lists more than {MOST_TOOLS} tools; {too_many} are refused");
    }
    changed
}

/// One definition of a list.
#[must_use]
pub fn definition(tool: Value<'_>) -> Option<ToolDefinition> {
    let name = tool.get("name")?.as_str()?.into_owned();
    // A schema that cannot be read, or is not there, is kept as that: leaving it out would let calls pass unchecked.
    Some(ToolDefinition {
        name,
        description: tool.get("description").and_then(|text| text.as_str()).map(std::borrow::Cow::into_owned),
        input_schema: Some(read_input_schema(tool.get("inputSchema"))),
        output_schema: tool.get("outputSchema").map(read_schema),
    })
}

#[cfg(test)]
#[test]
fn a_server_makes_itself_known_with_so_many_tools_and_no_more() {
    let tool = |number: usize| ToolDefinition {
        name: format!("t{number}"),
        description: None,
        input_schema: None,
        output_schema: None,
    };
    let listed: Vec<_> = (0..MOST_TOOLS + 1000).map(tool).collect();
    let mut catalog = Vec::new();
    assert!(merge(&mut catalog, "s", &listed) && catalog.len() == MOST_TOOLS);
    assert!(!merge(&mut catalog, "s", &listed), "nothing is new");
    let changed = ToolDefinition { description: Some("other".to_owned()), ..tool(3) };
    assert!(merge(&mut catalog, "s", std::slice::from_ref(&changed)));
    assert_eq!(catalog.get(3), Some(&changed));
}

#[cfg(test)]
#[path = "live_tests.rs"]
mod tests;
