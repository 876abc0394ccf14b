//! A statement that grows piece by piece: fixed text, and values that are bound, never pasted.
//!
//! PostgreSQL wants placeholders with numbers. SQLite reads these, too, but as names, among which it searches one
//! by one: with thousands of values that takes longer than everything else. It gets bare question marks.

use std::fmt::Write as _;

use sqlx::any::AnyArguments;
use sqlx::query::Query;
use sqlx::{Any, Arguments as _, AssertSqlSafe, Encode, Type};

use crate::database::Engine;

/// A statement in the making.
pub(crate) struct Sql {
    engine: Engine,
    text: String,
    arguments: AnyArguments,
    /// Whether the next value of a row needs a comma.
    is_inside_row: bool,
}

impl Sql {
    pub(crate) fn new(engine: Engine, text: &'static str) -> Self {
        Self { engine, text: text.to_owned(), arguments: AnyArguments::default(), is_inside_row: false }
    }

    /// Adds text. Only what stands in the program can be added, so no value gets in by mistake.
    pub(crate) fn push(&mut self, text: &'static str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    /// Adds a placeholder and its value.
    pub(crate) fn bind<'t, T: Encode<'t, Any> + Type<Any>>(&mut self, value: T) -> &mut Self {
        // Numbers and texts always encode; a value that did not would leave a placeholder without one, which the
        // database refuses.
        drop(self.arguments.add(value));
        match self.engine {
            Engine::Sqlite => self.text.push('?'),
            Engine::Postgres => {
                let _ = write!(self.text, "${}", self.arguments.len());
            }
        }
        self
    }

    /// Adds `(…), (…)`, one pair of parentheses for each row.
    pub(crate) fn rows<T>(&mut self, rows: &[T], mut add: impl FnMut(&mut Self, &T)) -> &mut Self {
        for (place, row) in rows.iter().enumerate() {
            self.push(if place == 0 { "(" } else { ", (" });
            self.is_inside_row = false;
            add(self, row);
            self.push(")");
        }
        self
    }

    /// Adds a value of a row.
    pub(crate) fn value<'t, T: Encode<'t, Any> + Type<Any>>(&mut self, value: T) -> &mut Self {
        if self.is_inside_row {
            self.push(", ");
        }
        self.is_inside_row = true;
        self.bind(value)
    }

    /// The statement. Its text was put together from the program's own pieces and numbers of placeholders.
    pub(crate) fn query(self) -> Query<'static, Any, AnyArguments> {
        sqlx::query_with(AssertSqlSafe(self.text), self.arguments)
    }
}

/// SQL integers are signed. Counters never get that far; a value that does is shown as the largest.
pub(crate) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(crate) fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or_default()
}
