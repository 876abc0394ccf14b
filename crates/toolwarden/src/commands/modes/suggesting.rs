//! `modes suggest` and `modes template`: starts for restrictions, from what was used and from what tools are called.

use anyhow::Result;
use toolwarden_control::operations::modes_suggest::Outcome;
use toolwarden_control::operations::modes_template::Template;
use toolwarden_control::operations::{ModesSuggest, ModesTemplate, modes_suggest, modes_template};
use toolwarden_core::name::shown;

use crate::clerk::Desk;
use crate::output::{self, Colour, Exit, coloured};
use crate::table::{self, Cell, Last};
use toolwarden_cli::{Format, Places};

pub fn suggest(places: &Places, request: &modes_suggest::Request, format: Format) -> Result<Exit> {
    let desk = Desk::open(places, None)?;
    let found = desk.ask::<ModesSuggest>(request.clone())?;
    if format.json {
        output::json(&found)?
    } else {
        output::text(&text(request, &found))?
    }
    Ok(Exit::Done)
}

fn text(request: &modes_suggest::Request, found: &Outcome) -> String {
    let mut text = String::new();
    if !found.used.is_empty() {
        let row = |used: &toolwarden_control::Used| {
            let calls = if used.calls == 1 { "1 call".to_owned() } else { format!("{} calls", used.calls) };
            vec![Cell::plain(shown(&format!("{}:{}", used.server, used.tool))), Cell::plain(calls)]
        };
        text.push_str(&table::text(&["USED", "HOW OFTEN"], found.used.iter().map(row).collect(), Last::Whole));
    }
    for tool in &found.no_longer {
        text.push_str(&coloured(&format!("- {}", shown(tool)), Colour::Red));
        text.push('\n');
    }
    if let (Some(slug), Some(_)) = (&request.mode, &found.definition) {
        let slug = shown(slug);
        text.push_str(&format!(
            "{} tools that are permitted now were not used\nto keep only what was used: toolwarden modes suggest {slug} --json | jq .definition | toolwarden modes set {slug} --from -\n",
            found.no_longer.len()
        ));
    }
    if !found.allow.is_empty() {
        let patterns: Vec<String> = found.allow.iter().map(|one| format!("--allow {}", shown(one))).collect();
        let role = request.role.as_deref().map_or("NAME".into(), shown);
        text.push_str(&format!(
            "to allow that: toolwarden roles set {role} {}\nand to allow nothing else, --drop what `toolwarden roles show {role}` lists beside it\n",
            patterns.join(" ")
        ));
    }
    for by_name in &found.by_name {
        let flags: Vec<String> =
            by_name.disallow_tools.iter().map(|one| format!("--disallow-tool {}", shown(one))).collect();
        let slug = shown(&by_name.mode);
        text.push_str(&format!(
            "`{slug}` permits tools that sound as if what they do could hardly be undone:\n  toolwarden modes set {slug} {}\n",
            flags.join(" ")
        ));
    }
    if text.is_empty() {
        text.push_str("nothing was used, and no name of a tool that was seen suggests anything\n");
    }
    text
}

pub fn template(places: &Places, name: Option<&str>, format: Format) -> Result<Exit> {
    let desk = Desk::open(places, None)?;
    let found = desk.ask::<ModesTemplate>(modes_template::Request { name: name.map(str::to_owned) })?;
    match (name, found.templates.as_slice()) {
        // What `modes set --from -` reads.
        (Some(_), [only]) => output::json(&only.definition)?,
        (_, all) if format.json => output::json(&all)?,
        (_, all) => {
            let row = |one: &Template| vec![Cell::plain(one.name.as_str()), Cell::plain(one.about.as_str())];
            output::text(&table::text(&["TEMPLATE", "WHAT IT PERMITS"], all.iter().map(row).collect(), Last::Whole))?;
        }
    }
    Ok(Exit::Done)
}
