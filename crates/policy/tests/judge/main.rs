//! The judge against a second, slow and obvious evaluator, and against what must always hold.
//!
//! `naive*` follow REQUIREMENTS.md with linear scans; `generate*` make small random policies and
//! questions; `differential`, `properties*` and `coverage` ask both. `TOOLWARDEN_SOAK=N` asks N times as much.

mod arguments;
mod ask;
mod coverage;
mod differential;
mod disagreements;
mod edits;
mod flat_names;
mod generate;
mod generate_callers;
mod generate_calls;
mod generate_lines;
mod generate_modes;
mod generate_roles;
mod generate_rules;
mod generate_servers;
mod incremental;
mod lines;
mod naive;
mod naive_allowlist;
mod naive_autorun;
mod naive_context;
mod naive_holds;
mod naive_modes;
mod naive_names;
mod naive_narrow;
mod naive_payers;
mod naive_places;
mod naive_reader;
mod naive_roles;
mod naive_schema;
mod naive_self;
mod naive_servers;
mod naive_shell;
mod naive_shipped;
mod properties;
mod properties_deny;
mod properties_lists;
mod properties_owners;
mod properties_settle;
mod rule;
mod tape;
mod transports;
mod widening;
mod windows;
