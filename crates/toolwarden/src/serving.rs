//! Builds a running gateway from the files of this place: keys, journal, index, servers.

mod classifying;
mod control;
mod file_versions;
mod file_watch;
mod persons;
mod readiness;
mod retaining;
mod taking;
mod telling;
mod webhooks;

use std::sync::{Arc, Weak};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};
use toolwarden_core::{Clock, Keyring, Records, Secret};
use toolwarden_doors::tls::{self, TlsAcceptor};
use toolwarden_gateway::{Book, Gateway, Hold, Identities, Parts, Protection, Settings, keep_noting};
use toolwarden_notices::upgrading;
use toolwarden_policy::input::Declared;
use toolwarden_review::{Desk, Parts as DeskParts, Times};
use toolwarden_sources::{ConfigFile, Locations, ServerDefinition, WebhookSection};
use toolwarden_store::index::{Shipper, ship, spawn_shipper};
use toolwarden_store::state::{Feed, Tokens};
use toolwarden_store::{Database, Index, Journal, JournalOptions, State, SyncLevel};
use toolwarden_telemetry::trace::{self, Collector, Exporter};
use toolwarden_telemetry::{LogFormat, LogLines, Tracer};

pub use self::classifying::settings as classifier_settings;
pub use self::readiness::Readiness;
use self::taking::Start;
pub use self::webhooks::of as check_webhooks;
use crate::environment::{self, SystemClock};
use crate::output::BadInput;
use crate::wire::House;
use crate::{keys, store};

/// Where the demo server is configured.
pub const DEMO: &str = "--demo";

/// How often the journal is delivered to the index.
const DELIVERY: Duration = Duration::from_secs(1);

/// How long a database may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(5);

/// Open files that its connections, those to servers and its own files can need.
const MOST_FILES: u64 = 65_536;

/// Sessions and streams are open files, and most systems start a program with room for a thousand: takes
/// as much as it may.
pub fn make_room_for_connections() {
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(MOST_FILES, |most| most.min(MOST_FILES));
    if limit.current.is_some_and(|now| now < wanted) {
        limit.current = Some(wanted);
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::warn!("the number of open files stays as it is: {error}");
        }
    }
}

/// A gateway and what runs beside it.
pub struct Running {
    telling: tokio::task::JoinHandle<()>,
    pub gateway: Arc<Gateway>,
    journal: Journal,
    shipper: Shipper,
    database: Database,
    state: State,
    feed: Arc<Feed>,
    index: Index,
    exporter: Option<Exporter>,
    keyring: Arc<dyn Keyring>,
    locations: Locations,
    start: Start,
    times: Times,
    public_url: Option<String>,
    webhooks: Vec<WebhookSection>,
}

/// What the policy is read with: the store, its keys, and what it holds.
pub struct Base {
    database: Database,
    index: Index,
    keyring: Arc<dyn Keyring>,
    is_protected: bool,
    state: State,
    feed: Arc<Feed>,
}

impl Base {
    /// Opens the store that the person's own config names.
    ///
    /// # Errors
    /// It cannot be used, or its keys cannot be had.
    pub async fn open(locations: &Locations) -> Result<Self> {
        let choice = store::here(locations)?;
        let (database, index) = store::open(locations, &choice).await?;
        let keys = Arc::new(keys::open(locations, &choice, &database).await?);
        let is_protected = keys.master.now().is_protected();
        let keyring: Arc<dyn Keyring> = keys.ring.clone();
        let state = store::state(locations, &choice, &database, &keys).await?;
        let feed = Arc::new(Feed::start(state.clone()).await?);
        Ok(Self { database, index, keyring, is_protected, state, feed })
    }

    /// What the store holds now.
    pub fn records(&self) -> Arc<Records> {
        self.feed.known().records.clone()
    }
}

/// Starts everything but the doors. `name` is the kind of process, for the journal.
pub async fn start(base: Base, house: House, name: &str) -> Result<Running> {
    let House { locations, loaded, policy } = house;
    let start = Start::of(&loaded, &locations);
    let Base { database, index, keyring, is_protected, state, feed } = base;
    if !is_protected {
        tracing::warn!("[vault] key = \"plaintext\": whoever can read the database can read everything in it");
    }
    let root = locations.data_dir.join("journal");
    let mut options = JournalOptions::new(root.clone(), name);
    options.sync = sync_level(&loaded.config);
    if let Some(every) = loaded.config.audit.checkpoints {
        options.checkpoint_every = every;
    }
    options.segment_age = loaded.config.audit.retention.map(retaining::segment_age);
    let (journal, recovery) = Journal::open(&options, keyring.clone(), Arc::new(SystemClock))?;
    if !recovery.is_clean() {
        tracing::warn!("{}", recovery.sentence());
    }
    let shipper = spawn_shipper(root, index.clone(), Some(journal.clone()), DELIVERY);
    let pins = Book::open(Some(locations.clone()), &loaded.definitions, &*keyring, SystemClock.now())?;
    let (tracer, exporter) = tracing_of(&loaded.config, journal.node())?.unzip();
    let definitions = {
        let listed = &loaded.config.vault.workspace_env;
        loaded.definitions.into_iter().map(|one| with_environment(one, listed)).collect::<Vec<_>>()
    };
    let times = store::answer_times(&loaded.store);
    let public_url = loaded.config.gateway.public_url.clone();
    let webhooks = loaded.store.webhooks.clone();
    // Before anything starts: one that cannot be used is said now.
    webhooks::of(&webhooks)?;
    let node = index.stored_name(journal.node());
    let desk = Desk::new(DeskParts {
        state: state.clone(),
        feed: feed.clone(),
        journal: journal.clone(),
        keyring: keyring.clone(),
        clock: Arc::new(SystemClock),
        node,
        times,
    });
    recover(&desk, &index, &locations).await?;
    let local = &loaded.input.local;
    let has_permission_files = !local.files.is_empty() || !local.workspaces.is_empty();
    let here = upgrading::Here { local_user: &locations.user, has_permission_files };
    upgrading::tell(&state, here, &feed.known().tokens, SystemClock.now()).await;
    tokio::spawn(desk.clone().keep());
    let gateway = Gateway::new(Parts {
        policy,
        workspace: locations.workspace_root(),
        servers: loaded.input.servers,
        definitions,
        pins,
        settings: Settings { tracer, ..settings(&loaded.config) },
        journal: journal.clone(),
        keyring: keyring.clone(),
        clock: Arc::new(SystemClock),
        local_user: locations.user.clone(),
        identities: Identities::of(feed.clone(), state.clone(), locations.user.clone(), loaded.store.section.max_stale)
            .with_anonymous(loaded.config.gateway.anonymous_loopback),
        desk: Some(desk),
        classifier: classifying::open(&loaded.config, &keyring, &state),
        protection: Some(Protection::new(state.clone(), keyring.clone(), workspace(&locations))),
    });
    tokio::spawn(keep_noting(Arc::downgrade(&gateway)));
    if let Some(retention) = loaded.config.audit.retention {
        let kept = retaining::Kept { root: locations.data_dir.join("journal"), index: index.clone(), retention };
        tokio::spawn(kept.keep_up(journal.clone(), keyring.clone()));
    }
    tokio::spawn(follow_tokens(feed.clone(), Arc::downgrade(&gateway)));
    let telling = tokio::spawn(telling::tell(Arc::downgrade(&gateway), index.clone(), journal.node().clone()));
    Ok(Running {
        telling,
        gateway,
        journal,
        shipper,
        database,
        state,
        feed,
        index,
        exporter,
        keyring,
        locations,
        start,
        times,
        public_url,
        webhooks,
    })
}

/// The directory this process serves, by its one true path: another spelling must not be another workspace.
fn workspace(locations: &Locations) -> Option<std::path::PathBuf> {
    let workspace = locations.workspace.as_ref()?;
    Some(workspace.canonicalize().unwrap_or_else(|_| workspace.clone()))
}

/// What the last run of this process took and did not tell the end of.
async fn recover(desk: &Desk, index: &Index, locations: &Locations) -> Result<()> {
    if !desk.has_taken().await? {
        return Ok(());
    }
    ship(&locations.data_dir.join("journal"), index).await?;
    let found = desk.recover(index).await?;
    tracing::warn!(
        "{found} approved calls were on their way when this gateway last ended; see `toolwarden approvals list`"
    );
    Ok(())
}

/// Whoever lost a token, or has one that ended, loses what they have open with it.
async fn follow_tokens(feed: Arc<Feed>, gateway: Weak<Gateway>) {
    let mut versions = feed.token_versions();
    loop {
        let next = until_next_end(&feed.known().tokens);
        tokio::select! {
            changed = versions.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(next) => {}
        }
        let Some(gateway) = gateway.upgrade() else { return };
        gateway.identities_changed();
    }
}

/// How long it is until a token ends; at most a minute, since clocks are set.
fn until_next_end(tokens: &Tokens) -> Duration {
    const LONGEST: Duration = Duration::from_secs(60);
    let now = SystemClock.now();
    let ends = tokens.by_id.values().filter(|token| token.revoked_at.is_none());
    let next = ends.filter_map(|token| token.claims.expires_at).filter(|end| *end > now).min();
    let wait = next.and_then(|end| Duration::try_from(end.duration_since(now)).ok());
    // A little later, so that it has ended by then.
    wait.map_or(LONGEST, |wait| (wait + Duration::from_millis(5)).min(LONGEST))
}

impl Running {
    /// Ends children, then `workers`, whose calls say how they ended; writes what is left, delivers it.
    pub async fn stop(self, workers: impl Send) -> Result<()> {
        self.gateway.close().await;
        self.gateway.note_flows().await;
        let pins = self.gateway.pins.clone();
        // What could not be written is noted again when somebody looks.
        let _ = tokio::task::spawn_blocking(move || pins.keep_offers()).await;
        drop(workers);
        drop(self.gateway);
        self.telling.abort();
        let _ = tokio::time::timeout(GOODBYE, telling::take_back(&self.index, self.journal.node())).await;
        self.journal.close().await.context("the journal could not be closed")?;
        self.shipper.stop().await;
        if let Some(exporter) = self.exporter {
            exporter.stop().await;
        }
        // A file that is closed leaves no write-ahead files behind.
        let _ = tokio::time::timeout(GOODBYE, self.database.close()).await;
        Ok(())
    }
}

/// Ends when somebody tells the process to, from now on.
///
/// # Errors
/// Signals cannot be heard.
pub fn wait_for_signal() -> Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Logs go to stderr: stdout belongs to the protocol, or to people. The environment goes before the config.
///
/// # Errors
/// The environment names a format that is none.
pub fn log_to_stderr(config: &ConfigFile) -> Result<()> {
    let format = environment::text("TOOLWARDEN_LOG_FORMAT").or_else(|| config.telemetry.log.clone());
    let format = match format.as_deref() {
        None | Some("text") => LogFormat::Text { colours: environment::wants_colour() },
        Some("json") => LogFormat::Json,
        Some(_) => return Err(BadInput("TOOLWARDEN_LOG_FORMAT must be `text` or `json`".to_owned()).into()),
    };
    let filter = environment::text("TOOLWARDEN_LOG").unwrap_or_else(|| "info".to_owned());
    let filter = tracing_subscriber::EnvFilter::try_new(filter).unwrap_or_else(|_| "info".into());
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .event_format(LogLines::new(format, Arc::new(SystemClock)))
        .finish();
    // A second start in one process keeps the first subscriber.
    let _ = tracing::subscriber::set_global_default(subscriber);
    Ok(())
}

fn settings(config: &ConfigFile) -> Settings {
    let mut settings = Settings { inherited: environment::inherited(), ..Settings::default() };
    let gateway = &config.gateway;
    settings.methods.clone_from(&gateway.methods);
    settings.allowed_hosts.clone_from(&gateway.allowed_hosts);
    settings.allowed_hosts.extend(gateway.public_url.as_deref().and_then(host_of));
    settings.hold = match gateway.hold.as_deref() {
        Some("deny") => Hold::Deny,
        Some("wait") => Hold::Wait,
        _ => Hold::Return,
    };
    let audit = &config.audit;
    if audit.arguments {
        settings.record_arguments(&audit.redaction);
    }
    settings.hold_time = gateway.hold_time.unwrap_or(settings.hold_time);
    settings.grace = gateway.grace.unwrap_or(settings.grace);
    settings
}

/// Traces, where the config names a collector. `[audit] otlp` is another place for the same.
fn tracing_of(config: &ConfigFile, node: &str) -> Result<Option<(Tracer, Exporter)>> {
    let section = &config.telemetry;
    let address = match (&section.otlp, &config.audit.otlp) {
        (Some(one), Some(other)) if one != other => {
            return Err(BadInput("[telemetry] otlp and [audit] otlp differ; leave one out".to_owned()).into());
        }
        (one, other) => one.as_ref().or(other.as_ref()),
    };
    let Some(address) = address else { return Ok(None) };
    let mut headers = section.otlp_headers.clone();
    for (name, value) in &mut headers {
        // Only the user's own config has a say here, so it may read the environment.
        let text = filled(value.reveal_to_upstream(), true);
        let missing = |missing| BadInput(format!("[telemetry] otlp_headers `{name}`: `{missing}` has no value here"));
        *value = Secret::new(text.map_err(missing)?);
    }
    let collector = Collector::new(address, &headers);
    let collector = collector.map_err(|error| BadInput(format!("[telemetry] otlp: {error}")))?;
    Ok(Some(trace::start(collector, node)))
}

fn host_of(url: &str) -> Option<String> {
    let rest = url.split_once("://").map(|(_, rest)| rest)?;
    rest.split(['/', '?', '#']).next().map(str::to_owned)
}

fn sync_level(config: &ConfigFile) -> SyncLevel {
    match config.audit.sync.as_deref() {
        Some("100ms") => SyncLevel::Every100ms,
        Some("always") => SyncLevel::Always,
        Some("store") => SyncLevel::Store,
        _ => SyncLevel::Os,
    }
}

/// Fills `${env:NAME}` in: any for servers of the operator's own config, those that `[vault] workspace_env` lists for
/// servers a workspace brought, none for others (VAULT-6). A server whose values cannot be filled in is not started with
/// the text as it stands.
pub fn with_environment(mut definition: ServerDefinition, workspace_env: &[String]) -> ServerDefinition {
    let declared = definition.input.declared;
    let may_read = |name: &str| match declared {
        Declared::ByOperator => true,
        Declared::ByWorkspace => workspace_env.iter().any(|listed| listed == name),
        Declared::ByUser => false,
    };
    let mut unresolved = None;
    let mut fill = |value: &mut Secret| match filled_from(value.reveal_to_upstream(), may_read) {
        Ok(text) => *value = Secret::new(text),
        Err(name) => unresolved = Some(name),
    };
    definition.connection.env.values_mut().for_each(&mut fill);
    definition.connection.headers.values_mut().for_each(&mut fill);
    if let Some(name) = unresolved {
        tracing::warn!(server = definition.input.name, "`{name}` has no value here, so the server is not reached");
        definition.unresolved = Some(name);
    }
    definition
}

pub fn filled(text: &str, may_read: bool) -> Result<String, String> {
    filled_from(text, |_| may_read)
}

fn filled_from(text: &str, may_read: impl Fn(&str) -> bool) -> Result<String, String> {
    let mut done = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, end)) = after.split_once('}') else { break };
        done.push_str(before);
        let value = name.strip_prefix("env:").filter(|name| may_read(name)).and_then(environment::text);
        done.push_str(&value.ok_or_else(|| format!("${{{name}}}"))?);
        rest = end;
    }
    done.push_str(rest);
    Ok(done)
}

/// The certificate and key of `[gateway] tls`, paths as written in the config's directory.
pub fn tls(house: &House) -> Result<Option<TlsAcceptor>> {
    let Some(files) = &house.loaded.config.gateway.tls else { return Ok(None) };
    let base = house.loaded.config_path.as_deref().and_then(std::path::Path::parent);
    let base = base.unwrap_or(&house.locations.working_directory);
    let place = |written: &Option<String>| house.locations.resolve(base, written.as_deref().unwrap_or_default());
    let acceptor = tls::acceptor(&place(&files.cert), &place(&files.key));
    Ok(Some(acceptor.map_err(|error| BadInput(format!("[gateway] tls: {error}")))?))
}

/// The address to listen on. Only loopback, as long as nobody can prove who they are (SELF-4).
pub fn listen_address(config: &ConfigFile, given: Option<std::net::SocketAddr>) -> Result<std::net::SocketAddr> {
    let written = config.gateway.listen.as_deref().unwrap_or("127.0.0.1:8665");
    let address = match given {
        Some(address) => address,
        None => written.parse().map_err(|_| {
            let meant = toolwarden_cli::numeric(written);
            BadInput(format!("[gateway] listen = \"{written}\" is no address; write it as {meant}"))
        })?,
    };
    if !address.ip().is_loopback() {
        let why =
            format!("{address} can be reached by others, which is not supported yet; listen on 127.0.0.1 or [::1]");
        return Err(BadInput(why).into());
    }
    Ok(address)
}
