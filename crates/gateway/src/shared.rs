//! What one session may not change for the others on a shared child: the gateway answers itself.
//!
//! Log levels: nobody could say whose log a line is, so none is passed on. Subscriptions end only when
//! the last session that watches the resource lets go.

use toolwarden_conversations::upstreams::Link;
use toolwarden_mcp::{Id, compose};

use toolwarden_steps::answer::Answer;
use toolwarden_steps::resolve::{Asked, text_member};

pub(crate) fn answered(asked: &Asked) -> Option<Answer> {
    let session = asked.arrival.session.as_ref()?;
    let Some(Link::Stdio(child)) = session.link(&asked.upstream) else {
        if &*asked.method == "resources/unsubscribe" {
            forget(asked);
        }
        return None;
    };
    let id: &Id = asked.id.as_ref()?;
    let done = || Some(Answer::message(compose::result(id, "{}")));
    match &*asked.method {
        "logging/setLevel" if !child.is_own() => done(),
        "resources/unsubscribe" => {
            let uri = forget(asked)?;
            if child.is_watched(&uri) { done() } else { None }
        }
        _ => None,
    }
}

fn forget(asked: &Asked) -> Option<String> {
    let uri = text_member(asked.query.call.params.as_ref(), "uri")?;
    asked.arrival.session.as_ref()?.unwatch(&asked.upstream.name, &uri);
    Some(uri)
}
