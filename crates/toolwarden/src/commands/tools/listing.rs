//! What was seen of servers, in a table.

use toolwarden_control::DefinitionView;
use toolwarden_core::name::shown;
use toolwarden_pins::Standing;

use super::address;
use crate::output::{Colour, in_one_line};
use crate::table::{self, Cell, Last};

const HEADINGS: [&str; 4] = ["DEFINITION", "STANDING", "ACCEPTED", "DESCRIPTION"];

pub(super) fn list(found: &[DefinitionView]) -> String {
    if found.is_empty() {
        return "nothing was seen of any server yet: start `toolwarden serve` and connect a client\n".to_owned();
    }
    let row = |one: &DefinitionView| {
        let how = one.how.as_deref().unwrap_or("not yet");
        let description = one.description.as_deref().map(in_one_line).unwrap_or_default();
        vec![
            Cell::plain(address(one)),
            standing(one),
            Cell::plain(shown(how.trim_start_matches("accepted "))),
            Cell::plain(description),
        ]
    };
    let mut text = table::text(&HEADINGS, found.iter().map(row).collect(), Last::Cut);
    let waits = found.iter().any(|one| one.standing != Standing::Accepted);
    let is_gone = found.iter().any(|one| one.gone && one.configured);
    let remarks = [
        waits.then_some("What changed or is new is not shown to clients; see `toolwarden tools diff`.\n"),
        is_gone.then_some("What is gone was not in the last list of its server.\n"),
    ];
    if waits || is_gone {
        text.push('\n');
    }
    text.extend(remarks.into_iter().flatten());
    let unusable = found.iter().filter_map(|one| Some((one, one.unusable.as_deref()?)));
    for (number, (one, why)) in unusable.enumerate() {
        text.push_str(if number == 0 { "\n" } else { "" });
        text.push_str(&format!("{} cannot be called: {}\n", address(one), in_one_line(why)));
    }
    text
}

/// What most needs a person stands first and gives the colour.
fn standing(one: &DefinitionView) -> Cell {
    let waits = match one.standing {
        Standing::Accepted => None,
        Standing::Changed => Some(("changed", Colour::Red)),
        Standing::New => Some(("new", Colour::Yellow)),
    };
    let beside = match (one.configured, one.gone) {
        (true, false) if one.unusable.is_some() => Some(("unusable", Colour::Red)),
        (false, _) => Some(("not configured", Colour::Dim)),
        (true, true) => Some(("gone", Colour::Dim)),
        (true, false) => None,
    };
    match (waits, beside) {
        (None, None) => Cell::in_colour("accepted", Colour::Green),
        (Some((words, colour)), None) | (None, Some((words, colour))) => Cell::in_colour(words, colour),
        (Some((words, colour)), Some((more, _))) => Cell::in_colour(format!("{words}, {more}"), colour),
    }
}
