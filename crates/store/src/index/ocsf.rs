//! A row in the words of the Open Cybersecurity Schema Framework: class API Activity (6003), version 1.3.0.
//!
//! What the schema has no place for stands under `unmapped` by our own names, so nothing of a row is lost.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::export::one_line;
use super::row::Row;

const VERSION: &str = "1.3.0";
const CLASS: u32 = 6003;

impl Row {
    /// One line of JSON.
    #[must_use]
    pub fn to_ocsf_line(&self) -> String {
        let (activity, activity_name) = self.activity();
        let (severity, severity_name) = self.ocsf_severity();
        let (status, status_name) = self.outcome();
        let (action, action_name) = self.action();
        let time = self.time.parse::<Timestamp>().unwrap_or_default();
        let event = json!({
            "category_uid": 6,
            "category_name": "Application Activity",
            "class_uid": CLASS,
            "class_name": "API Activity",
            "activity_id": activity,
            "activity_name": activity_name,
            "type_uid": CLASS * 100 + activity,
            "type_name": format!("API Activity: {activity_name}"),
            "time": time.as_millisecond(),
            "severity_id": severity,
            "severity": severity_name,
            "status_id": status,
            "status": status_name,
            "status_detail": self.status,
            "action_id": action,
            "action": action_name,
            "disposition_id": action,
            "disposition": if action == 2 { "Blocked" } else { action_name },
            "message": self.summary(),
            "duration": self.duration_us.map(|micros| micros / 1000),
            "metadata": self.metadata(),
            "actor": self.actor(),
            "api": self.api(),
            "src_endpoint": { "name": self.door.as_deref().unwrap_or("local") },
            "policy": self.rule.as_ref().map(|rule| json!({ "name": rule, "desc": self.rule_source })),
            "unmapped": self.unmapped(),
        });
        one_line(&without_nulls(event).to_string())
    }

    /// What the schema calls the kind of activity. What a tool does, only its server knows.
    fn activity(&self) -> (u32, &'static str) {
        match self.method.as_deref() {
            Some("resources/read" | "prompts/get" | "completion/complete") => (2, "Read"),
            _ => (99, "Other"),
        }
    }

    fn ocsf_severity(&self) -> (u32, &'static str) {
        match (self.decision.as_deref(), self.status.as_deref()) {
            (Some("deny"), _) => (3, "Medium"),
            (Some("hold"), _) => (2, "Low"),
            (_, Some("upstream_error" | "timeout" | "too_large" | "unknown")) => (2, "Low"),
            _ => (1, "Informational"),
        }
    }

    fn outcome(&self) -> (u32, &'static str) {
        match self.status.as_deref() {
            Some("ok") => (1, "Success"),
            Some("unknown") => (0, "Unknown"),
            Some(_) => (2, "Failure"),
            // Events have happened; a call without a status is on its way.
            None if self.kind == "event" => (1, "Success"),
            None => (0, "Unknown"),
        }
    }

    /// A held call did not run, which is what readers of this format need to know.
    fn action(&self) -> (u32, &'static str) {
        match self.decision.as_deref() {
            Some("allow") => (1, "Allowed"),
            Some("hold" | "deny") => (2, "Denied"),
            _ => (0, "Unknown"),
        }
    }

    fn metadata(&self) -> Value {
        json!({
            "version": VERSION,
            "product": { "name": "Toolwarden", "vendor_name": "Toolwarden", "version": env!("CARGO_PKG_VERSION") },
            "profiles": ["security_control"],
            "log_name": "audit",
            "uid": format!("{}/{}", self.node, self.sequence),
            "sequence": self.sequence,
            "original_time": self.time,
        })
    }

    fn actor(&self) -> Value {
        let groups: Vec<Value> = self.groups.iter().map(|name| json!({ "name": name })).collect();
        let groups = (!groups.is_empty()).then_some(groups);
        json!({
            "user": self.user.as_ref().map(|user| json!({ "name": user, "groups": groups })),
            "session": self.session.as_ref().map(|session| json!({ "uid": session })),
            "app_name": self.agent_type.as_deref().or(self.user.is_none().then_some("unknown")),
        })
    }

    fn api(&self) -> Value {
        let operation = self.tool.as_deref().or(self.method.as_deref()).unwrap_or("unknown");
        json!({
            "operation": operation,
            "service": self.server.as_ref().map(|server| json!({ "name": server })),
            "request": { "uid": format!("{}/{}", self.node, self.call) },
            "response": self.status.as_ref().filter(|status| *status != "ok").map(|status| json!({ "error": status })),
        })
    }

    /// Everything of the row, by our own names.
    fn unmapped(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// Without members that say nothing, at any depth.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.into_iter().filter(|(_, member)| !member.is_null());
            Value::Object(kept.map(|(key, member)| (key, without_nulls(member))).collect::<Map<_, _>>())
        }
        other => other,
    }
}
