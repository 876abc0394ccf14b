//! A change in the making: read what counts now, write, and commit all of it as the next version, or nothing.
//!
//! One draft at a time in the whole database, so what was read is still so when it is written, and versions
//! become visible in their order. Dropped without commit, nothing happened.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sqlx::AnyConnection;

use super::Place;
use super::seals::{Part, Seals};
use super::{Record, Records, StateError, announce, read_all};
use crate::database::{Engine, Writing};
use crate::sql::signed;

/// Who changes something, from where, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    pub user: String,
    /// As in the record of calls: `cli`, `control`, …
    pub door: String,
    pub time: Timestamp,
}

/// What a commit did.
#[derive(Debug, Clone, PartialEq)]
pub struct Committed {
    /// The version that counts now; the former one where nothing changed.
    pub version: u64,
    pub has_changed: bool,
}

/// A change in the making.
#[derive(Debug)]
pub struct Draft<'a> {
    writing: Writing,
    seals: &'a Seals,
    engine: Engine,
    before: Records,
    /// What is written; none = taken away.
    writes: BTreeMap<Place, Option<serde_json::Value>>,
}

impl<'a> Draft<'a> {
    pub(super) async fn begin(mut writing: Writing, engine: Engine, seals: &'a Seals) -> Result<Self, StateError> {
        let before = read_all(writing.connection(), seals).await?;
        Ok(Self { writing, seals, engine, before, writes: BTreeMap::new() })
    }

    pub(super) fn connection(&mut self) -> &mut AnyConnection {
        self.writing.connection()
    }

    /// Everything as it was when the draft began.
    #[must_use]
    pub fn before(&self) -> &Records {
        &self.before
    }

    /// Everything as it would be after a commit.
    #[must_use]
    pub fn after(&self) -> Records {
        let mut after = Records { version: self.before.version + 1, by_place: self.before.by_place.clone() };
        for (place, content) in self.writes.iter().filter(|(place, content)| !self.is_so(place, content.as_ref())) {
            match content {
                Some(content) => {
                    let record = Record { version: after.version, content: content.clone() };
                    after.by_place.insert(place.clone(), record)
                }
                None => after.by_place.remove(place),
            };
        }
        after
    }

    /// What stands at a place, as this draft has it.
    #[must_use]
    pub fn get(&self, place: &Place) -> Option<&serde_json::Value> {
        match self.writes.get(place) {
            Some(written) => written.as_ref(),
            None => self.before.by_place.get(place).map(|record| &record.content),
        }
    }

    /// Refuses a change of a record that is no longer what its author saw; version 0 = there was none.
    ///
    /// # Errors
    /// It is at another version.
    pub fn expect(&self, place: &Place, expected: u64) -> Result<(), StateError> {
        let found = self.before.by_place.get(place).map_or(0, |record| record.version);
        if found == expected {
            return Ok(());
        }
        Err(StateError::Stale { place: place.clone(), expected, found })
    }

    /// Writes a record.
    pub fn put(&mut self, place: Place, content: serde_json::Value) {
        self.writes.insert(place, Some(content));
    }

    /// Takes a record away.
    pub fn remove(&mut self, place: Place) {
        self.writes.insert(place, None);
    }

    /// Whether a commit would make a version.
    #[must_use]
    pub fn changes_anything(&self) -> bool {
        self.writes.iter().any(|(place, latter)| !self.is_so(place, latter.as_ref()))
    }

    fn is_so(&self, place: &Place, content: Option<&serde_json::Value>) -> bool {
        self.before.by_place.get(place).map(|record| &record.content) == content
    }

    /// Lets it be; others may change something at once.
    ///
    /// # Errors
    /// The database is gone.
    pub async fn abandon(self) -> Result<(), StateError> {
        Ok(self.writing.rollback().await?)
    }

    /// Makes it the next version. A draft that changes nothing makes none.
    ///
    /// # Errors
    /// The database cannot be written; then nothing happened.
    pub async fn commit(
        mut self,
        author: &Author,
        summary: &str,
        reason: Option<&str>,
    ) -> Result<Committed, StateError> {
        let writes = std::mem::take(&mut self.writes);
        let changed: Vec<_> =
            writes.into_iter().filter(|(place, latter)| !self.is_so(place, latter.as_ref())).collect();
        if changed.is_empty() {
            self.writing.rollback().await?;
            return Ok(Committed { version: self.before.version, has_changed: false });
        }
        let version = self.before.version + 1;
        for (place, latter) in &changed {
            self.write(version, place, latter.as_ref()).await?;
        }
        sqlx::query(
            "INSERT INTO versions (version, time_us, author, door, summary, reason) VALUES ($1, $2, $3, $4, $5, $6)",
        )
        .bind(signed(version))
        .bind(author.time.as_microsecond())
        .bind(&author.user)
        .bind(&author.door)
        .bind(summary)
        .bind(reason)
        .execute(self.writing.connection())
        .await?;
        sqlx::query("UPDATE counters SET value = $1 WHERE name = 'policy'")
            .bind(signed(version))
            .execute(self.writing.connection())
            .await?;
        announce(self.engine, self.writing.connection()).await?;
        self.writing.commit().await?;
        Ok(Committed { version, has_changed: true })
    }

    async fn write(
        &mut self,
        version: u64,
        place: &Place,
        latter: Option<&serde_json::Value>,
    ) -> Result<(), StateError> {
        let former = self.before.by_place.get(place).map(|record| &record.content);
        let sealed = |part, content: Option<&serde_json::Value>| {
            content.map(|content| self.seals.seal(part, version, place, content)).transpose()
        };
        let (kind, owner, name) = (place.kind.as_str(), &place.owner, &place.name);
        sqlx::query("INSERT INTO changes (version, kind, owner, name, former, latter) VALUES ($1, $2, $3, $4, $5, $6)")
            .bind(signed(version))
            .bind(kind)
            .bind(owner)
            .bind(name)
            .bind(sealed(Part::Former, former)?)
            .bind(sealed(Part::Latter, latter)?)
            .execute(self.writing.connection())
            .await?;
        let written = match sealed(Part::Record, latter)? {
            Some(sealed) => sqlx::query(
                "INSERT INTO records (kind, owner, name, version, sealed) VALUES ($1, $2, $3, $4, $5) \
                 ON CONFLICT (kind, owner, name) DO UPDATE SET version = excluded.version, sealed = excluded.sealed",
            )
            .bind(kind)
            .bind(owner)
            .bind(name)
            .bind(signed(version))
            .bind(sealed),
            None => sqlx::query("DELETE FROM records WHERE kind = $1 AND owner = $2 AND name = $3")
                .bind(kind)
                .bind(owner)
                .bind(name),
        };
        written.execute(self.writing.connection()).await?;
        Ok(())
    }
}
