//! A gateway in a temporary directory, built from a config text and served on a loopback port.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tempfile::TempDir;
use tokio::sync::watch;
use toolwarden_core::json::Limits;
use toolwarden_core::{Clock, Layer, Origin, Sourced};
use toolwarden_doors::{Listener, Workers, serve};
use toolwarden_gateway::{Book, Gateway, Hold, Identities, Parts, Protection, Reading, Settings};
use toolwarden_mcp::Message;
use toolwarden_mcp::message::read_one;
use toolwarden_policy::input::{PolicyInput, RuleFile};
use toolwarden_policy::{PolicySet, shipped};
use toolwarden_review::{Desk, Parts as DeskParts, Times};
use toolwarden_sources::readers::config::{Standing, read_bytes};
use toolwarden_sources::{ConfigFile, Loaded, ServerDefinition};
use toolwarden_store::state::Feed;
use toolwarden_store::{Database, Journal, JournalOptions, Location, State};
use toolwarden_vault::FileKeyring;

use crate::client::{Ask, Got, Listening, legacy, send};
use crate::keyring::KitKeyring;
use crate::{Fault, Server};

/// Everything may run: for attacks that are not about the judge.
pub const OPEN: &str = "[auto_run]\nmode = \"run_everything\"\n";
/// Two principals, told apart by the mode of their URL.
pub const TWO: &str =
    "[auto_run]\nmode = \"run_everything\"\n[modes.alice]\ngroups = [\"mcp\"]\n[modes.bob]\ngroups = [\"mcp\"]\n";

const STORE: &str = "store.sqlite";

/// A Monday noon.
#[derive(Debug)]
pub(crate) struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_700_481_600).unwrap_or_default()
    }
}

/// What a gateway is built from.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// `toolwarden.toml`.
    pub config: String,
    pub allowlist: &'static [&'static str],
    pub settings: Settings,
    /// Held calls are kept for persons, and callers bear tokens.
    pub asks: bool,
}

impl Given {
    /// A config text of several parts.
    #[must_use]
    pub fn new(parts: &[&str]) -> Self {
        Self { config: parts.join("\n"), ..Self::default() }
    }

    #[must_use]
    pub fn asking(self) -> Self {
        Self { asks: true, ..self }.set(|settings| settings.hold = Hold::Return)
    }

    #[must_use]
    pub fn allowing(self, allowlist: &'static [&'static str]) -> Self {
        Self { allowlist, ..self }
    }

    #[must_use]
    pub fn set(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }
}

/// A gateway that is being served.
#[derive(Debug)]
pub struct House {
    pub gateway: Arc<Gateway>,
    pub address: SocketAddr,
    /// Where held calls lie, where they are kept.
    pub state: Option<State>,
    _stop: watch::Sender<bool>,
    _workers: Arc<Workers>,
    directory: TempDir,
}

impl House {
    /// Builds and serves a gateway.
    ///
    /// # Errors
    /// The config is wrong, or something of it cannot be made.
    pub async fn build(given: &Given) -> Result<Self, Fault> {
        let reading = read_bytes("toolwarden.toml", Standing::Operator, given.config.as_bytes());
        if reading.broken {
            return Err(format!("{}\n{:?}", given.config, reading.findings).into());
        }
        let (input, servers) = input(given, reading.value);
        Self::of(input, servers, given.settings.clone(), true, given.asks).await
    }

    /// Puts another config in force.
    ///
    /// # Errors
    /// It is wrong, or refused.
    pub fn judge_by(&self, given: &Given) -> Result<(), Fault> {
        let reading = read_bytes("toolwarden.toml", Standing::Operator, given.config.as_bytes());
        let (mut input, written) = input(given, reading.value);
        input.base.rules.push(shipped_rules());
        let policy = PolicySet::compile(&input).map_err(|refused| format!("{refused:?}"))?;
        let reading = Reading { policy: &policy, servers: &input.servers, written: &written, definitions: &written };
        self.gateway.replace_policy(reading).map_err(|refused| format!("{refused:?}"))?;
        Ok(())
    }

    /// Where the database is, for whoever can write to it.
    #[must_use]
    pub fn database(&self) -> String {
        format!("sqlite://{}", self.directory.path().join(STORE).display())
    }

    /// Serves what was loaded from files.
    ///
    /// # Errors
    /// As `build`.
    pub async fn loaded(loaded: Loaded) -> Result<Self, Fault> {
        Self::of(loaded.input, loaded.definitions, Settings::default(), loaded.shipped_rules, false).await
    }

    /// Puts another policy in force, as when files change.
    ///
    /// # Errors
    /// It does not compile, or is refused.
    pub fn take_over(&self, loaded: Loaded) -> Result<(), Fault> {
        let mut input = loaded.input;
        if loaded.shipped_rules {
            input.base.rules.push(shipped_rules());
        }
        let policy = PolicySet::compile(&input).map_err(|refused| format!("{refused:?}"))?;
        let (servers, written) = (&input.servers, &loaded.definitions);
        let reading = Reading { policy: &policy, servers, written, definitions: written };
        self.gateway.replace_policy(reading).map_err(|refused| format!("{refused:?}"))?;
        Ok(())
    }

    async fn of(
        mut input: PolicyInput,
        definitions: Vec<ServerDefinition>,
        settings: Settings,
        has_shipped_rules: bool,
        asks: bool,
    ) -> Result<Self, Fault> {
        if has_shipped_rules {
            input.base.rules.push(shipped_rules());
        }
        let directory = tempfile::tempdir()?;
        let keyring = Arc::new(KitKeyring(FileKeyring::open(&directory.path().join("keys"))?));
        let options = JournalOptions::new(directory.path().join("journal"), "test");
        let (journal, _) = Journal::open(&options, keyring.clone(), Arc::new(Noon))?;
        let (identities, desk, state) = match asks {
            true => {
                let database = Database::open(&Location::File(directory.path().join(STORE))).await?;
                let state = State::over(database, keyring.clone());
                crate::bearers::issue(&state).await?;
                let feed = Arc::new(Feed::start(state.clone()).await?);
                let known = Identities::of(feed.clone(), state.clone(), "ada".to_owned(), None);
                let desk = Desk::new(DeskParts {
                    feed,
                    state: state.clone(),
                    journal: journal.clone(),
                    keyring: keyring.clone(),
                    clock: Arc::new(Noon),
                    node: "test-1".to_owned(),
                    times: Times::default(),
                });
                (known, Some(desk), Some(state))
            }
            false => (Identities::default(), None, None),
        };
        let pins = Book::open(None, &definitions, &*keyring, Noon.now())?;
        let protection = state.clone().map(|state| Protection::new(state, keyring.clone(), None));
        let gateway = Gateway::new(Parts {
            workspace: input.local.workspace.clone(),
            pins,
            policy: PolicySet::compile(&input).map_err(|refused| format!("{refused:?}"))?,
            local_user: input.local.user.clone(),
            servers: input.servers,
            definitions,
            settings,
            journal,
            keyring,
            clock: Arc::new(Noon),
            identities,
            desk,
            classifier: None,
            protection,
        });
        let listener = Listener::bind("127.0.0.1:0".parse()?).await?;
        let (address, workers) = (listener.address(), Arc::new(Workers::start(1)?));
        let (stop, stopping) = watch::channel(false);
        let (served, serves) = (gateway.clone(), workers.clone());
        tokio::spawn(async move { serve(served, listener, &serves, stopping).await });
        Ok(Self { gateway, address, state, _stop: stop, _workers: workers, directory })
    }

    /// The server `notes` says that its tools changed.
    ///
    /// # Errors
    /// There is no such server.
    pub fn hears_of_changed_tools(&self) -> Result<(), Fault> {
        let news = br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        match (read_one(news, Limits::DEFAULT)?, self.gateway.upstream("notes")) {
            (Message::Notification(news), Some(upstream)) => {
                upstream.take_note(&news);
                Ok(())
            }
            _ => Err("there is no such server".into()),
        }
    }

    /// A gateway where everything may run, in front of one server called `notes`.
    ///
    /// # Errors
    /// As `build`.
    pub async fn open_before(server: &Server) -> Result<Self, Fault> {
        Self::build(&Given::new(&[OPEN, &server.table("notes")])).await
    }

    /// A gateway that lets `safe` run of the server `notes`, and asks a person for all else.
    ///
    /// # Errors
    /// As `build`.
    pub async fn guarded_before(server: &Server) -> Result<Self, Fault> {
        Self::build(&Given::new(&[&server.table("notes")]).allowing(&["notes:safe"])).await
    }

    /// The same with two principals and everything open.
    ///
    /// # Errors
    /// As `build`.
    pub async fn two_before(server: &Server) -> Result<Self, Fault> {
        Self::build(&Given::new(&[TWO, &server.table("notes")])).await
    }

    /// Sends a request and reads the whole answer.
    ///
    /// # Errors
    /// No connection, or no end.
    pub async fn send(&self, ask: &Ask) -> Result<Got, Fault> {
        send(self.address, ask).await
    }

    /// Sends a request and listens to the answer.
    ///
    /// # Errors
    /// No connection.
    pub async fn listen(&self, ask: &Ask) -> Result<Listening, Fault> {
        Listening::start(self.address, ask).await
    }

    /// Opens a legacy session.
    ///
    /// # Errors
    /// It was not opened.
    pub async fn session(&self, path: &str) -> Result<Session, Fault> {
        self.session_of(path, "2025-11-25", "{}").await
    }

    /// The same in some revision, from a client with capabilities.
    ///
    /// # Errors
    /// It was not opened.
    pub async fn session_of(&self, path: &str, version: &str, capabilities: &str) -> Result<Session, Fault> {
        let got = self.send(&hello(path, version, capabilities)).await?;
        let id = got.header("mcp-session-id").ok_or_else(|| format!("no session: {got}"))?;
        Ok(Session { id, path: path.to_owned() })
    }
}

/// What a config says.
fn input(given: &Given, config: ConfigFile) -> (PolicyInput, Vec<ServerDefinition>) {
    let mut input = PolicyInput::default();
    input.base.auto_run = config.auto_run.clone();
    input.base.modes.clone_from(&config.modes);
    input.base.roles.clone_from(&config.roles);
    input.base.settings.clone_from(&config.settings);
    input.servers = config.servers.iter().map(|server| server.input.clone()).collect();
    "ada".clone_into(&mut input.local.user);
    let origin = Origin::record(Layer::Config, "test");
    let sourced = |text: &&str| Sourced::new((*text).to_owned(), origin.clone());
    input.users.entry("ada".to_owned()).or_default().mcp_allowlist = given.allowlist.iter().map(sourced).collect();
    (input, config.servers)
}

fn shipped_rules() -> RuleFile {
    RuleFile { origin: Origin::new(Layer::Shipped, shipped::RULES_SOURCE, 1, 1), text: shipped::RULES.to_owned() }
}

/// The opening of a legacy session.
#[must_use]
pub fn hello(path: &str, version: &str, capabilities: &str) -> Ask {
    let members = format!(
        r#""protocolVersion":"{version}","capabilities":{capabilities},"clientInfo":{{"name":"h","version":"1"}}"#
    );
    Ask::post(path, legacy("0", "initialize", &members))
}

/// A legacy session of the client.
#[derive(Debug, Clone)]
pub struct Session {
    pub id: String,
    pub path: String,
}

impl Session {
    /// A message of this session.
    #[must_use]
    pub fn post(&self, body: impl Into<Vec<u8>>) -> Ask {
        Ask::post(&self.path, body).with("Mcp-Session-Id", &self.id)
    }

    /// A request of this session.
    #[must_use]
    pub fn ask(&self, id: &str, method: &str, members: &str) -> Ask {
        self.post(legacy(id, method, members))
    }

    /// A call of this session.
    #[must_use]
    pub fn call(&self, id: &str, tool: &str) -> Ask {
        self.ask(id, "tools/call", &crate::client::calling(tool))
    }

    #[must_use]
    pub fn get(&self) -> Ask {
        Ask::get(&self.path).with("Mcp-Session-Id", &self.id)
    }
}

/// Waits until something is so, for some seconds.
pub async fn eventually(check: impl Fn() -> bool) -> bool {
    for _ in 0..500 {
        if check() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    false
}
