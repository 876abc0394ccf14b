//! The versions of the state: who changed what, when and why; and going back to one of them.

use jiff::Timestamp;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row as _};

use super::draft::Draft;
use super::seals::{Part, Seals};
use super::{Kind, Place};
use super::{State, StateError, place};
use crate::database::DatabaseError;
use crate::sql::{signed, unsigned};

/// One version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    pub version: u64,
    pub time: Timestamp,
    pub author: String,
    pub door: String,
    pub summary: String,
    pub reason: Option<String>,
}

/// What became of one record.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub place: Place,
    /// None = it was not there.
    pub former: Option<serde_json::Value>,
    /// None = it was taken away.
    pub latter: Option<serde_json::Value>,
}

impl State {
    /// At most so many versions, newest first, that are older than `before`.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn history(&self, limit: u32, before: Option<u64>) -> Result<Vec<Version>, StateError> {
        let query = "SELECT version, time_us, author, door, summary, reason FROM versions WHERE version < $1 \
                     ORDER BY version DESC LIMIT $2";
        let before = before.map_or(i64::MAX, signed);
        let query = sqlx::query(query).bind(before).bind(i64::from(limit));
        let rows = query.fetch_all(&self.database.pool).await?;
        rows.iter().map(read).collect()
    }

    /// What changed from one version to a later one, record by record; `from` 0 = from the beginning.
    ///
    /// # Errors
    /// There is no such version, the database cannot be read, or history was not sealed for its place.
    pub async fn changes(&self, from: u64, to: u64) -> Result<Vec<Change>, StateError> {
        let mut transaction = self.begin_reading().await?;
        let changes = changes(&mut transaction, &self.seals, from, to).await?;
        transaction.commit().await?;
        Ok(changes)
    }

    /// A draft that would make everything as it was at a version.
    ///
    /// # Errors
    /// As `changes`; or the database cannot be written.
    pub async fn back_to(&self, version: u64) -> Result<Draft<'_>, StateError> {
        let mut draft = self.change().await?;
        let now = draft.before().version;
        let changes = changes(draft.connection(), &self.seals, version, now).await?;
        // Files stay as they are: who goes back in the store changes none.
        for change in changes.into_iter().filter(|change| change.place.kind != Kind::File) {
            match change.former {
                Some(former) => draft.put(change.place, former),
                None => draft.remove(change.place),
            }
        }
        Ok(draft)
    }
}

async fn changes(connection: &mut AnyConnection, seals: &Seals, from: u64, to: u64) -> Result<Vec<Change>, StateError> {
    let now = super::version(connection).await?;
    if let Some(missing) = [from, to].into_iter().find(|version| *version > now) {
        return Err(StateError::NoVersion(missing));
    }
    let query = "SELECT version, kind, owner, name, former, latter FROM changes \
                     WHERE version > $1 AND version <= $2 ORDER BY version";
    let rows = sqlx::query(query).bind(signed(from)).bind(signed(to)).fetch_all(connection).await?;
    let mut changes: Vec<Change> = Vec::new();
    for row in &rows {
        let found = change_of(row, seals)?;
        match changes.iter_mut().find(|known| known.place == found.place) {
            Some(known) => known.latter = found.latter,
            None => changes.push(found),
        }
    }
    changes.retain(|change| change.former != change.latter);
    changes.sort_by(|one, other| one.place.cmp(&other.place));
    Ok(changes)
}

fn change_of(row: &AnyRow, seals: &Seals) -> Result<Change, StateError> {
    let place = place(row)?;
    let version = unsigned(row.try_get("version")?);
    let open = |part, name| {
        let sealed: Option<Vec<u8>> = row.try_get(name)?;
        sealed.map(|sealed| seals.open(part, version, &place, &sealed)).transpose()
    };
    let (former, latter) = (open(Part::Former, "former")?, open(Part::Latter, "latter")?);
    Ok(Change { place, former, latter })
}

fn read(row: &AnyRow) -> Result<Version, StateError> {
    let time: i64 = row.try_get("time_us")?;
    let time = Timestamp::from_microsecond(time).map_err(|error| DatabaseError::Value(error.to_string()))?;
    Ok(Version {
        version: unsigned(row.try_get("version")?),
        time,
        author: row.try_get("author")?,
        door: row.try_get("door")?,
        summary: row.try_get("summary")?,
        reason: row.try_get("reason")?,
    })
}
