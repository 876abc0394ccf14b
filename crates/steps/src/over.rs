//! A call that went over a limit is told which, how large it is, and whose (GATE-13).

use std::time::Duration;

use toolwarden_conversations::Failure;
use toolwarden_conversations::whole::LARGEST;
use toolwarden_core::Reason;
use toolwarden_policy::input::LimitsInput;
use toolwarden_refusals::Refusal;

use crate::gateway::Gateway;
use crate::resolve::{Asked, What};

/// The same failure with the limit's name; others stay as they are.
pub fn named(gateway: &Gateway, asked: &Asked, failure: Failure) -> Failure {
    let (What::Call, Some(reason)) = (&asked.what, failure.over()) else { return failure };
    if matches!(failure, Failure::OverLimit { .. }) {
        return failure;
    }
    let bounds = &asked.bounds;
    let value = match reason {
        Reason::TimeOver => seconds(bounds.time),
        Reason::ResponseTooLarge => format!("{} bytes", bounds.response_bytes),
        _ => format!("{} levels", bounds.depth),
    };
    let limit = match whose(gateway, asked, reason) {
        Some((key, whose)) => format!("`{key}` of {whose} is {value}"),
        None if reason == Reason::TimeOver => {
            format!("unless `time` says otherwise, it may be silent for {} and take {value}", seconds(bounds.silence))
        }
        None => format!("it is {value} unless a limit says otherwise"),
    };
    let is_wide = reason == Reason::ResponseTooLarge && bounds.response_bytes > LARGEST as u64;
    let limit = if is_wide { format!("{limit} ({LARGEST} for one event)") } else { limit };
    Failure::OverLimit { what: Box::new(failure), limit }
}

/// A refusal by a limit says whose it is.
pub fn named_refusal(gateway: &Gateway, asked: &Asked, mut refusal: Refusal) -> Refusal {
    match &mut refusal {
        Refusal::Upstream(failure) => *failure = named(gateway, asked, failure.clone()),
        Refusal::Denied(denial) => {
            if let Some((key, whose)) = whose(gateway, asked, denial.explanation.reason) {
                denial.message.push_str(&format!(" (`{key}` of {whose})"));
            }
        }
        _ => {}
    }
    refusal
}

fn whose(gateway: &Gateway, asked: &Asked, reason: Reason) -> Option<(&'static str, String)> {
    type Is = fn(&LimitsInput) -> bool;
    let (key, is_said): (_, Is) = match reason {
        Reason::TimeOver => ("time", |limits| limits.time.is_some()),
        Reason::ResponseTooLarge => ("response_bytes", |limits| limits.response_bytes.is_some()),
        Reason::RequestTooLarge => ("request_bytes", |limits| limits.request_bytes.is_some()),
        Reason::ResponseTooDeep | Reason::RequestTooDeep => ("depth", |limits| limits.depth.is_some()),
        _ => return None,
    };
    let call = &asked.query.call;
    Some((key, gateway.limiter.whose(&call.server, &call.tool, is_said)?))
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}
