//! Rows under headings, in columns as wide as what stands in them.

use crate::environment;
use crate::output::{Colour, coloured, shorten};

/// So much of the last column is shown on the narrowest terminal.
const LEAST: usize = 20;
const BETWEEN: &str = "  ";

pub struct Cell {
    words: String,
    colour: Option<Colour>,
}

impl Cell {
    pub fn plain(words: impl Into<String>) -> Self {
        Self { words: words.into(), colour: None }
    }

    pub fn in_colour(words: impl Into<String>, colour: Colour) -> Self {
        Self { words: words.into(), colour: Some(colour) }
    }
}

/// What becomes of a last column that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Last {
    /// It is cut to the terminal's width.
    Cut,
    Whole,
}

pub fn text(headings: &[&str], rows: Vec<Vec<Cell>>, last: Last) -> String {
    laid_out(headings, rows, (last == Last::Cut).then(environment::terminal_width))
}

fn laid_out(headings: &[&str], rows: Vec<Vec<Cell>>, width: Option<usize>) -> String {
    let heading = headings.iter().map(|words| Cell::in_colour(*words, Colour::Dim)).collect();
    let rows: Vec<Vec<Cell>> = std::iter::once(heading).chain(rows).collect();
    let count = headings.len();
    let width_of = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.words.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count.saturating_sub(1)).map(width_of).collect();
    let before: usize = widths.iter().map(|width| width + BETWEEN.len()).sum();
    let left = width.map(|width| width.saturating_sub(before).max(LEAST));
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, Cell { words, colour }) in row.into_iter().enumerate() {
            let words = match (widths.get(column), left) {
                (Some(width), _) => format!("{words:<width$}"),
                (None, Some(left)) => shorten(&words, left),
                (None, None) => words,
            };
            if column > 0 {
                line.push_str(BETWEEN);
            }
            line.push_str(&colour.map_or(words.clone(), |colour| coloured(&words, colour)));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
#[test]
fn columns_are_as_wide_as_their_content_and_the_last_one_fits() {
    let row = |cells: [&str; 3]| cells.map(Cell::plain).into_iter().collect::<Vec<_>>();
    let rows = || vec![row(["a", "bbbb", "some words that go on and on"]), row(["aaaaaaaa", "b", ""])];
    let expected = "ONE       TWO   THREE\na         bbbb  some words that go…\naaaaaaaa  b\n";
    assert_eq!(laid_out(&["ONE", "TWO", "THREE"], rows(), Some(36)), expected);
    assert_eq!(laid_out(&["ONE", "TWO", "THREE"], rows(), Some(1)), expected, "it is not cut to nothing");
    assert!(laid_out(&["ONE", "TWO", "THREE"], rows(), None).contains("and on\n"));
}
