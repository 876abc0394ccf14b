//! Random choices read from a tape of bytes: zero is always the simplest choice, so that proptest,
//! which shrinks bytes towards zero, shrinks policies and questions towards simple ones.

use toolwarden_core::{Layer, Origin, Sourced};

/// The rest of a tape; zeros once it is used up.
#[derive(Debug)]
pub struct Tape<'a> {
    bytes: &'a [u8],
}

impl<'a> Tape<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Cuts off a piece, so that choices inside it do not move those behind it.
    pub fn section(&mut self, length: usize) -> Tape<'a> {
        let (section, rest) = self.bytes.split_at(length.min(self.bytes.len()));
        self.bytes = rest;
        Tape::new(section)
    }

    pub fn byte(&mut self) -> u8 {
        match self.bytes.split_first() {
            Some((first, rest)) => {
                self.bytes = rest;
                *first
            }
            None => 0,
        }
    }

    /// True in so many of a hundred cases.
    pub fn chance(&mut self, percent: u32) -> bool {
        u32::from(self.byte()) * 100 >= 256 * 100_u32.saturating_sub(percent)
    }

    /// One of several, the simplest first.
    pub fn pick<T: Clone>(&mut self, simplest: T, others: &[T]) -> T {
        let choice = usize::from(self.byte()) % (others.len() + 1);
        choice.checked_sub(1).and_then(|at| others.get(at)).cloned().unwrap_or(simplest)
    }

    /// A subset: each item with the same chance.
    pub fn some<'t>(&mut self, percent: u32, items: &[&'t str]) -> Vec<&'t str> {
        items.iter().copied().filter(|_| self.chance(percent)).collect()
    }

    pub fn texts(&mut self, percent: u32, items: &[&str]) -> Vec<String> {
        self.some(percent, items).into_iter().map(str::to_owned).collect()
    }

    pub fn list(&mut self, percent: u32, items: &[&str]) -> Vec<Sourced<String>> {
        self.some(percent, items).into_iter().map(sourced).collect()
    }

    /// A list that may be absent.
    pub fn maybe_list(&mut self, present: u32, percent: u32, items: &[&str]) -> Option<Vec<Sourced<String>>> {
        self.chance(present).then(|| self.list(percent, items))
    }
}

pub fn here() -> Origin {
    Origin::record(Layer::Config, "generated")
}

pub fn sourced(text: &str) -> Sourced<String> {
    Sourced::new(text.to_owned(), here())
}
