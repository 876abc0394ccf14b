//! What callers see of servers, and who is to be told that it has changed (ALLOW-12): by another policy, or
//! because a person accepted other definitions.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use tokio::sync::broadcast::error::RecvError;
use toolwarden_conversations::Scope;
use toolwarden_conversations::sessions::{ClientSession, principal};
use toolwarden_conversations::upstreams::{Set, Wanted, tagged};
use toolwarden_core::json::{Kind, Part};
use toolwarden_core::{Call, Caller, Operation};
use toolwarden_mcp::compose::{self, object_with};
use toolwarden_mcp::sse::Event;
use toolwarden_mcp::{Id, Notification};
use toolwarden_policy::{PolicySet, is_visible};

use crate::answer::{Answer, Events};
use crate::arrival::Arrival;
use crate::decide::may_reach;
use crate::gateway::Gateway;
use crate::resolve::query;

const TOOLS: &str = "notifications/tools/list_changed";
const PROMPTS: &str = "notifications/prompts/list_changed";
const RESOURCES: &str = "notifications/resources/list_changed";

/// What there is to be seen at one moment, and by what it is judged who sees it.
#[derive(Debug)]
pub struct Stage {
    policy: Arc<PolicySet>,
    servers: Arc<Set>,
}

impl Gateway {
    /// What there is to be seen now.
    pub fn shown(&self) -> Stage {
        Stage { policy: self.live.snapshot(), servers: self.upstreams.snapshot() }
    }
}

/// Something that may change what somebody sees.
#[derive(Debug)]
pub struct Change {
    before: Stage,
    now: Stage,
    /// Servers of which a person accepted something.
    accepted: Vec<Arc<str>>,
    /// Servers that are reached otherwise, and may list something else.
    renewed: Vec<Arc<str>>,
    /// The one session whose mode changed, and who spoke in it before; it is news to nobody else.
    switched: Option<(String, Arc<Caller>)>,
}

/// Who looks: a caller as they came, or a session in whatever mode it is in by now.
#[derive(Debug, Clone)]
pub enum Viewer {
    Caller(Arc<Caller>),
    Session(Weak<ClientSession>),
}

impl Viewer {
    /// None where the session is over.
    pub fn caller(&self) -> Option<Arc<Caller>> {
        match self {
            Self::Caller(caller) => Some(caller.clone()),
            Self::Session(session) => session.upgrade().map(|session| session.caller()),
        }
    }

    fn is(&self, mark: &str) -> bool {
        matches!(self, Self::Session(session) if session.upgrade().is_some_and(|session| session.mark == mark))
    }
}

/// What one caller sees at one door.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    tools: BTreeSet<(Arc<str>, String)>,
    /// What else a server lists is seen by whoever may reach it.
    servers: BTreeSet<Arc<str>>,
}

impl Seen {
    fn of(gateway: &Gateway, Stage { policy, servers }: &Stage, caller: &Arc<Caller>, scope: &Scope) -> Self {
        let mut seen = Self { tools: BTreeSet::new(), servers: BTreeSet::new() };
        let shows = |call: Call| is_visible(policy, &query(gateway, caller, call));
        let is_here = |server: &Arc<str>| !matches!(scope, Scope::One(only) if only != server);
        for server in servers.all().iter().map(|upstream| &upstream.name).filter(|server| is_here(server)) {
            if shows(Call::asked(server.clone(), Operation::ReadResource, None)) {
                seen.servers.insert(server.clone());
            }
            let Some(known) = policy.servers().get(server) else { continue };
            let tools = known.known_tools().filter(|tool| shows(Call::mcp(server.clone(), *tool, None)));
            seen.tools.extend(tools.map(|tool| (server.clone(), tool.to_owned())));
        }
        seen
    }
}

/// Said where no tool is left for a caller (MODE-5).
pub const NO_TOOLS: &str = "No MCP servers or tools are available to you here.";

/// Where a list says it: `_meta` of a result.
pub const NOTICE: &str = "toolwarden/notice";

/// Whether nothing at all is left for a caller at a door. A server whose tools are not known yet may have some.
pub fn has_nothing(gateway: &Gateway, caller: &Arc<Caller>, scope: &Scope) -> bool {
    let stage = gateway.shown();
    let is_here = |server: &Arc<str>| !matches!(scope, Scope::One(only) if only != server);
    let is_unknown = |server: &Arc<str>| stage.policy.servers().get(server).is_none_or(|known| !known.listed);
    let mut reached = stage
        .servers
        .all()
        .iter()
        .map(|upstream| &upstream.name)
        .filter(|server| is_here(server) && may_reach(gateway, caller, server));
    !reached.any(is_unknown) && Seen::of(gateway, &stage, caller, scope).tools.is_empty()
}

impl Change {
    /// The lists that are others now, for somebody at a door.
    fn news(&self, gateway: &Gateway, viewer: &Viewer, scope: &Scope) -> Vec<&'static str> {
        let Some(caller) = &viewer.caller() else { return Vec::new() };
        let former = match &self.switched {
            None => caller,
            Some((mark, former)) if viewer.is(mark) => former,
            Some(_) => return Vec::new(),
        };
        let now = Seen::of(gateway, &self.now, caller, scope);
        let is_accepted = self.accepted.iter().any(|server| now.servers.contains(server));
        // What a server lists that was never reached, nobody knows yet.
        let is_here = |server: &&Arc<str>| !matches!(scope, Scope::One(only) if only != *server);
        let is_renewed = self.renewed.iter().filter(is_here).any(|server| may_reach(gateway, caller, server));
        let before = Seen::of(gateway, &self.before, former, scope);
        let (tools, servers) = (before.tools != now.tools, before.servers != now.servers);
        let news = [(TOOLS, tools || is_accepted), (PROMPTS, servers || is_accepted), (RESOURCES, servers)];
        news.into_iter().filter(|(_, is_news)| *is_news || is_renewed).map(|(method, _)| method).collect()
    }
}

/// Tells everybody who sees something else now than before.
pub fn announce(gateway: &Gateway, before: Stage, accepted: Vec<Arc<str>>, renewed: Vec<Arc<str>>) {
    let change = Arc::new(Change { before, now: gateway.shown(), accepted, renewed, switched: None });
    // Sessions of one caller at one door see the same.
    let mut known: HashMap<(String, Option<Arc<str>>), Vec<&'static str>> = HashMap::new();
    for session in gateway.sessions.everybody().into_iter().filter(|session| session.agreed().is_some()) {
        let server = match &session.scope {
            Scope::One(server) => Some(server.clone()),
            Scope::All => None,
        };
        let viewer = Viewer::Session(Arc::downgrade(&session));
        let place = (principal(&session.caller()), server);
        let news = known.entry(place).or_insert_with(|| change.news(gateway, &viewer, &session.scope));
        news.iter().for_each(|method| session.tell(compose::to_client(None, method, None)));
    }
    // Nobody may be listening.
    let _ = gateway.visible.send(change);
}

/// Tells the client of one session what it sees otherwise in its new mode (MODE-8).
pub fn announce_mode(gateway: &Gateway, session: &Arc<ClientSession>, former: Arc<Caller>) {
    let switched = Some((session.mark.clone(), former));
    let (before, now) = (gateway.shown(), gateway.shown());
    let change = Arc::new(Change { before, now, accepted: Vec::new(), renewed: Vec::new(), switched });
    if session.agreed().is_some() {
        let news = change.news(gateway, &Viewer::Session(Arc::downgrade(session)), &session.scope);
        news.iter().for_each(|method| session.tell(compose::to_client(None, method, None)));
    }
    // The client may be heard on a stream of its server instead.
    let _ = gateway.visible.send(change);
}

/// The answer to `subscriptions/listen`, with what changes here beside what the servers tell.
pub fn with_changes(gateway: &Arc<Gateway>, arrival: &Arrival, wanted: Wanted, id: Id, answer: Answer) -> Answer {
    let Answer::Events { events, resumable } = answer else { return answer };
    let words = move |method: &'static str| {
        let news = Notification { method: method.into(), params: None };
        is_wanted(&wanted, method).then(|| tagged(&news, &id))
    };
    let viewer = Viewer::Caller(arrival.caller.clone());
    Answer::Events { events: beside(gateway, viewer, &arrival.scope, events, words), resumable }
}

/// The standing stream of a server to a legacy client, with the same.
pub fn with_news(gateway: &Arc<Gateway>, viewer: Viewer, scope: &Scope, events: Events) -> Events {
    beside(gateway, viewer, scope, events, |method| Some(compose::to_client(None, method, None)))
}

fn beside(
    gateway: &Arc<Gateway>,
    viewer: Viewer,
    scope: &Scope,
    events: Events,
    words: impl Fn(&'static str) -> Option<Bytes> + Send + 'static,
) -> Events {
    let changes = gateway.visible.subscribe();
    let (gateway, scope) = (Arc::downgrade(gateway), scope.clone());
    let news = move |change: Result<Arc<Change>, RecvError>| {
        let methods = match (change, gateway.upgrade()?) {
            (Ok(change), gateway) => change.news(&gateway, &viewer, &scope),
            // Too many to follow: whoever listens looks at everything again.
            (Err(RecvError::Lagged(_)), _) => vec![TOOLS, PROMPTS, RESOURCES],
            (Err(RecvError::Closed), _) => return None,
        };
        Some(methods.into_iter().filter_map(&words).collect::<Vec<_>>())
    };
    let state = (events, changes, Vec::new(), news);
    Box::pin(stream::unfold(state, |(mut events, mut changes, mut waiting, news)| async move {
        loop {
            if let Some(message) = waiting.pop() {
                return Some((Event::of(message), (events, changes, waiting, news)));
            }
            tokio::select! {
                biased;
                event = events.next() => return event.map(|event| (event, (events, changes, waiting, news))),
                change = changes.recv() => waiting = news(change)?,
            }
        }
    }))
}

fn is_wanted(wanted: &Wanted, method: &str) -> bool {
    match method {
        TOOLS => wanted.tools,
        PROMPTS => wanted.prompts,
        _ => wanted.resources,
    }
}

/// What a server says it offers: its lists can change here, whether it ever changes them or not.
pub fn offered(said: &Part) -> Option<Part> {
    let capabilities = said.value().get("capabilities").filter(|all| all.kind() == Kind::Object)?;
    let mut changed = Vec::new();
    for key in ["tools", "prompts", "resources"] {
        let offered = capabilities.get(key).filter(|offered| offered.kind() == Kind::Object);
        if let Some(offered) = offered.filter(|offered| offered.get("listChanged").is_none_or(|is| is.raw() != "true"))
        {
            changed.push((key, object_with(Some(offered), &[("listChanged", Some("true"))])));
        }
    }
    let changed: Vec<(&str, Option<&str>)> = changed.iter().map(|(key, text)| (*key, Some(text.as_str()))).collect();
    if changed.is_empty() {
        return None;
    }
    let capabilities = object_with(Some(capabilities), &changed);
    Part::composed(object_with(Some(said.value()), &[("capabilities", Some(&capabilities))])).ok()
}
