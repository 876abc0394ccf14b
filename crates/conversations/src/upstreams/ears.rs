//! Modern clients that listen to a legacy server: its news reach them in the form they asked for.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::mpsc;
use toolwarden_core::Caller;
use toolwarden_core::json::{Part, Value};
use toolwarden_mcp::compose::{self, object_with};
use toolwarden_mcp::ladder::META_SUBSCRIPTION;
use toolwarden_mcp::{Id, Notification};

use super::Upstream;

/// News that wait for one listener; beyond that they are dropped, as everywhere.
const WAITING: usize = 64;

/// What somebody wants to hear.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    pub tools: bool,
    pub prompts: bool,
    pub resources: bool,
    pub uris: Vec<String>,
}

impl Wanted {
    /// From the filter of `subscriptions/listen`.
    pub fn of(filter: Value<'_>) -> Self {
        let flag = |key: &str| filter.get(key).is_some_and(|flag| flag.raw() == "true");
        let uris = filter.get("resourceSubscriptions").into_iter().flat_map(Value::items);
        Self {
            tools: flag("toolsListChanged"),
            prompts: flag("promptsListChanged"),
            resources: flag("resourcesListChanged"),
            uris: uris.filter_map(|uri| uri.as_str().map(std::borrow::Cow::into_owned)).collect(),
        }
    }

    /// What either of them wants.
    pub fn join(&mut self, other: Self) {
        self.tools |= other.tools;
        self.prompts |= other.prompts;
        self.resources |= other.resources;
        self.uris.extend(other.uris);
    }

    /// The same as a filter, raw.
    pub fn filter(&self) -> String {
        let mut members = Vec::new();
        for (key, wanted) in [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ] {
            if wanted {
                members.push(format!("\"{key}\":true"));
            }
        }
        if !self.uris.is_empty() {
            let uris: Vec<String> = self.uris.iter().map(|uri| compose::quoted(uri)).collect();
            members.push(format!("\"resourceSubscriptions\":[{}]", uris.join(",")));
        }
        format!("{{{}}}", members.join(","))
    }

    fn covers(&self, news: &Notification) -> bool {
        match &*news.method {
            "notifications/tools/list_changed" => self.tools,
            "notifications/prompts/list_changed" => self.prompts,
            "notifications/resources/list_changed" => self.resources,
            "notifications/resources/updated" => {
                let uri = news.params.as_ref().and_then(|params| params.value().get("uri")).and_then(Value::as_str);
                uri.is_some_and(|uri| self.uris.iter().any(|watched| is_at_or_under(&uri, watched)))
            }
            _ => false,
        }
    }
}

/// Whether a resource is the watched one, or lies under it.
pub fn is_at_or_under(uri: &str, watched: &str) -> bool {
    uri.strip_prefix(watched)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || (watched.ends_with('/') && !watched.is_empty()))
}

/// Everybody who listens to one conversation with a server.
#[derive(Debug, Default)]
pub struct Ears(Mutex<Vec<Ear>>);

#[derive(Debug)]
struct Ear {
    caller: Arc<Caller>,
    wanted: Wanted,
    /// The id of the request that listens.
    subscription: Id,
    news: mpsc::Sender<Bytes>,
}

impl Ears {
    /// Adds a listener; it is gone when the receiver is dropped.
    pub fn open(&self, caller: Arc<Caller>, wanted: Wanted, subscription: Id) -> mpsc::Receiver<Bytes> {
        let (news, heard) = mpsc::channel(WAITING);
        let mut ears = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ears.retain(|ear| !ear.news.is_closed());
        ears.push(Ear { caller, wanted, subscription, news });
        heard
    }

    pub fn tell(&self, upstream: &Upstream, news: &Notification) {
        let mut ears = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ears.retain(|ear| !ear.news.is_closed());
        for ear in ears.iter().filter(|ear| ear.wanted.covers(news) && upstream.may_tell(news, &ear.caller)) {
            // Somebody who does not read misses news, and stops nobody else.
            drop(ear.news.try_send(tagged(news, &ear.subscription)));
        }
    }

    /// Whether anybody still watches a resource.
    pub fn watch(&self, uri: &str) -> bool {
        let ears = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ears.iter().any(|ear| !ear.news.is_closed() && ear.wanted.uris.iter().any(|watched| watched == uri))
    }

    pub fn are_closed(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().all(|ear| ear.news.is_closed())
    }

    /// Nothing more will be heard.
    pub fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// News with the id of the subscription they belong to.
pub fn tagged(news: &Notification, subscription: &Id) -> Bytes {
    let params = news.params.as_ref().map(Part::value);
    let meta =
        object_with(params.and_then(|params| params.get("_meta")), &[(META_SUBSCRIPTION, Some(subscription.raw()))]);
    let params = object_with(params, &[("_meta", Some(&meta))]);
    compose::to_client(None, &news.method, Some(&params))
}

/// The first message of a subscription: what of it will be heard.
pub fn acknowledged(wanted: &Wanted, subscription: &Id) -> Bytes {
    let params = format!(
        "{{\"notifications\":{},\"_meta\":{{\"{META_SUBSCRIPTION}\":{}}}}}",
        wanted.filter(),
        subscription.raw()
    );
    compose::to_client(None, "notifications/subscriptions/acknowledged", Some(&params))
}

/// The last message of a subscription that ended well.
pub fn ended(subscription: &Id) -> Bytes {
    let result =
        format!("{{\"resultType\":\"complete\",\"_meta\":{{\"{META_SUBSCRIPTION}\":{}}}}}", subscription.raw());
    compose::result(subscription, &result)
}
