//! Reaches the clerk: the running server's over the control socket, or one made here for a single
//! operation. Commands ask the same way and print the same words either way.

mod line;

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use tokio::net::UnixStream;
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;
use toolwarden_console::SOCKET_NAME;
use toolwarden_control::operations::{Nothing, PolicyRecords};
use toolwarden_control::{Actor, AnswerTimes, Clerk, ClerkParts, Fault, Needs, Operation, Place, Via};
use toolwarden_core::{Keyring, Records};
use toolwarden_sources::{Locations, StoreChoice};
use toolwarden_store::{Database, Index, Journal, JournalOptions, Location, State};
use toolwarden_vault::{FileKeyring, KEY_FILE};

use crate::environment::{self, SystemClock};
use crate::keys::Keys;
use crate::output::{self, BadInput, remark_text};
use crate::{data_directory, keys, store};
use toolwarden_cli::Places;

/// How often somebody who waits is told so.
const TICK: std::time::Duration = std::time::Duration::from_millis(500);

/// The way to the clerk.
pub struct Desk {
    runtime: Runtime,
    locations: Locations,
    /// Kept open between questions, for those who ask again and again.
    store: OnceCell<Store>,
    /// Nobody types a passphrase twice for one command.
    keys: OnceCell<Arc<Keys>>,
}

/// The store, as it was opened here.
struct Store {
    choice: StoreChoice,
    database: Database,
    index: Index,
}

impl Desk {
    pub fn open(places: &Places, workspace: Option<&Path>) -> Result<Self> {
        let locations = environment::locations(places, workspace)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, locations, store: OnceCell::new(), keys: OnceCell::new() })
    }

    /// Where the person stands, for requests that depend on it.
    pub fn place(&self) -> Place {
        Place::of(&self.locations)
    }

    /// Lets time pass.
    pub fn pause(&self, span: std::time::Duration) {
        self.runtime.block_on(async { tokio::time::sleep(span).await });
    }

    /// Asks the running server where one answers, else does the operation here.
    pub fn ask<O: Operation>(&self, request: O::Request) -> Result<O::Outcome> {
        self.runtime.block_on(self.answer::<O>(request))
    }

    /// The same for what takes a while: tells again and again that it is still waited for.
    pub fn ask_waiting<O: Operation>(&self, request: O::Request, mut tick: impl FnMut()) -> Result<O::Outcome> {
        self.runtime.block_on(async {
            let mut answer = std::pin::pin!(self.answer::<O>(request));
            loop {
                tokio::select! {
                    answer = &mut answer => return answer,
                    () = tokio::time::sleep(TICK) => tick(),
                }
            }
        })
    }

    /// Runs something that asks again and again.
    pub fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Whether a server runs here.
    pub fn is_served(&self) -> Result<bool> {
        let socket = self.locations.data_dir.join(SOCKET_NAME);
        self.runtime.block_on(self.connect(&socket)).map(|stream| stream.is_some())
    }

    /// The same as `ask`, where something else is waited for, too.
    pub async fn answer<O: Operation>(&self, request: O::Request) -> Result<O::Outcome> {
        let socket = self.locations.data_dir.join(SOCKET_NAME);
        match self.connect(&socket).await? {
            Some(stream) => line::ask::<O>(stream, &request, &socket).await?.map_err(|fault| failed(&fault)),
            None => self.here::<O>(request).await,
        }
    }

    /// Asks only a running server; none where no server answers.
    pub fn ask_server<O: Operation>(&self, request: &O::Request) -> Result<Option<O::Outcome>> {
        self.runtime.block_on(self.answer_of_server::<O>(request))
    }

    /// The same, where something else is waited for, too.
    pub async fn answer_of_server<O: Operation>(&self, request: &O::Request) -> Result<Option<O::Outcome>> {
        let socket = self.locations.data_dir.join(SOCKET_NAME);
        let Some(stream) = self.connect(&socket).await? else { return Ok(None) };
        line::ask::<O>(stream, request, &socket).await?.map(Some).map_err(|fault| failed(&fault))
    }

    /// A stream to a running server. Where there can be none, the directory it would be in says more than its socket.
    async fn connect(&self, socket: &Path) -> Result<Option<UnixStream>> {
        let connected = line::connect(socket).await;
        connected.map_err(|error| data_directory::fault(&self.locations).map_or(error, Into::into))
    }

    /// Where the files are that count.
    pub fn locations(&self) -> &Locations {
        &self.locations
    }

    /// What the store holds, as the running server knows it where one answers; nothing where there is no store.
    pub fn records(&self) -> Result<Records> {
        self.records_and_own().map(|(records, _)| records)
    }

    /// The same, with the names of servers that are the running server's own: in no file and no record.
    pub fn records_and_own(&self) -> Result<(Records, Vec<String>)> {
        let mut outcome = self.ask::<PolicyRecords>(Nothing {})?;
        let own = std::mem::take(&mut outcome.own);
        let records = outcome.into_records();
        Ok((records.ok_or_else(|| anyhow!("the store was written by a newer version of toolwarden"))?, own))
    }

    async fn here<O: Operation>(&self, request: O::Request) -> Result<O::Outcome> {
        let (mut keyring, mut journal, mut index, mut state) = (None, None, None, None);
        match O::NEEDS {
            Needs::Files => {}
            Needs::Policy | Needs::IndexAndPolicy => {
                if O::NEEDS == Needs::IndexAndPolicy {
                    index = Some(self.index().await?);
                }
                if store::exists(&self.locations, &store::here(&self.locations)?)? {
                    state = Some(self.state().await?);
                }
            }
            Needs::Index => index = Some(self.index().await?),
            Needs::IndexAndKey => match self.index_of_record().await {
                Ok(opened) => {
                    index = Some(opened);
                    keyring = self.keyring_of_journal().await?;
                }
                Err(error) => {
                    output::remark(&format!(
                        "warning: the index cannot be used, so that a missing end of the record may go unnoticed: \
                         {error:#}; restore it from a backup"
                    ));
                    keyring = self.key_file()?;
                }
            },
            Needs::State => state = Some(self.state().await?),
            Needs::Journal => {
                let opened = self.keyring().await?;
                state = Some(self.state().await?);
                journal = Some(self.journal(&opened)?);
                keyring = Some(opened);
            }
        }
        let times = store::answer_times(&store::here(&self.locations)?);
        let clerk = Clerk::new(ClerkParts {
            locations: self.locations.clone(),
            clock: Arc::new(SystemClock),
            keyring,
            journal: journal.clone(),
            index,
            state,
            feed: None,
            servers: None,
            address: None,
            page: None,
            answer_times: AnswerTimes { held: times.held, approved: times.approved },
        });
        let actor = Actor::owner(self.locations.user.clone(), Via::CommandLine);
        let outcome = clerk.perform::<O>(&actor, request).await;
        if let Some(journal) = journal {
            journal.close().await.context("the journal could not be closed")?;
        }
        outcome.map_err(|error| failed(&error.fault()))
    }

    async fn index(&self) -> Result<Index> {
        Ok(self.store().await?.index.clone())
    }

    /// The index over a record. A file that is gone is not made anew beside it: what the index has seen is what tells
    /// that the end of a record is missing.
    async fn index_of_record(&self) -> Result<Index> {
        let has_record = self.locations.data_dir.join("journal").is_dir();
        if let Location::File(path) = store::location(&self.locations, &store::here(&self.locations)?)?
            && has_record
            && !path.exists()
        {
            return Err(anyhow!("{} is gone", path.display()));
        }
        self.index().await
    }

    async fn store(&self) -> Result<&Store> {
        let open = || async {
            let choice = store::here(&self.locations)?;
            let (database, index) = store::open(&self.locations, &choice).await?;
            anyhow::Ok(Store { choice, database, index })
        };
        self.store.get_or_try_init(open).await
    }

    async fn state(&self) -> Result<State> {
        let store = self.store().await?;
        store::state(&self.locations, &store.choice, &store.database, self.keys().await?).await
    }

    async fn keys(&self) -> Result<&Arc<Keys>> {
        let open = || async {
            let store = self.store().await?;
            keys::open(&self.locations, &store.choice, &store.database).await.map(Arc::new)
        };
        self.keys.get_or_try_init(open).await
    }

    async fn keyring(&self) -> Result<Arc<dyn Keyring>> {
        Ok(self.keys().await?.ring.clone())
    }

    /// The keys a journal was signed with; none where nothing was recorded yet.
    async fn keyring_of_journal(&self) -> Result<Option<Arc<dyn Keyring>>> {
        let has_keys = !self.store().await?.database.keys().await?.is_empty();
        if !has_keys && !self.locations.data_dir.join("journal").is_dir() {
            return Ok(None);
        }
        self.keyring().await.context("signatures cannot be checked").map(Some)
    }

    /// The keys for a record whose store is lost: by the copy of the roots, or by the key file for data of earlier versions.
    fn key_file(&self) -> Result<Option<Arc<dyn Keyring>>> {
        if let Some(ring) = keys::of_lost_store(&self.locations, &store::here(&self.locations)?)? {
            return Ok(Some(Arc::new(ring)));
        }
        let exists = self.locations.config_dir.join(KEY_FILE).exists();
        Ok(if exists { Some(Arc::new(FileKeyring::open(&self.locations.config_dir)?)) } else { None })
    }

    fn journal(&self, keyring: &Arc<dyn Keyring>) -> Result<Journal> {
        toolwarden_sources::make_data_directory(&self.locations)?;
        let options = JournalOptions::new(self.locations.data_dir.join("journal"), "cli");
        let (journal, recovery) = Journal::open(&options, keyring.clone(), Arc::new(SystemClock))?;
        if !recovery.is_clean() {
            output::remark(&recovery.sentence());
        }
        Ok(journal)
    }
}

impl Drop for Desk {
    /// A database that is closed leaves no write-ahead files behind.
    fn drop(&mut self) {
        if let Some(store) = self.store.take() {
            self.runtime.block_on(store.database.close());
        }
    }
}

/// An error of the clerk as people read it, with the right exit code.
fn failed(fault: &Fault) -> anyhow::Error {
    let mut text = fault.message.clone();
    if let Some(sides) = &fault.sides {
        let side = |side: &Option<serde_json::Value>| side.as_ref().map_or("nothing".to_owned(), ToString::to_string);
        text.push_str(&format!("\n  there now  {}\n  yours      {}", side(&sides.now), side(&sides.yours)));
    }
    for finding in &fault.findings {
        text.push('\n');
        text.push_str(&remark_text(finding));
    }
    if let Some(help) = &fault.help {
        text.push_str(&format!("; {help}"));
    }
    if fault.is_input() { BadInput(text).into() } else { anyhow!(text) }
}

/// Says on stderr what a running server did not take over; the exit code must not hide it.
pub fn warn_of_server(not_in_force: Option<&str>) -> output::Exit {
    match not_in_force {
        None => output::Exit::Done,
        Some(why) => {
            output::remark(&format!("the change is stored, but the running server keeps its former policy: {why}"));
            output::Exit::Failed
        }
    }
}
