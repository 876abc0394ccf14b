//! `[modes.SLUG]`: modes in snake case (MODE-1, MODE-11).

use toolwarden_policy::input::ModeInput;

use crate::readers::known::Section;
use crate::readers::mode::{Draft, Spelling};
use crate::readers::roomodes::check_slug;
use crate::report::Report;
use crate::tree::Node;

pub(super) fn read(report: &mut Report, node: &Node) -> Vec<ModeInput> {
    let mut modes = Vec::new();
    for (slug, inner) in report.table("modes", node) {
        let mut draft = Draft::new(&slug.text, report.origin(slug.place), Spelling::Snake, report.mark());
        check_slug(report, slug.place, &slug.text);
        for (key, value) in report.keys(Section::Mode, &slug.text, inner) {
            match Spelling::Snake.field(&key.text) {
                Some(field) => draft.fill(report, field, key, value),
                None => report.unread(key),
            }
        }
        modes.push(draft.finish(report));
    }
    modes
}
