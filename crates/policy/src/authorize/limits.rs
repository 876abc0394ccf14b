//! The limits stage: how large and how deep a call may be (GATE-13).
//!
//! Members beside the arguments count, because they reach the server, too. The name of the tool and what belongs to the
//! exchange do not, so that `explain`, which knows arguments alone, answers alike.

use toolwarden_core::json::Part;
use toolwarden_core::{Call, MemberBeside, Reason};

use crate::subject::{Arguments, Subject};
use crate::verdict::Step;

pub(crate) fn limits(subject: &Subject<'_>) -> Step {
    if matches!(subject.arguments, Arguments::Unknown) {
        return Step::NOT_APPLICABLE;
    }
    let call = &subject.query.call;
    let limits = subject.names.server.map(|server| server.limits(subject.names.tool_name)).unwrap_or_default();
    let limits = limits.or(subject.policy.base().limits);
    if let Some(most) = limits.request_bytes.filter(|most| is_larger(call, *most)) {
        return Step::because(Reason::RequestTooLarge).noting(format!("the limit is {most} bytes"));
    }
    if let Some(most) = limits.depth.filter(|most| is_deeper(call, *most)) {
        return Step::because(Reason::RequestTooDeep).noting(format!("the limit is {most} levels"));
    }
    Step::PASS
}

/// The whole params first: most calls are far below every limit.
fn is_larger(call: &Call, most: usize) -> bool {
    let whole = call.params.as_ref().or(call.arguments.as_ref());
    whole.is_some_and(|whole| whole.raw().len() > most) && {
        let arguments = call.arguments.as_ref().map_or(0, |arguments| arguments.raw().len());
        arguments + call.beside_arguments().iter().map(MemberBeside::bytes).sum::<usize>() > most
    }
}

fn is_deeper(call: &Call, most: usize) -> bool {
    let whole = call.params.as_ref().or(call.arguments.as_ref());
    whole.is_some_and(|whole| !whole.is_within(most)) && {
        let arguments = call.arguments.as_ref().map_or(0, Part::depth);
        arguments > most || call.beside_arguments().iter().any(|member| member.depth() > most)
    }
}
