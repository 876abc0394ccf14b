//! What was seen of servers, for whoever asks by name: what is unknown is said to be, with what is known instead.

use std::collections::HashMap;

use toolwarden_core::Records;
use toolwarden_core::name::shown;
use toolwarden_pins::{self as pins, Kind, ServerPins};
use toolwarden_policy::input::ServerInput;
use toolwarden_sources::{Locations, load};

use crate::{Actor, Clerk, ControlError};

/// So many names are enough to find the one that was meant.
const MOST_NAMES: usize = 12;

/// The pins of a server of which something was seen.
pub(crate) fn server(
    locations: &Locations,
    name: &str,
    (configured, actor): (&Configured, &Actor),
) -> Result<ServerPins, ControlError> {
    let is_there = |server: &str| configured.shows(server, actor);
    if let Some(pins) = pins::find(locations, name)?.filter(|pins| is_there(&pins.server)) {
        return Ok(pins);
    }
    // Those that cannot be read are none of the question.
    let known = pins::all(locations).readable.into_iter().map(|pins| pins.server);
    let known: Vec<String> = known.filter(|server| is_there(server)).collect();
    let help = match known.as_slice() {
        [] => "nothing was seen of any server yet: start `toolwarden serve` and connect a client".to_owned(),
        known => format!("seen are: {}", names(known)),
    };
    Err(ControlError::NotFound { message: format!("nothing was seen of a server called `{}`", shown(name)), help })
}

/// A definition that was seen, by the name a person wrote.
pub(crate) fn definition<'a>(pins: &ServerPins, written: &'a str) -> Result<(Kind, &'a str), ControlError> {
    let (kind, name) = Kind::addressed(written);
    if pins.section(kind).entries.contains_key(name) {
        return Ok((kind, name));
    }
    let of = |kind: Kind| pins.section(kind).entries.keys().map(move |name| kind.address(name));
    let known: Vec<String> = Kind::ALL.into_iter().flat_map(of).collect();
    let message = format!("nothing was seen of {} called `{}`", shown(&pins.server), shown(written));
    Err(ControlError::NotFound { message, help: format!("seen are: {}", names(&known)) })
}

fn names(known: &[String]) -> String {
    let named: Vec<_> = known.iter().take(MOST_NAMES).map(|name| shown(name)).collect();
    let more = match known.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", named.join(", "))
}

/// The servers there are by now, and whose each is; none where nobody can tell.
pub(crate) struct Configured(Option<HashMap<String, Option<String>>>);

impl Configured {
    /// Those of the running gateway, where there is one.
    pub(crate) fn running(clerk: &Clerk) -> Self {
        let running = clerk.parts.servers.as_ref();
        Self(running.map(|servers| servers.list().into_iter().map(|server| (server.name, server.owner)).collect()))
    }

    /// Else those of the files. Blocks.
    pub(crate) fn or_written(self, locations: &Locations, store: &Records) -> Self {
        let of = |servers: Vec<ServerInput>| servers.into_iter().map(|server| (server.name, server.owner)).collect();
        Self(self.0.or_else(|| Some(of(load(locations, store).ok()?.input.servers))))
    }

    pub(crate) fn has(&self, server: &str) -> bool {
        self.0.as_ref().is_none_or(|servers| servers.contains_key(server))
    }

    /// Whether somebody is to know of a server. Of one that is gone nobody can tell whose it was.
    pub(crate) fn shows(&self, server: &str, actor: &Actor) -> bool {
        let known = self.0.as_ref().and_then(|servers| servers.get(server));
        known.map_or(actor.is_admin(), |owner| actor.sees(owner.as_deref()))
    }

    /// Whether a server is this one's own.
    pub(crate) fn is_own(&self, server: &str, actor: &Actor) -> bool {
        let owner = self.0.as_ref().and_then(|servers| servers.get(server)?.as_deref());
        owner.is_some_and(|owner| owner == actor.user)
    }
}
