//! What a modern client may listen to: every resource it names is judged as reading it is (GATE-19).

use std::sync::Arc;

use toolwarden_conversations::upstreams::Upstream;
use toolwarden_conversations::{Audience, Telling};
use toolwarden_core::json::{Part, Value};
use toolwarden_core::{Call, Caller, Clock, Operation, Weakness, weak};
use toolwarden_guard::{Live, Screens};
use toolwarden_mcp::compose::{object_with, quoted};
use toolwarden_pins::Book;
use toolwarden_policy::{Message, Transport, admit};

use crate::following::is_of_gateway;
use crate::gateway::Gateway;
use crate::identities::Identities;
use crate::resolve::Asked;

const URIS: &str = "resourceSubscriptions";
const TASKS: &str = "taskIds";

/// The filter of `subscriptions/listen` without the resources the caller may not watch and the tasks that are no server's;
/// none where nothing is left out.
pub fn cut_filter(gateway: &Gateway, asked: &Asked) -> Option<String> {
    if &*asked.method != "subscriptions/listen" {
        return None;
    }
    let filter = asked.query.call.params.as_ref()?.value().get("notifications")?;
    let may_watch = |uri: Value<'_>| {
        uri.as_str().is_some_and(|uri| may_watch(gateway, &asked.arrival.caller, &asked.upstream, &uri))
    };
    // Whoever asks for those is told of them: no server knows them.
    let is_of_server = |task: Value<'_>| task.as_str().is_some_and(|task| !is_of_gateway(&task));
    let (uris, tasks) = (kept(filter, URIS, may_watch), kept(filter, TASKS, is_of_server));
    let changed: Vec<(&str, Option<&str>)> = [(URIS, &uris), (TASKS, &tasks)]
        .into_iter()
        .filter_map(|(key, kept)| kept.as_ref().map(|kept| (key, kept.as_deref())))
        .collect();
    (!changed.is_empty()).then(|| object_with(Some(filter), &changed))
}

/// What is left of a list, raw; none where all of it, and a list that is empty then is no list.
fn kept(filter: Value<'_>, key: &str, is_kept: impl Fn(Value<'_>) -> bool) -> Option<Option<String>> {
    let wanted: Vec<Value<'_>> = filter.get(key)?.items().collect();
    let kept: Vec<&str> = wanted.iter().filter(|one| is_kept(**one)).map(|one| one.raw()).collect();
    (kept.len() < wanted.len()).then(|| (!kept.is_empty()).then(|| format!("[{}]", kept.join(","))))
}

pub fn may_watch(gateway: &Gateway, caller: &Arc<Caller>, upstream: &Upstream, uri: &str) -> bool {
    let caller = gateway.identities.as_of_now(caller);
    is_heard((&gateway.live, &gateway.transport), &*gateway.clock, &caller, &upstream.name, Some(uri))
}

/// Whether a caller may hear of a server, and of this resource of it.
fn is_heard(
    (live, transport): (&Live, &Transport),
    clock: &dyn Clock,
    caller: &Arc<Caller>,
    server: &Arc<str>,
    uri: Option<&str>,
) -> bool {
    let params = match uri.map(|uri| Part::composed(format!("{{\"uri\":{}}}", quoted(uri)))) {
        None => None,
        Some(Ok(params)) => Some(params),
        Some(Err(_)) => return false,
    };
    let method = if uri.is_some() { "resources/subscribe" } else { "ping" };
    let call = Call::asked(server.clone(), Operation::ReadResource, params);
    let query = transport.query(caller.clone(), call, clock.now());
    admit(&live.policy(), &query, Message::Listed { method: method.to_owned() }).is_ok()
}

/// Judges whoever is to hear something by the policy of that moment.
#[derive(Debug)]
pub struct Hearing {
    live: Arc<Live>,
    transport: Transport,
    pins: Arc<Book>,
    screens: Arc<Screens>,
    identities: Arc<Identities>,
    clock: Arc<dyn Clock>,
}

impl Hearing {
    pub fn new(
        (live, transport): (Arc<Live>, Transport),
        pins: Arc<Book>,
        screens: Arc<Screens>,
        identities: Arc<Identities>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { live, transport, pins, screens, identities, clock }
    }
}

impl Audience for Hearing {
    fn may_hear(&self, caller: &Arc<Caller>, server: &Arc<str>, uri: Option<&str>) -> bool {
        is_heard((&self.live, &self.transport), &*self.clock, &self.identities.as_of_now(caller), server, uri)
    }

    fn may_start(&self, server: &str) -> bool {
        self.pins.may_start(server)
    }

    fn may_have_changed(&self, server: &str) {
        self.pins.forget_looks(server);
    }

    fn screened(&self, server: &str, words: &Part) -> Telling {
        let Some(screen) = self.screens.get(server).filter(|_| !weak::is(Weakness::Answers)) else {
            return Telling::AsItIs;
        };
        let seen = screen.look(words);
        match seen.changed.map(Part::composed) {
            _ if seen.is_withheld => {
                tracing::info!(server, "words of the server are not told: {}", seen.findings);
                Telling::Nothing
            }
            None => Telling::AsItIs,
            Some(Ok(words)) => Telling::Instead(words),
            Some(Err(_)) => Telling::Nothing,
        }
    }
}
