//! One store with gateways before it, that can be stopped in the middle of a write and ended there.
//!
//! The store itself stops whoever writes what the test names: a trigger of PostgreSQL waits for a lock that the test
//! holds, one of SQLite counts without end. What ends there has written nothing of it, as when the machine is lost.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sqlx::{AnyConnection, AssertSqlSafe, Connection as _, Executor as _, Row as _};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use toolwarden_test_postgres::Cluster;

use crate::caller::{ECHO, Fault, Session, post};
use crate::house::{Gateway, House, PATIENCE, at_url};
use crate::journal::{nodes, segments};
use crate::upstream::{Upstream, bad::SILENT};

const CONFIG: &str = "home/.config/toolwarden/toolwarden.toml";
const KEY: &str = "home/.config/toolwarden/master.key";
/// The number of the test's own lock.
const LOCK: i64 = 4_711_001;
/// A writer that keeps others out for so many looks in a row does not come to an end.
const LOOKS: u32 = 25;

/// Where a writer stops: the table, the kind of write, and which one of that kind.
#[derive(Debug, Clone, Copy)]
pub struct Stop {
    pub table: &'static str,
    pub write: &'static str,
    pub when: &'static str,
}

/// Gateways on one store, and a server behind them.
pub struct Place {
    pub upstream: Upstream,
    pub first: House,
    /// With a data directory of its own, where the store can be shared.
    pub second: Option<House>,
    cluster: Option<Cluster>,
    /// The table where writers stop, and who holds the lock they wait for.
    stops: Option<(&'static str, Option<AnyConnection>)>,
    pub tokens: Tokens,
}

#[derive(Default)]
pub struct Tokens {
    /// An agent's: each of its calls is counted in the store.
    pub agent: String,
    /// Another one's, which is good for no call any more.
    pub spent: String,
    /// A person's who may answer.
    pub person: String,
}

impl Place {
    pub async fn new(on_postgres: bool) -> Result<Self> {
        sqlx::any::install_default_drivers();
        let upstream = Upstream::start().await?;
        let cluster = if on_postgres { Some(Cluster::start()?) } else { None };
        let first = House::new("");
        let second = cluster.is_some().then(|| House::new(""));
        let mut place = Self { upstream, first, second, cluster, stops: None, tokens: Tokens::default() };
        place.configure("return");
        // It makes the key, which the other one is given. Told to end as soon as it says that it listens, it ends well.
        place.first.serve().await.stop().await;
        if let Some(second) = &place.second {
            fs::write(second.path(KEY), fs::read(place.first.path(KEY))?)?;
            for (path, mode) in [("home/.config/toolwarden", 0o700), (KEY, 0o600)] {
                fs::set_permissions(second.path(path), fs::Permissions::from_mode(mode))?;
            }
        }
        let agent = ["--role", "pm", "--user", "ada", "--max-calls"];
        place.tokens = Tokens {
            agent: place.issue(&[&agent[..], &["100000"]].concat()).await?,
            spent: place.issue(&[&agent[..], &["1"]].concat()).await?,
            person: place.issue(&["--person", "--user", "bob", "--right", "approver"]).await?,
        };
        Ok(place)
    }

    /// What is done with held calls from the next start on.
    pub fn configure(&self, hold: &str) {
        let store = self.cluster.as_ref().map(|cluster| format!("[store]\nurl = \"{}\"\n", cluster.url()));
        for house in [Some(&self.first), self.second.as_ref()].into_iter().flatten() {
            let server = at_url("notes", &self.upstream.url);
            let scopes: String = [ECHO, SILENT].map(|tool| format!("tools.{tool}.scope = \"pm\"\n")).concat();
            let role = "[roles.pm]\nallow = [\"notes:*\"]\n";
            let store = store.as_deref().unwrap_or_default();
            house.write(CONFIG, &format!("{store}[gateway]\nhold = \"{hold}\"\n{server}{scopes}{role}"));
        }
    }

    async fn issue(&self, words: &[&str]) -> Result<String> {
        let told = self.told(&self.first, &[&["tokens", "issue"], words].concat()).await?;
        Ok(told.get("token").and_then(Value::as_str).context("a token")?.to_owned())
    }

    /// What a command says.
    pub async fn told(&self, house: &House, words: &[&str]) -> Result<Value> {
        let said = house.run(&[words, &["--json"]].concat()).await;
        ensure!(said.succeeded, "{words:?}: {said:?}");
        Ok(serde_json::from_str(&said.out)?)
    }

    /// How a person is shown an approval.
    pub async fn state(&self, house: &House, id: &str) -> Result<String> {
        let view = self.told(house, &["approvals", "show", id]).await?;
        Ok(view.get("state").and_then(Value::as_str).context("a state")?.to_owned())
    }

    /// Waits until an approval is in a state; gives the last one it was seen in.
    pub async fn becomes(&self, house: &House, id: &str, wanted: &str) -> Result<String> {
        let looking = async {
            loop {
                let state = self.state(house, id).await?;
                if state == wanted {
                    return anyhow::Ok(state);
                }
                sleep(Duration::from_millis(100)).await;
            }
        };
        match timeout(PATIENCE, looking).await {
            Ok(state) => state,
            Err(_) => self.state(house, id).await,
        }
    }

    /// A person's answer by a gateway's own API: it is this process that writes it.
    pub async fn answer(&self, base: &str, id: &str, answer: &str) -> Result<(u16, String), Fault> {
        let path = format!("/api/v1/approvals/{answer}");
        post(base, &path, &self.tokens.person, &json!({ "id": id })).await
    }

    /// The same by somebody who knows that the call may have run.
    pub async fn approve_again(&self, base: &str, id: &str) -> Result<(u16, String), Fault> {
        post(base, "/api/v1/approvals/approve", &self.tokens.person, &json!({ "id": id, "again": true })).await
    }

    async fn connection(&self) -> Result<AnyConnection> {
        let url = match &self.cluster {
            Some(cluster) => cluster.url(),
            None => {
                format!("sqlite://{}", self.first.path("home/.local/share/toolwarden/toolwarden.sqlite").display())
            }
        };
        Ok(AnyConnection::connect(&url).await?)
    }

    pub async fn sql(&self, statement: &str) -> Result<()> {
        let mut connection = self.connection().await?;
        connection.execute(AssertSqlSafe(statement.to_owned())).await.with_context(|| statement.to_owned())?;
        Ok(connection.close().await?)
    }

    /// The newest approval and its state, as it lies in the store.
    pub async fn row(&self) -> Result<Option<(String, String)>> {
        let mut connection = self.connection().await?;
        let query = "SELECT id, state FROM approvals ORDER BY held_us DESC, id DESC LIMIT 1";
        let row = sqlx::query(query).fetch_optional(&mut connection).await?;
        connection.close().await?;
        row.map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).transpose()
    }

    /// Every approval and its state, as they lie in the store.
    pub async fn states(&self) -> Result<HashMap<String, String>> {
        let mut connection = self.connection().await?;
        let rows = sqlx::query("SELECT id, state FROM approvals").fetch_all(&mut connection).await?;
        connection.close().await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }

    /// From now on whoever writes this stops.
    pub async fn stop_at(&mut self, stop: Stop) -> Result<()> {
        let Stop { table, write, when } = stop;
        let head = format!("CREATE TRIGGER stops AFTER {write} ON {table}");
        self.stops = Some((table, None));
        if self.cluster.is_none() {
            let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
            self.sql(&format!("CREATE VIEW IF NOT EXISTS endless AS {numbers}")).await?;
            return self.sql(&format!("{head} WHEN {when} BEGIN SELECT COUNT(*) FROM endless; END")).await;
        }
        let mut holder = self.connection().await?;
        holder.execute(AssertSqlSafe(format!("SELECT pg_advisory_lock({LOCK})"))).await?;
        self.stops = Some((table, Some(holder)));
        let waits = format!("BEGIN PERFORM pg_advisory_xact_lock({LOCK}); RETURN NULL; END");
        let function = "CREATE OR REPLACE FUNCTION stops() RETURNS trigger LANGUAGE plpgsql AS";
        self.sql(&format!("{function} $$ {waits} $$")).await?;
        self.sql(&format!("{head} FOR EACH ROW WHEN ({when}) EXECUTE FUNCTION stops()")).await
    }

    /// Waits until somebody stopped there.
    pub async fn stopped(&self) -> Result<()> {
        let mut connection = self.connection().await?;
        connection.execute(if self.cluster.is_some() { "SELECT 1" } else { "PRAGMA busy_timeout = 0" }).await?;
        let looking = async {
            let mut looks = 0;
            // PostgreSQL says who waits. SQLite says that somebody writes, which stays so.
            let enough = if self.cluster.is_some() { 1 } else { LOOKS };
            while looks < enough {
                sleep(Duration::from_millis(10)).await;
                looks = if is_stopped(&mut connection, self.cluster.is_some()).await? { looks + 1 } else { 0 };
            }
            anyhow::Ok(())
        };
        timeout(PATIENCE, looking).await.context("nobody came to where writers stop")??;
        Ok(connection.close().await?)
    }

    /// Nobody stops any more. Who stopped must be gone: nothing of what it wrote there counts.
    pub async fn let_go(&mut self) -> Result<()> {
        match self.stops.take() {
            None => Ok(()),
            Some((_, None)) => self.sql("DROP TRIGGER stops").await,
            Some((table, Some(holder))) => {
                // The database notices late that a client is gone which it does not listen to; its transaction ends now.
                let waiting = format!("locktype = 'advisory' AND NOT granted AND objid = {LOCK}");
                self.sql(&format!("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE {waiting}")).await?;
                holder.close().await?;
                self.sql(&format!("DROP TRIGGER stops ON {table}")).await
            }
        }
    }

    /// Makes a call under a number; the whole answer.
    pub async fn call(&self, gateway: &Gateway, token: &str, tool: &str, number: &str) -> Result<String, Fault> {
        call(gateway.base().to_owned(), token.to_owned(), tool.to_owned(), number.to_owned()).await
    }

    /// The same beside the test: its gateway may end before there is an answer.
    pub fn calls(&self, gateway: &Gateway, token: &str, tool: &str, number: &str) -> JoinHandle<Result<String, Fault>> {
        let owned = str::to_owned;
        tokio::spawn(call(owned(gateway.base()), owned(token), owned(tool), owned(number)))
    }

    /// The same; with another connection of the session, by which it can be given up.
    pub async fn waits(&self, gateway: &Gateway, tool: &str, number: &str) -> Result<Session, Fault> {
        let mut session = Session::open_as(gateway.base(), "notes", &self.tokens.agent).await?;
        let beside = session.beside().await?;
        let (tool, arguments) = (tool.to_owned(), json!({ "number": number }));
        tokio::spawn(async move { session.call(&tool, &arguments).await });
        Ok(beside)
    }

    /// How often the server saw a call.
    pub fn seen(&self, number: &str) -> u32 {
        self.upstream.calls().get(number).copied().unwrap_or_default()
    }

    /// Whether every chain of every gateway is whole.
    pub async fn verifies(&self) -> Result<()> {
        for house in [Some(&self.first), self.second.as_ref()].into_iter().flatten() {
            let said = house.run(&["audit", "verify"]).await;
            ensure!(said.succeeded && said.out.contains("whole") && !said.out.contains("BROKEN"), "{said:?}");
        }
        Ok(())
    }
}

async fn is_stopped(connection: &mut AnyConnection, on_postgres: bool) -> Result<bool> {
    if on_postgres {
        let waiting = format!("locktype = 'advisory' AND NOT granted AND objid = {LOCK}");
        let query = format!("SELECT COUNT(*) FROM pg_locks WHERE {waiting}");
        let waiting: i64 = sqlx::query(AssertSqlSafe(query)).fetch_one(connection).await?.try_get(0)?;
        return Ok(waiting > 0);
    }
    let is_busy = connection.execute("BEGIN IMMEDIATE").await.is_err();
    if !is_busy {
        connection.execute("ROLLBACK").await?;
    }
    Ok(is_busy)
}

/// Makes a call under a number, in a session of its own; the whole answer.
pub async fn call(base: String, token: String, tool: String, number: String) -> Result<String, Fault> {
    let mut session = Session::open_as(&base, "notes", &token).await?;
    let answer = session.call(&tool, &json!({ "number": number })).await?;
    Ok(answer.to_string())
}

/// What a home's journal says of a call that left under an approval: nothing, that it was to leave, or that it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Journaled {
    Nothing,
    Intent,
    Outcome,
}

pub fn journaled(house: &House, approval: &str) -> Journaled {
    let mut said = Journaled::Nothing;
    for node in nodes(house) {
        let text: String = segments(&node).iter().map(|file| fs::read_to_string(file).unwrap_or_default()).collect();
        let records: Vec<Value> =
            text.lines().filter_map(|line| serde_json::from_str(line.split_once(' ')?.1).ok()).collect();
        let is = |record: &Value, name: &str, value: &str| record.get(name).and_then(Value::as_str) == Some(value);
        let intents =
            records.iter().filter(|record| is(record, "kind", "intent") && is(record, "approval_id", approval));
        for intent in intents {
            let ended =
                records.iter().any(|record| is(record, "kind", "outcome") && record.get("call") == intent.get("call"));
            said = if ended { Journaled::Outcome } else { Journaled::Intent };
        }
    }
    said
}
