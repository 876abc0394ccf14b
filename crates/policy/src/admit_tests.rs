//! Messages that are no calls still need a server their sender may reach.

use std::sync::Arc;

use jiff::Timestamp;
use toolwarden_core::{Call, Caller, Door, Layer, Operation, Origin, Reason, Sourced};

use super::{METHODS, Message, admit};
use crate::input::{Declared, PolicyInput, RuleFile, ServerInput};
use crate::query::{Query, Transport};
use crate::set::PolicySet;
use crate::shipped;

fn policy(enabled: bool) -> Option<PolicySet> {
    let mut server = ServerInput::new("notes", Origin::record(Layer::Config, "test"), Declared::ByOperator);
    server.enabled = enabled;
    let mut input = PolicyInput::default();
    input.servers.push(server);
    PolicySet::compile(&input).ok()
}

fn query(server: &str) -> Query {
    let call = Call::asked(server, Operation::ReadResource, None);
    Transport::new(Door::Mcp, None).query(Arc::new(Caller::local_person("ada")), call, Timestamp::UNIX_EPOCH)
}

fn listed(method: &str) -> Message {
    Message::Listed { method: method.to_owned() }
}

fn reason(enabled: bool, server: &str, message: Message) -> Option<Reason> {
    admit(&policy(enabled)?, &query(server), message).err().map(|denied| denied.reason)
}

#[test]
fn a_known_server_that_is_on_is_reached() {
    for method in METHODS {
        assert_eq!(reason(true, "notes", listed(method)), None, "{method}");
        assert_eq!(reason(false, "notes", listed(method)), Some(Reason::ServerDisabled), "{method}");
        assert_eq!(reason(true, "other", listed(method)), Some(Reason::UnknownTool), "{method}");
    }
}

#[test]
fn calls_and_unknown_methods_never_pass_as_messages() {
    for method in ["tools/call", "resources/read", "prompts/get", "completion/complete", "shell/run", ""] {
        assert_eq!(reason(true, "notes", listed(method)), Some(Reason::MethodNotListed), "{method}");
    }
    let configured = |method: &str| Message::Configured { method: method.to_owned() };
    assert_eq!(reason(true, "notes", configured("tools/call")), Some(Reason::MethodNotListed));
    assert_eq!(reason(true, "notes", configured("vendor/thing")), None);
}

#[test]
fn watching_needs_the_right_to_read() {
    let query = query("notes").asked_by(Arc::new(Caller::agent("pm", Some("ada".into()))));
    let watched = policy(true).and_then(|policy| admit(&policy, &query, listed("resources/subscribe")).err());
    assert_eq!(watched.map(|denied| denied.reason), Some(Reason::RoleNotAllowed));
}

#[test]
fn core_4_watching_is_denied_where_reading_always_asks() {
    let mut input = PolicyInput::default();
    let origin = Origin::record(Layer::Config, "test");
    input.servers.push(ServerInput::new("notes", origin.clone(), Declared::ByOperator));
    input.base.rules.push(RuleFile { origin: origin.clone(), text: shipped::RULES.to_owned() });
    let watched = |input: &PolicyInput| {
        let policy = PolicySet::compile(input).ok()?;
        admit(&policy, &query("notes"), listed("resources/subscribe"))
            .err()
            .map(|denied| (denied.reason, denied.detail))
    };
    assert_eq!(watched(&input), None, "what auto-run alone would hold");
    for entry in ["notes:*", "notes:resources/read", "*:*"] {
        let mut asks = input.clone();
        asks.base.auto_run.ask = vec![Sourced::new(entry.to_owned(), origin.clone())];
        let because = Some((Reason::CannotBeHeld, Some("mandatory_ask".into())));
        assert_eq!(watched(&asks), because, "{entry}");
    }
}
