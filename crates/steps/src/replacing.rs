//! Another policy takes the place of the one in force, and with it other servers the place of those there are.
//!
//! What is judged must be what is reached. So servers that go, or are reached otherwise, say nothing any more before
//! anything is judged by the new policy, and others can be reached only after it is in force: a call finds its server
//! first and is judged then, so that it is judged by a policy at least as new as its server, and is sent only if no
//! newer one took that server away.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use tokio::time::timeout;
use toolwarden_advice::{Widening, widens};
use toolwarden_conversations::Scope;
use toolwarden_conversations::sessions::ClientSession;
use toolwarden_conversations::upstreams::{Link, Next, Upstream};
use toolwarden_core::{Weakness, name, weak};
use toolwarden_guard::live::Seen;
use toolwarden_policy::input::ServerInput;
use toolwarden_policy::{PolicySet, Refused};
use toolwarden_sources::ServerDefinition;
use toolwarden_sources::stored::StoredError;

use crate::decide::still_permitted;
use crate::gateway::{Gateway, counted, take_leave};
use crate::visible::announce;

/// How long a server may take to hear that it is not needed any more.
const GOODBYE: Duration = Duration::from_secs(8);

/// What was read anew.
#[derive(Debug, Clone, Copy)]
pub struct Reading<'a> {
    pub policy: &'a PolicySet,
    pub servers: &'a [ServerInput],
    /// As they are written, which is what is compared with what was accepted.
    pub written: &'a [ServerDefinition],
    /// With what the environment says, in the same order.
    pub definitions: &'a [ServerDefinition],
}

/// Why something that was read is not in force.
#[derive(Debug, thiserror::Error)]
pub enum NotTaken {
    /// A rule does not fit the tools that are known.
    #[error("{0}")]
    Policy(Refused),
    /// What starts the servers cannot be compared with what was accepted.
    #[error(transparent)]
    Pins(#[from] StoredError),
}

impl Gateway {
    /// Puts another policy in force: every call judged from now on is judged by it, and reaches the servers that came
    /// with it. Those that are reached as before are not disturbed. Blocks.
    ///
    /// # Errors
    /// What is in force stays.
    pub fn replace_policy(&self, reading: Reading<'_>) -> Result<(), NotTaken> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let next = self.upstreams.next(reading.definitions, &self.settings.bounds());
        let mut servers = reading.servers.to_vec();
        switch_off_others(&next, &mut servers);
        // Before anything is put on record that may never count.
        self.preview(&next, reading.policy, servers.clone()).map_err(NotTaken::Policy)?;
        let now = self.clock.now();
        let pins = self.pins.next(reading.written, &*self.keyring, now)?;
        let before = self.shown();
        let renewed: Vec<Arc<str>> = next.made(&self.upstreams).into_iter().map(|one| one.name.clone()).collect();
        let seen = |server: &str| Seen { tools: pins.definitions(server), is_same: !next.ends(server) };
        self.live.replace(reading.policy, servers.clone(), seen, || next.retire()).map_err(NotTaken::Policy)?;
        let noted = self.pins.take_over(pins, now);
        self.screens.replace(reading.definitions);
        self.limiter.replace(&reading.policy.base().limits, &servers);
        self.telemetry.metrics.replace(counted(next.set()));
        self.exchange(next);
        for (server, noted) in noted {
            self.tell_pinned(&server, &[noted]);
        }
        announce(self, before, Vec::new(), renewed);
        Ok(())
    }

    /// Ends everything that is open with a server, which is started or reached anew when somebody needs it; says
    /// whether there is such a server.
    pub fn restart_server(&self, server: &str) -> bool {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(next) = self.upstreams.next_without(server, &self.settings.bounds()) else { return false };
        let before = self.shown();
        next.retire();
        self.pins.forget_looks(server);
        self.live.look_again();
        self.exchange(next);
        self.note_event("server_restarted", "its conversations were ended", |record| record.server = Some(server));
        announce(self, before, Vec::new(), vec![server.into()]);
        true
    }

    /// What a policy would newly allow, were it put in force.
    ///
    /// # Errors
    /// A rule does not fit the tools that are known.
    pub fn would_widen(&self, reading: Reading<'_>) -> Result<Vec<Widening>, Refused> {
        let next = self.upstreams.next(reading.definitions, &self.settings.bounds());
        let mut servers = reading.servers.to_vec();
        switch_off_others(&next, &mut servers);
        let after = self.preview(&next, reading.policy, servers)?;
        Ok(widens(&self.live.policy(), &after))
    }

    /// Servers that stay under their names, and are given something else when they are started or reached.
    #[must_use]
    pub fn reached_otherwise(&self, reading: Reading<'_>) -> Vec<String> {
        let now = self.upstreams.snapshot();
        let is_other = |one: &&ServerDefinition| {
            let known = now.get(&one.input.name).map(|known| &known.definition);
            known.is_some_and(|known| known.input.launch == one.input.launch && !known.is_reached_like(one))
        };
        reading.definitions.iter().filter(is_other).map(|one| one.input.name.clone()).collect()
    }

    fn preview(&self, next: &Next, policy: &PolicySet, servers: Vec<ServerInput>) -> Result<PolicySet, Refused> {
        let seen = |server: &str| Seen { tools: self.pins.definitions(server), is_same: !next.ends(server) };
        self.live.preview(policy, servers, seen)
    }

    /// Lets other servers be reached, and ends what is open with those that go.
    fn exchange(&self, next: Next) {
        for upstream in next.set().all() {
            upstream.hold_to(self.limiter.of_server(&upstream.name));
        }
        let gone = self.upstreams.install(next);
        self.parks.give_up_forbidden(|asked| still_permitted(self, asked).is_ok());
        if gone.is_empty() {
            return;
        }
        let (mut left, mut links) = (Vec::new(), Vec::new());
        for session in self.sessions.everybody() {
            links.extend(gone.iter().filter_map(|upstream| session.leaves(upstream)));
            // A conversation with one server ends with it: the client opens another, or learns that there is none.
            let is_of = |one: &Arc<Upstream>| matches!(&session.scope, Scope::One(only) if *only == one.name);
            if gone.iter().any(is_of) && self.sessions.close(&session.id).is_some() {
                left.push(session);
            }
        }
        for upstream in &gone {
            tracing::info!(server = %name::shown(&upstream.name), "what was open with the server is ended");
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(end(gone, links, left));
        }
    }
}

/// What is judged must be what is reached: a server that is read otherwise than it is reached is off.
fn switch_off_others(next: &Next, servers: &mut [ServerInput]) {
    for server in servers {
        let reached = next.set().get(&server.name);
        let is_other = reached.is_some_and(|reached| reached.definition.input.launch != server.launch);
        if is_other && !weak::is(Weakness::Trust) {
            server.enabled = false;
        }
    }
}

/// Ends what was open with servers that went. One that does not answer keeps nobody waiting for long.
async fn end(gone: Vec<Arc<Upstream>>, links: Vec<Link>, left: Vec<Arc<ClientSession>>) {
    let lines = stream::iter(gone).for_each_concurrent(None, |upstream| async move {
        drop(timeout(GOODBYE, upstream.end_all()).await);
    });
    let links = stream::iter(links).for_each_concurrent(None, |link| async move {
        drop(timeout(GOODBYE, link.close()).await);
    });
    tokio::join!(lines, links, take_leave(left));
}
