//! A gateway in a temporary directory, built from a config text, with one recording server.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use toolwarden_classifier::{Classifier, Ledger, Parts as ClassifierParts};
use toolwarden_core::{AuditRecord, Caller, Clock, Layer, Origin, RecordKind, Sourced};
use toolwarden_gateway::{Book, Budgets, Gateway, Hold, Identities, Parts, Protection, Reading, Settings};
use toolwarden_policy::input::{AdminInput, PermissionsInput, PolicyInput, RuleFile};
use toolwarden_policy::{PolicySet, shipped};
use toolwarden_review::{Desk, Parts as DeskParts, Times};
use toolwarden_sources::readers::config::{Standing, read_bytes};
use toolwarden_sources::{ConfigFile, Locations, WorkspaceTrust};
use toolwarden_store::state::Feed;
use toolwarden_store::{Database, Journal, JournalOptions, Location, State};
use toolwarden_vault::FileKeyring;

use super::recorder::{Recorder, Speaks};

/// A Monday noon.
#[derive(Debug)]
pub(super) struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_700_481_600).unwrap_or_default()
    }
}

/// So many seconds after noon.
#[derive(Debug)]
struct AfterNoon(i64);

impl Clock for AfterNoon {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(Noon.now().as_second() + self.0).unwrap_or_default()
    }
}

/// A store that several gateways share, each with connections of its own.
#[derive(Debug, Clone)]
pub(super) struct SharedStore {
    state: State,
    database: Database,
    keyring: Arc<FileKeyring>,
    directory: Arc<tempfile::TempDir>,
}

impl SharedStore {
    pub(super) async fn make() -> Option<Self> {
        let directory = Arc::new(tempfile::tempdir().ok()?);
        let keyring = Arc::new(FileKeyring::open(&directory.path().join("keys")).ok()?);
        let database = Self::open(&directory).await?;
        Some(Self { state: State::over(database.clone(), keyring.clone()), database, keyring, directory })
    }

    async fn open(directory: &tempfile::TempDir) -> Option<Database> {
        Database::open(&Location::File(directory.path().join("store.sqlite"))).await.ok()
    }

    /// The same store for another gateway.
    async fn again(&self) -> Option<Self> {
        let database = Self::open(&self.directory).await?;
        Some(Self { state: State::over(database.clone(), self.keyring.clone()), database, ..self.clone() })
    }
}

/// What a policy is made of, for one test.
#[derive(Debug, Clone, Default)]
pub(super) struct Given {
    /// `toolwarden.toml` without its server `notes`.
    pub(super) config: &'static str,
    /// Further keys of `[servers.notes]`.
    pub(super) server: &'static str,
    /// Cedar rules in place of the shipped ones.
    pub(super) rules: Option<&'static str>,
    pub(super) admin: Option<AdminInput>,
    pub(super) allowlist: &'static [&'static str],
    pub(super) blocks: &'static [&'static str],
    /// How long something may be left unused.
    pub(super) session_idle: Option<Duration>,
    pub(super) answer_time: Option<Duration>,
    /// Who is told of calls.
    pub(super) tracer: Option<toolwarden_telemetry::Tracer>,
    /// How long a call waits for its turn.
    pub(super) turn_time: Option<Duration>,
    /// Streams and sessions one caller may have.
    pub(super) most_of_one: Option<usize>,
    /// Servers that are one user's, and whose.
    pub(super) owned: &'static [(&'static str, &'static str)],
    /// With a desk for held calls, and what becomes of them.
    pub(super) hold: Option<Hold>,
    pub(super) hold_time: Option<Duration>,
    /// The machine that may pay for some holds.
    pub(super) classifier: Option<toolwarden_classifier::Settings>,
    /// The store it shares with others, and how many seconds after noon it is.
    pub(super) shares: Option<(SharedStore, i64)>,
    /// Instructions of the local person: what to allow, what to hold.
    pub(super) instructions: Option<(&'static str, &'static str)>,
}

impl Given {
    /// Everything may run.
    pub(super) const OPEN: Self = Self {
        config: "[auto_run]\nmode = \"run_everything\"\n",
        server: "",
        rules: None,
        admin: None,
        allowlist: &[],
        blocks: &[],
        session_idle: None,
        answer_time: None,
        tracer: None,
        turn_time: None,
        most_of_one: None,
        owned: &[],
        hold: None,
        hold_time: None,
        classifier: None,
        shares: None,
        instructions: None,
    };
}

/// A gateway and what stands around it.
pub(super) struct House {
    pub(super) gateway: Arc<Gateway>,
    pub(super) recorder: Recorder,
    pub(super) journal: Journal,
    pub(super) locations: Locations,
    /// What the desk writes to, where there is one.
    pub(super) state: Option<State>,
    shares: Option<SharedStore>,
    _directory: tempfile::TempDir,
}

impl House {
    /// Why there is none is for the test's log; the test fails by what it misses.
    pub(super) async fn build(given: &Given) -> Option<Self> {
        Self::before(given, Speaks::Both).await
    }

    /// The same before a server of these eras.
    pub(super) async fn before(given: &Given, speaks: Speaks) -> Option<Self> {
        let recorder = Recorder::start(speaks).await.ok()?;
        Self::around(given, recorder).await
    }

    pub(super) async fn around(given: &Given, recorder: Recorder) -> Option<Self> {
        let text = format!("{}\n[servers.notes]\nurl = \"{}\"\n{}\n", given.config, recorder.url, given.server);
        Self::configured(given, &text, recorder).await
    }

    /// Two servers, `notes` and `other`.
    pub(super) async fn with_two(given: &Given, kinds: [Speaks; 2]) -> Option<(Self, Recorder)> {
        let [first, second] = kinds;
        let (recorder, other) = (Recorder::start(first).await.ok()?, Recorder::start(second).await.ok()?);
        let servers =
            format!("[servers.notes]\nurl = \"{}\"\n[servers.other]\nurl = \"{}\"\n", recorder.url, other.url);
        let house = Self::configured(given, &format!("{}\n{servers}", given.config), recorder).await?;
        Some((house, other))
    }

    /// From a whole config text.
    pub(super) async fn configured(given: &Given, text: &str, recorder: Recorder) -> Option<Self> {
        Self::known_to(given, text, recorder, Identities::default()).await
    }

    /// The same for whoever has these identities.
    pub(super) async fn known_to(
        given: &Given,
        text: &str,
        recorder: Recorder,
        identities: Identities,
    ) -> Option<Self> {
        let directory = tempfile::tempdir().ok()?;
        let config = read(given, text);
        let input = input(given, &config);
        let policy = PolicySet::compile(&input);
        assert!(policy.is_ok(), "{:?}", policy.err());
        let locations = locations(directory.path())?;
        let keyring = Arc::new(FileKeyring::open(&directory.path().join("keys")).ok()?);
        let options = JournalOptions::new(directory.path().join("journal"), "test");
        let (journal, _) = Journal::open(&options, keyring.clone(), Arc::new(Noon)).ok()?;
        let mut settings = Settings::default();
        settings.session_idle = given.session_idle.unwrap_or(settings.session_idle);
        settings.answer_time = given.answer_time.unwrap_or(settings.answer_time);
        settings.tracer.clone_from(&given.tracer);
        settings.turn_time = given.turn_time.unwrap_or(settings.turn_time);
        settings.most_sessions_of_one = given.most_of_one.unwrap_or(settings.most_sessions_of_one);
        settings.most_streams_of_one = given.most_of_one.unwrap_or(settings.most_streams_of_one);
        settings.hold = given.hold.unwrap_or_default();
        settings.hold_time = given.hold_time.unwrap_or(settings.hold_time);
        let state = match given.hold {
            Some(_) => {
                let file = Location::File(directory.path().join("store.sqlite"));
                Some(State::over(Database::open(&file).await.ok()?, keyring.clone()))
            }
            None => None,
        };
        let shares = match &given.shares {
            Some((store, _)) => Some(store.again().await?),
            None => None,
        };
        let clock: Arc<dyn Clock> = Arc::new(AfterNoon(given.shares.as_ref().map_or(0, |(_, later)| *later)));
        let protection = shares.as_ref().map(|store| {
            Protection::new(store.state.clone(), store.keyring.clone(), Some(store.directory.path().to_path_buf()))
        });
        let ledger = |store: &SharedStore| -> Arc<dyn Ledger> { Arc::new(Budgets::new(store.state.clone())) };
        let ledger = shares.as_ref().map(ledger);
        let desk = match &state {
            Some(state) => Some(Desk::new(DeskParts {
                feed: Arc::new(Feed::start(state.clone()).await.ok()?),
                state: state.clone(),
                journal: journal.clone(),
                keyring: keyring.clone(),
                clock: Arc::new(Noon),
                node: "test-1".to_owned(),
                times: Times::default(),
            })),
            None => None,
        };
        let pins = Book::open(Some(locations.clone()), &config.servers, &*keyring, Noon.now()).ok()?;
        let gateway = Gateway::new(Parts {
            workspace: None,
            policy: policy.ok()?,
            servers: input.servers,
            pins,
            definitions: config.servers,
            settings,
            journal: journal.clone(),
            keyring: keyring.clone(),
            clock,
            identities,
            local_user: "ada".to_owned(),
            desk,
            classifier: given.classifier.clone().map(|settings| classifier(settings, keyring.clone(), ledger)),
            protection,
        });
        Some(Self { gateway, recorder, journal, locations, state, shares, _directory: directory })
    }

    /// The store it shares with others cannot be used any more.
    pub(super) async fn store_goes_away(&self) {
        if let Some(store) = &self.shares {
            store.database.clone().close().await;
        }
    }

    /// Puts another policy in force, for the same server.
    pub(super) fn judge_by(&self, given: &Given) {
        let text = format!("{}\n[servers.notes]\nurl = \"{}\"\n{}\n", given.config, self.recorder.url, given.server);
        self.take_over(given, &text);
    }

    /// The same for whatever servers a whole config text has.
    pub(super) fn take_over(&self, given: &Given, text: &str) {
        let config = read(given, text);
        let mut input = input(given, &config);
        input.version = self.gateway.live.policy().version() + 1;
        let policy = PolicySet::compile(&input);
        let Ok(policy) = policy else { unreachable!("{:?}", policy.err()) };
        let (servers, written) = (&input.servers, &config.servers);
        let reading = Reading { policy: &policy, servers, written, definitions: written };
        assert!(self.gateway.replace_policy(reading).is_ok());
    }

    /// The records of calls in the journal: kind, decision and reason.
    pub(super) async fn records(&self) -> Vec<serde_json::Value> {
        let mut records = self.all_records().await;
        records.retain(|record| record.get("method").is_none_or(|method| method != "definitions"));
        records
    }

    /// The same with those of definitions that were seen.
    pub(super) async fn all_records(&self) -> Vec<serde_json::Value> {
        let mark = AuditRecord::new(RecordKind::Event, Noon.now(), 0);
        assert!(self.journal.record(&mark).await.is_ok());
        let root = self._directory.path().join("journal").join("test-1");
        let files = std::fs::read_dir(root).into_iter().flatten().flatten();
        let texts = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
        let lines: Vec<String> = texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
        lines.iter().filter_map(|line| serde_json::from_str(line.split_once(' ')?.1).ok()).collect()
    }
}

fn read(given: &Given, text: &str) -> ConfigFile {
    let reading = read_bytes("toolwarden.toml", Standing::Operator, text.as_bytes());
    assert!(!reading.broken, "{text}\n{:?}", reading.findings);
    let mut config = reading.value;
    for server in &mut config.servers {
        let owner = given.owned.iter().find(|(name, _)| *name == server.input.name);
        server.input.owner = owner.map(|(_, owner)| (*owner).to_owned());
        server.connection.private_network = owner.is_some();
    }
    config
}

fn input(given: &Given, config: &ConfigFile) -> PolicyInput {
    let origin = Origin::record(Layer::Config, "test");
    let sourced =
        |texts: &[&str]| texts.iter().map(|text| Sourced::new((*text).to_owned(), origin.clone())).collect::<Vec<_>>();
    let mut input = PolicyInput::default();
    input.base.auto_run = config.auto_run.clone();
    input.base.modes.clone_from(&config.modes);
    input.base.roles.clone_from(&config.roles);
    input.base.settings.clone_from(&config.settings);
    input.base.limits = config.gateway.limits;
    input.base.approvers.second_person.clone_from(&config.control.second_person);
    input.base.approvers.rules.clone_from(&config.control.approve);
    input.base.admin.clone_from(&given.admin);
    let text = given.rules.unwrap_or(shipped::RULES).to_owned();
    input.base.rules.push(RuleFile { origin: origin.clone(), text });
    input.servers = config.servers.iter().map(|server| server.input.clone()).collect();
    input.local.user = "ada".to_owned();
    let user = input.users.entry("ada".to_owned()).or_default();
    user.mcp_allowlist = sourced(given.allowlist);
    user.blocks = sourced(given.blocks);
    if let Some((allow, block)) = given.instructions {
        let (allow_instructions, block_instructions) = (Some(sourced(&[allow])), Some(sourced(&[block])));
        input.local.files.push(PermissionsInput { allow_instructions, block_instructions, ..Default::default() });
    }
    input
}

fn classifier(
    settings: toolwarden_classifier::Settings,
    keyring: Arc<FileKeyring>,
    ledger: Option<Arc<dyn Ledger>>,
) -> Arc<Classifier> {
    let made = Classifier::new(ClassifierParts { settings, keyring, clock: Arc::new(Noon), ledger });
    let Ok(made) = made else { unreachable!("{:?}", made.err()) };
    Arc::new(made)
}

/// A data directory of its own.
fn locations(directory: &Path) -> Option<Locations> {
    Some(Locations {
        git_configs: Vec::new(),
        home: directory.to_path_buf(),
        config_dir: directory.join("config"),
        data_dir: directory.join("data"),
        config: None,
        working_directory: directory.to_path_buf(),
        workspace: None,
        user: "ada".to_owned(),
        user_id: std::fs::metadata(directory).ok()?.uid(),
        system_admin_file: None,
        workspace_trust: WorkspaceTrust::default(),
    })
}

/// The local person.
pub(super) fn ada() -> Caller {
    Caller::local_person("ada")
}
