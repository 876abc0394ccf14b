//! Rotation of the roots, as far as rows know of it: which roots count, and sealing again what older ones sealed.
//!
//! Whoever reads or writes sealed rows learns in the same transaction which roots there are. All who write wait for
//! each other, and so nothing is sealed by a former root after another took its place, however late a gateway hears.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sqlx::any::AnyRow;
use sqlx::{Any, AnyConnection, Row as _, Transaction};

use super::held_tasks::bound_to;
use super::seals::{OfApproval, Part};
use super::{State, StateError, announce, counter, place};
use crate::database::{Writers, Writing};
use crate::keys::{self, KeyRow, MasterKey, Phase, Roots, Standing};
use crate::sql::{Sql, unsigned};

/// Rows that are sealed again in one transaction: others wait no longer than these take.
const BATCH: i64 = 100;

/// What tasks gave may be long.
const BATCH_OF_TASKS: i64 = 4;

/// What was read is what is replaced, or nothing is.
const SEAL_RECORD: &str = "UPDATE records SET sealed = $1 \
                           WHERE kind = $2 AND owner = $3 AND name = $4 AND version = $5 AND sealed = $6";
const SEAL_FORMER: &str = "UPDATE changes SET former = $1 \
                           WHERE kind = $2 AND owner = $3 AND name = $4 AND version = $5 AND former = $6";
const SEAL_LATTER: &str = "UPDATE changes SET latter = $1 \
                           WHERE kind = $2 AND owner = $3 AND name = $4 AND version = $5 AND latter = $6";

const SEAL_HELD: &str = "UPDATE approvals SET sealed = $1 WHERE id = $2 AND sealed = $3";
const SEAL_GRANT: &str = "UPDATE grants SET sealed = $1 WHERE id = $2 AND sealed = $3";
const SEAL_TASK: &str = "UPDATE held_tasks SET sealed = $1 WHERE id = $2 AND sealed = $3";
const SEAL_ANSWER: &str = "UPDATE approvals SET answer = $1 WHERE id = $2 AND answer = $3";

/// Every column with sealed values: what it is, how its values begin, and how many begin so.
const COUNTS: [&str; 8] = [
    "SELECT 'records', substr(sealed, 1, $1), COUNT(*) FROM records GROUP BY 2",
    "SELECT 'changes', substr(former, 1, $1), COUNT(*) FROM changes WHERE former IS NOT NULL GROUP BY 2",
    "SELECT 'changes', substr(latter, 1, $1), COUNT(*) FROM changes WHERE latter IS NOT NULL GROUP BY 2",
    "SELECT 'tokens', substr(sealed, 1, $1), COUNT(*) FROM tokens GROUP BY 2",
    "SELECT 'approvals', substr(sealed, 1, $1), COUNT(*) FROM approvals GROUP BY 2",
    "SELECT 'approvals', substr(answer, 1, $1), COUNT(*) FROM approvals WHERE answer IS NOT NULL GROUP BY 2",
    "SELECT 'approvals', substr(sealed, 1, $1), COUNT(*) FROM grants GROUP BY 2",
    "SELECT 'approvals', substr(sealed, 1, $1), COUNT(*) FROM held_tasks GROUP BY 2",
];

/// The roots, and how far they were taken.
#[derive(Debug)]
pub(super) struct Known {
    roots: Arc<dyn Roots>,
    /// The counter of the rows that are in use; 0 = none were taken yet.
    taken: AtomicU64,
}

/// Sealed values, by what they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sealed {
    pub records: u64,
    /// Two for each change of a record: how it was, how it became.
    pub changes: u64,
    pub tokens: u64,
    /// One for each held call, for each answer, for each grant and for each task.
    pub approvals: u64,
}

impl Sealed {
    #[must_use]
    pub fn all(&self) -> u64 {
        self.records + self.changes + self.tokens + self.approvals
    }
}

/// The roots as they are kept, and what each sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inventory {
    pub standing: Standing,
    pub roots: Vec<(KeyRow, Sealed)>,
    /// What no root that is kept can have sealed.
    pub unknown: Sealed,
}

/// What sealing again did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SealedAgain {
    pub values: u64,
    /// Values that do not open: somebody changed them. They stay as they are.
    pub unreadable: u64,
    /// Whether every row was looked at.
    pub is_through: bool,
}

/// The last row that was looked at.
#[derive(Debug, Clone, Default)]
struct After {
    version: i64,
    kind: String,
    owner: String,
    name: String,
}

#[derive(Debug, Clone, Copy)]
enum Table {
    Records,
    Changes,
    Tokens,
    Approvals,
    Grants,
    Tasks,
}

impl Table {
    const ALL: [Self; 6] = [Self::Records, Self::Changes, Self::Tokens, Self::Approvals, Self::Grants, Self::Tasks];
}

impl State {
    /// Takes roots over as they come, and can rotate them.
    #[must_use]
    pub fn with_roots(self, roots: Arc<dyn Roots>) -> Self {
        Self { known: Some(Arc::new(Known { roots, taken: AtomicU64::new(0) })), ..self }
    }

    /// The roots, where this state knows more of them than a keyring.
    #[must_use]
    pub fn roots(&self) -> Option<&dyn Roots> {
        self.known.as_deref().map(|known| &*known.roots)
    }

    fn own_roots(&self) -> Result<&dyn Roots, StateError> {
        self.roots().ok_or(StateError::Key)
    }

    /// Begins to write, with the roots that count now.
    pub(super) async fn begin_writing(&self) -> Result<Writing, StateError> {
        let mut writing = self.database.begin_writing(Writers::OfState).await?;
        self.learn_roots(writing.connection()).await?;
        Ok(writing)
    }

    /// Begins to read, with every root that sealed what can be read.
    pub(super) async fn begin_reading(&self) -> Result<Transaction<'static, Any>, StateError> {
        let mut transaction = self.database.begin_reading().await?;
        self.learn_roots(&mut transaction).await?;
        Ok(transaction)
    }

    /// Takes the roots over where their counter is another one than was last seen.
    pub(super) async fn learn_roots_at(&self, counter: u64) -> Result<(), StateError> {
        match &self.known {
            Some(known) if known.taken.load(Ordering::Relaxed) != counter => {
                let mut connection = self.database.pool.acquire().await?;
                self.learn_roots(&mut connection).await
            }
            _ => Ok(()),
        }
    }

    async fn learn_roots(&self, connection: &mut AnyConnection) -> Result<(), StateError> {
        let Some(known) = &self.known else { return Ok(()) };
        // Before the rows: they are at least as new, and are read once more if they are newer.
        let now = counter(connection, "keys").await?;
        if known.taken.load(Ordering::Relaxed) != now {
            known.roots.take(&keys::read(connection).await?)?;
            known.taken.store(now, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Where the roots stand.
    ///
    /// # Errors
    /// The database cannot be read, or its roots are not whole.
    pub async fn standing(&self) -> Result<Standing, StateError> {
        Ok(self.own_roots()?.standing(&self.database.keys().await?)?)
    }

    /// Goes one step on in a rotation, if it still stands there; gives where it stands then. Roots are retired only
    /// if they sealed no more values than so many that do not open.
    ///
    /// # Errors
    /// The database cannot be written, or the roots are not whole; then nothing happened.
    pub async fn advance(&self, from: Standing, unreadable: u64) -> Result<Standing, StateError> {
        let roots = self.own_roots()?;
        let mut writing = self.begin_writing().await?;
        let kept = keys::read(writing.connection()).await?;
        let standing = roots.standing(&kept)?;
        if standing != from {
            return Ok(standing);
        }
        if standing.phase == Phase::Sealing {
            let counted = count(writing.connection(), roots).await?;
            let of_others = counted.iter().filter(|(root, _)| **root != Some(standing.root));
            if of_others.map(|(_, sealed)| sealed.all()).sum::<u64>() > unreadable {
                return Ok(standing);
            }
        }
        let next = roots.advanced(&kept)?;
        let standing = roots.standing(&next)?;
        keys::write(writing.connection(), &next).await?;
        announce(self.database.engine(), writing.connection()).await?;
        writing.commit().await?;
        let mut connection = self.database.pool.acquire().await?;
        self.learn_roots(&mut connection).await?;
        Ok(standing)
    }

    /// Seals every root by a new master key. The roots stay as they are.
    ///
    /// # Errors
    /// The database cannot be written, or there is no other master key; then the former one counts.
    pub async fn renew_master(&self) -> Result<MasterKey, StateError> {
        let roots = self.own_roots()?;
        let mut writing = self.begin_writing().await?;
        let next = roots.rewrapped(&keys::read(writing.connection()).await?)?;
        keys::write(writing.connection(), &next).await?;
        announce(self.database.engine(), writing.connection()).await?;
        writing.commit().await?;
        roots.settled()?;
        let mut connection = self.database.pool.acquire().await?;
        self.learn_roots(&mut connection).await?;
        Ok(roots.master_key())
    }

    /// What is kept of roots, and what each sealed, at one moment.
    ///
    /// # Errors
    /// The database cannot be read, or its roots are not whole.
    pub async fn inventory(&self) -> Result<Inventory, StateError> {
        let roots = self.own_roots()?;
        let mut transaction = self.begin_reading().await?;
        let kept = keys::read(&mut transaction).await?;
        let mut counted = count(&mut transaction, roots).await?;
        transaction.commit().await?;
        let standing = roots.standing(&kept)?;
        let of_root = |row: KeyRow| {
            let sealed = counted.remove(&Some(row.id)).unwrap_or_default();
            (row, sealed)
        };
        let roots = kept.into_iter().map(of_root).collect();
        let mut unknown = Sealed::default();
        for sealed in counted.values() {
            unknown.records += sealed.records;
            unknown.changes += sealed.changes;
            unknown.tokens += sealed.tokens;
            unknown.approvals += sealed.approvals;
        }
        Ok(Inventory { standing, roots, unknown })
    }

    /// Seals values of other roots again, about so many at most, in transactions of a few. Done again, it goes on.
    ///
    /// # Errors
    /// The database cannot be used; what was sealed again before stays so.
    pub async fn seal_again(&self, most: u64) -> Result<SealedAgain, StateError> {
        let mut done = SealedAgain::default();
        for table in Table::ALL {
            let mut after = After::default();
            loop {
                // Looked for outside of the transaction, for which others wait.
                let rows = self.of_other_roots(table, &after).await?;
                let Some(last) = rows.last() else { break };
                if done.values >= most {
                    return Ok(done);
                }
                after = After::row(table, last)?;
                let mut writing = self.begin_writing().await?;
                for row in &rows {
                    self.seal_row(writing.connection(), table, row, &mut done).await?;
                }
                writing.commit().await?;
            }
        }
        Ok(SealedAgain { is_through: true, ..done })
    }

    /// The next rows that hold a value of another root than the one that seals.
    async fn of_other_roots(&self, table: Table, after: &After) -> Result<Vec<AnyRow>, StateError> {
        let head = self.own_roots()?.head();
        let length = length_of(&head);
        let mut sql = Sql::new(self.database.engine(), "SELECT ");
        match table {
            Table::Records => {
                sql.push("kind, owner, name, version, sealed FROM records WHERE substr(sealed, 1, ").bind(length);
                sql.push(") <> ").bind(head).push(" AND (kind, owner, name) > (").bind(after.kind.clone());
                sql.push(", ").bind(after.owner.clone()).push(", ").bind(after.name.clone());
                sql.push(") ORDER BY kind, owner, name LIMIT ").bind(BATCH);
            }
            Table::Changes => {
                sql.push("kind, owner, name, version, former, latter FROM changes WHERE (substr(former, 1, ");
                sql.bind(length).push(") <> ").bind(head.clone()).push(" OR substr(latter, 1, ").bind(length);
                sql.push(") <> ").bind(head).push(") AND (version, kind, owner, name) > (").bind(after.version);
                sql.push(", ").bind(after.kind.clone()).push(", ").bind(after.owner.clone()).push(", ");
                sql.bind(after.name.clone()).push(") ORDER BY version, kind, owner, name LIMIT ").bind(BATCH);
            }
            Table::Tokens => {
                sql.push("id, digest, sealed FROM tokens WHERE substr(sealed, 1, ").bind(length).push(") <> ");
                sql.bind(head).push(" AND id > ").bind(after.name.clone()).push(" ORDER BY id LIMIT ").bind(BATCH);
            }
            Table::Approvals => {
                sql.push("id, call_mark, sealed, answer FROM approvals WHERE (substr(sealed, 1, ").bind(length);
                sql.push(") <> ").bind(head.clone()).push(" OR substr(answer, 1, ").bind(length).push(") <> ");
                sql.bind(head).push(") AND id > ").bind(after.name.clone()).push(" ORDER BY id LIMIT ").bind(BATCH);
            }
            Table::Grants => {
                sql.push("id, sealed FROM grants WHERE substr(sealed, 1, ");
                sql.bind(length).push(") <> ").bind(head).push(" AND id > ").bind(after.name.clone());
                sql.push(" ORDER BY id LIMIT ").bind(BATCH);
            }
            Table::Tasks => {
                sql.push("id, caller_mark, approval, sealed FROM held_tasks WHERE substr(sealed, 1, ");
                sql.bind(length).push(") <> ").bind(head).push(" AND id > ").bind(after.name.clone());
                sql.push(" ORDER BY id LIMIT ").bind(BATCH_OF_TASKS);
            }
        }
        Ok(sql.query().fetch_all(&self.database.pool).await?)
    }

    /// Seals the values of a row again, each only if it is still the one that was read.
    async fn seal_row(
        &self,
        connection: &mut AnyConnection,
        table: Table,
        row: &AnyRow,
        done: &mut SealedAgain,
    ) -> Result<(), StateError> {
        if let Table::Tokens = table {
            let (id, digest): (String, String) = (row.try_get("id")?, row.try_get("digest")?);
            let sealed: Vec<u8> = row.try_get("sealed")?;
            let Some(again) = self.seals.token_again(&id, &digest, &sealed)? else {
                done.unreadable += 1;
                return Ok(());
            };
            // A token with another secret meanwhile was sealed for that one.
            let query = "UPDATE tokens SET sealed = $1 WHERE id = $2 AND digest = $3 AND sealed = $4";
            let query = sqlx::query(query).bind(again).bind(id).bind(digest).bind(sealed);
            done.values += query.execute(connection).await?.rows_affected();
            return Ok(());
        }
        if let Table::Approvals | Table::Grants | Table::Tasks = table {
            return self.seal_approval(connection, table, row, done).await;
        }
        let columns: &[(&str, Part, &'static str)] = match table {
            Table::Records => &[("sealed", Part::Record, SEAL_RECORD)],
            _ => &[("former", Part::Former, SEAL_FORMER), ("latter", Part::Latter, SEAL_LATTER)],
        };
        let head = self.own_roots()?.head();
        for (column, part, update) in columns {
            let sealed: Option<Vec<u8>> = row.try_get(*column)?;
            let Some(sealed) = sealed.filter(|sealed| !sealed.starts_with(&head)) else { continue };
            let version: i64 = row.try_get("version")?;
            // A kind that is not known here is a newer version's, and its rows cannot be read.
            let again = match place(row) {
                Ok(place) => self.seals.again(*part, unsigned(version), &place, &sealed)?,
                Err(_) => None,
            };
            let Some(again) = again else {
                done.unreadable += 1;
                continue;
            };
            let after = After::row(table, row)?;
            let query = sqlx::query(*update).bind(again).bind(after.kind).bind(after.owner).bind(after.name);
            done.values += query.bind(version).bind(sealed).execute(&mut *connection).await?.rows_affected();
        }
        Ok(())
    }

    async fn seal_approval(
        &self,
        connection: &mut AnyConnection,
        table: Table,
        row: &AnyRow,
        done: &mut SealedAgain,
    ) -> Result<(), StateError> {
        let head = self.own_roots()?.head();
        let id: String = row.try_get("id")?;
        let columns: &[(&str, OfApproval, &'static str)] = match table {
            Table::Grants => &[("sealed", OfApproval::Grant, SEAL_GRANT)],
            Table::Tasks => &[("sealed", OfApproval::Task, SEAL_TASK)],
            _ => &[("sealed", OfApproval::Call, SEAL_HELD), ("answer", OfApproval::Answer, SEAL_ANSWER)],
        };
        for (column, part, update) in columns {
            let sealed: Option<Vec<u8>> = row.try_get(*column)?;
            let Some(sealed) = sealed.filter(|sealed| !sealed.starts_with(&head)) else { continue };
            let mark: String = match table {
                Table::Grants => String::new(),
                Table::Tasks => bound_to(row.try_get("caller_mark")?, row.try_get("approval")?),
                _ => row.try_get("call_mark")?,
            };
            let Some(again) = self.seals.approval_again(*part, &id, &mark, &sealed)? else {
                done.unreadable += 1;
                continue;
            };
            let query = sqlx::query(*update).bind(again).bind(&id).bind(sealed);
            done.values += query.execute(&mut *connection).await?.rows_affected();
        }
        Ok(())
    }
}

impl After {
    fn row(table: Table, row: &AnyRow) -> Result<Self, StateError> {
        Ok(match table {
            Table::Tokens | Table::Approvals | Table::Grants | Table::Tasks => {
                Self { name: row.try_get("id")?, ..Self::default() }
            }
            Table::Records | Table::Changes => Self {
                version: row.try_get("version")?,
                kind: row.try_get("kind")?,
                owner: row.try_get("owner")?,
                name: row.try_get("name")?,
            },
        })
    }
}

/// How many values each root sealed.
async fn count(connection: &mut AnyConnection, roots: &dyn Roots) -> Result<BTreeMap<Option<u32>, Sealed>, StateError> {
    let mut counted: BTreeMap<Option<u32>, Sealed> = BTreeMap::new();
    for query in COUNTS {
        let rows = sqlx::query(query).bind(length_of(&roots.head())).fetch_all(&mut *connection).await?;
        for row in &rows {
            let (table, head): (String, Vec<u8>) = (row.try_get(0)?, row.try_get(1)?);
            let number = unsigned(row.try_get(2)?);
            let sealed = counted.entry(roots.root_of(&head)).or_default();
            match table.as_str() {
                "records" => sealed.records += number,
                "changes" => sealed.changes += number,
                "approvals" => sealed.approvals += number,
                _ => sealed.tokens += number,
            }
        }
    }
    Ok(counted)
}

/// PostgreSQL counts bytes of a value in the smaller kind of integer.
fn length_of(head: &[u8]) -> i32 {
    i32::try_from(head.len()).unwrap_or_default()
}
