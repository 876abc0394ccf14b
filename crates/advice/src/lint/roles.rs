//! Findings about roles: patterns that can never match, are shadowed, or match no known tool.

use toolwarden_core::{Sourced, name};
use toolwarden_policy::Finding;
use toolwarden_policy::input::{Declared, RoleInput};
use toolwarden_policy::roles::{Pattern, Roles};
use toolwarden_policy::servers::{Server, Servers};
use toolwarden_policy::shipped;

pub(super) fn lint(inputs: &[RoleInput], servers: &Servers) -> Vec<Finding> {
    let mut findings = match Roles::compile(inputs) {
        Ok(_) => Vec::new(),
        Err(faults) => faults,
    };
    for role in inputs {
        let parse = |text: &Sourced<String>| Pattern::parse(&text.value).ok();
        let disallow: Vec<Pattern> = role.disallow.iter().flatten().filter_map(parse).collect();
        let allow: Vec<(&Sourced<String>, Pattern)> =
            role.allow.iter().flatten().filter_map(|text| Some((text, parse(text)?))).collect();
        // What is shipped is for whichever servers there are: nobody wrote it about the ones here.
        let own = shipped::ROLES.iter().find(|own| own.name == role.name.value || own.alias == Some(&role.name.value));
        let is_shipped = |text: &str, list: fn(&shipped::ShippedRole) -> &'static [&'static str]| {
            own.is_some_and(|own| list(own).contains(&text))
        };
        // Patterns that forbid whole families may be meant for servers to come; a name of one server is not.
        for text in role.disallow.iter().flatten() {
            let is_one = |pattern: &Pattern| pattern.server.is_some() && !pattern.is_prefix();
            if !is_shipped(&text.value, |own| own.disallow)
                && parse(text).is_some_and(|pattern| is_one(&pattern) && matches_nothing(&pattern, servers))
            {
                let message =
                    format!("role `{}`: `{}` forbids no known tool", role.name.value, name::shown(&text.value));
                findings.push(Finding::warning("matches_nothing", text.origin.clone(), message));
            }
        }
        for (index, (text, pattern)) in allow.iter().enumerate() {
            let shown = name::shown(&text.value);
            if disallow.iter().any(|wider| wider.covers(pattern)) {
                let message = format!("role `{}`: `{shown}` never matches, disallow covers it", role.name.value);
                findings.push(Finding::warning("never_matches", text.origin.clone(), message));
            }
            let mut others = allow.iter().enumerate().filter(|(other, (_, wider))| {
                *other != index && wider.covers(pattern) && (wider != pattern || *other < index)
            });
            if let Some((_, (wider, _))) = others.next() {
                let message =
                    format!("role `{}`: `{shown}` adds nothing, `{}` covers it", role.name.value, wider.value);
                findings.push(Finding::note("shadowed_pattern", text.origin.clone(), message));
            }
            if !is_shipped(&text.value, |own| own.allow) && matches_nothing(pattern, servers) {
                let message = format!("role `{}`: `{shown}` matches no known tool", role.name.value);
                findings.push(Finding::warning("matches_nothing", text.origin.clone(), message));
            }
        }
    }
    findings
}

/// Only said where every server the pattern could reach has told its tools.
fn matches_nothing(pattern: &Pattern, servers: &Servers) -> bool {
    let all = servers.sorted();
    let reachable: Vec<_> = match &pattern.server {
        Some(server) => all.into_iter().filter(|known| *known.name == **server).collect(),
        None => all
            .into_iter()
            .filter(|server| server.declared == Declared::ByOperator && &*server.name != "custom-user-tools")
            .collect(),
    };
    if pattern.server.is_some() && reachable.is_empty() {
        return true;
    }
    let told = reachable.iter().all(|server| server.listed);
    let upstream = reachable.iter().any(|server| &*server.name != "builtin");
    let reserved = ["resources/read", "prompts/get", "completion/complete"];
    let of_server = |server: &Server| server.listed_tools().iter().any(|tool| pattern.matches_name(&tool.name));
    let found = reachable.iter().any(|server| of_server(server));
    told && upstream && !found && !reserved.iter().any(|tool| pattern.matches_name(tool))
}
