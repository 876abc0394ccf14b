//! The clerk's operations by themselves: recorded before they are done, announced after, or not done.

mod answering;
mod deciding;
mod engines;
mod table;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tempfile::TempDir;
use toolwarden_control::operations::{
    AllowlistAdd, AllowlistRemove, AuditQuery, AuditVerify, Nothing, PolicyRecords, ServersShow, ToolsAccept,
    ToolsList, TrustAdd, TrustList, VaultRotateKey, VaultStatus, allowlist_add, audit_query, servers_show,
    tools_accept, tools_list, trust_add, vault_rotate_key,
};
use toolwarden_control::{
    Actor, AnswerTimes, Clerk, ClerkParts, ControlError, Operation, Selection, ServerView, Servers, SessionView, Stays,
    Via,
};
use toolwarden_core::json::Part;
use toolwarden_core::{Caller, Clock, Keyring, Layer, Origin};
use toolwarden_pins::{Book, Kind, Sighting};
use toolwarden_policy::input::{Declared, ServerInput};
use toolwarden_sources::{Locations, ServerDefinition, WorkspaceTrust};
use toolwarden_store::{
    Database, Index, Journal, JournalOptions, KeyRow, Location, MasterKey, Phase, Roots, RootsError, Standing, State,
};
use toolwarden_test_postgres::Cluster;
use toolwarden_vault::FileKeyring;

#[derive(Debug)]
struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        Timestamp::constant(1_800_000_000, 0)
    }
}

#[derive(Debug)]
struct OneServer;

impl Servers for OneServer {
    fn list(&self) -> Vec<ServerView> {
        vec![ServerView {
            name: "gw".to_owned(),
            status: "connected".to_owned(),
            tools: 1,
            detail: None,
            reached_by: "command".to_owned(),
            source: "test".to_owned(),
            owner: None,
            tools_refused: None,
            gateway: None,
        }]
    }

    fn tools(&self, _server: &str) -> Vec<(String, Option<String>)> {
        vec![("read".to_owned(), None)]
    }

    fn own(&self) -> Vec<ServerInput> {
        Vec::new()
    }

    fn restart(&self, server: &str) -> bool {
        server == "gw"
    }

    fn sessions(&self) -> Vec<SessionView> {
        let of = |id: &str, user: &str| SessionView {
            id: id.to_owned(),
            user: Some(user.to_owned()),
            version: "2025-11-25".to_owned(),
            ..SessionView::default()
        };
        vec![of("two", "bob"), of("one", "ada")]
    }

    fn may_switch(&self, id: &str, mode: Option<&str>) -> Result<(), Stays> {
        self.switch_session(id, mode).map(drop)
    }

    fn switch_session(&self, id: &str, mode: Option<&str>) -> Result<SessionView, Stays> {
        let open = self.sessions().into_iter().find(|session| session.id == id).ok_or(Stays::Gone)?;
        match mode {
            Some("unknown") => Err(Stays::Refused("there is no mode `unknown`".to_owned())),
            mode => Ok(SessionView { mode: mode.map(str::to_owned), ..open }),
        }
    }

    fn waits_for_restart(&self) -> Vec<String> {
        Vec::new()
    }

    fn refused_policy(&self) -> Option<toolwarden_control::RefusedPolicy> {
        None
    }
}

/// Roots that are numbers only: the clerk knows no more of them.
#[derive(Debug)]
struct Numbers;

impl Roots for Numbers {
    fn take(&self, _kept: &[KeyRow]) -> Result<(), RootsError> {
        Ok(())
    }

    fn standing(&self, kept: &[KeyRow]) -> Result<Standing, RootsError> {
        let last = kept.last().ok_or(RootsError("there are no roots".to_owned()))?;
        let phase = if last.state == "waiting" { Phase::Waiting } else { Phase::Settled };
        Ok(Standing { phase, root: last.id })
    }

    fn advanced(&self, kept: &[KeyRow]) -> Result<Vec<KeyRow>, RootsError> {
        let mut next = kept.to_vec();
        match next.last_mut() {
            Some(last) if last.state == "waiting" => "current".clone_into(&mut last.state),
            _ => next.push(key(2, "waiting")),
        }
        Ok(next)
    }

    fn head(&self) -> Vec<u8> {
        vec![0; 5]
    }

    fn root_of(&self, _head: &[u8]) -> Option<u32> {
        None
    }

    fn master_key(&self) -> MasterKey {
        let (source, place, mark) = ("plaintext".to_owned(), "nowhere".to_owned(), "00".to_owned());
        MasterKey { backend: "basic_text", source, place, mark, is_protected: false }
    }
}

fn key(id: u32, state: &str) -> KeyRow {
    KeyRow { id, state: state.to_owned(), master: String::new(), sealed: vec![0] }
}

use engines::Engine;

/// A clerk over a fresh directory; the directory lives as long as this.
struct Office {
    clerk: Clerk,
    actor: Actor,
    locations: Locations,
    directory: TempDir,
    state: Option<State>,
    _cluster: Option<Cluster>,
}

async fn office(records: bool) -> Office {
    office_with(Engine::File, records).await
}

async fn office_on(engine: Engine) -> Office {
    office_with(engine, true).await
}

async fn office_with(engine: Engine, records: bool) -> Office {
    let Ok(directory) = tempfile::tempdir() else { unreachable!("a temporary directory can be made") };
    let home = directory.path().to_path_buf();
    let data_dir = home.join("data");
    let user_id = std::fs::metadata(&home).map(|found| std::os::unix::fs::MetadataExt::uid(&found)).unwrap_or_default();
    let locations = Locations {
        git_configs: Vec::new(),
        config_dir: home.join("config"),
        data_dir: data_dir.clone(),
        config: None,
        working_directory: home.clone(),
        workspace: None,
        user: "ada".to_owned(),
        user_id,
        system_admin_file: None,
        workspace_trust: WorkspaceTrust::Recorded,
        home,
    };
    assert!(toolwarden_sources::make_data_directory(&locations).is_ok());
    let keyring = FileKeyring::open(&locations.config_dir).ok().map(|keyring| Arc::new(keyring) as Arc<dyn Keyring>);
    let options = JournalOptions::new(data_dir.join("journal"), "test");
    let journal =
        keyring.clone().filter(|_| records).and_then(|keyring| Journal::open(&options, keyring, Arc::new(Noon)).ok());
    let cluster = (engine == Engine::Postgres).then(Cluster::start).transpose();
    let Ok(cluster) = cluster else { unreachable!("{cluster:?}") };
    let location = match &cluster {
        Some(cluster) => Location::parse(&cluster.url(), &data_dir).ok(),
        None => Some(Location::File(data_dir.join("toolwarden.sqlite"))),
    };
    let Some(location) = location else { unreachable!("an address can be read") };
    let database = Database::open(&location).await.ok();
    let state = database.clone().zip(keyring.clone()).map(|(database, keyring)| State::over(database, keyring));
    let state = state.map(|state| state.with_roots(Arc::new(Numbers)));
    let (index, kept) = (database.map(Index::over), state.clone());
    let clerk = Clerk::new(ClerkParts {
        locations: locations.clone(),
        clock: Arc::new(Noon),
        keyring,
        journal: journal.map(|(journal, _)| journal),
        index,
        state,
        feed: None,
        servers: Some(Arc::new(OneServer)),
        address: None,
        page: Some("https://gate.example/approve/".to_owned()),
        answer_times: AnswerTimes { held: Duration::from_secs(86_400), approved: Duration::from_secs(3_600) },
    });
    Office {
        clerk,
        actor: Actor::owner("ada", Via::ControlSocket),
        locations,
        directory,
        state: kept,
        _cluster: cluster,
    }
}

impl Office {
    async fn run<O: Operation>(&self, request: O::Request) -> Result<O::Outcome, ControlError> {
        // Through JSON and back, as it travels.
        let text = serde_json::to_string(&request).unwrap_or_default();
        let request = serde_json::from_str(&text);
        assert!(request.is_ok(), "{text}");
        let Ok(request) = request else { return Err(ControlError::Ended) };
        let outcome = self.clerk.perform::<O>(&self.actor, request).await?;
        let text = serde_json::to_string(&outcome).unwrap_or_default();
        let travelled = serde_json::from_str(&text);
        assert!(travelled.is_ok(), "{text}");
        travelled.map_err(|_| ControlError::Ended)
    }

    async fn details(&self) -> Vec<String> {
        let found = self.run::<AuditQuery>(audit_query::Request::default()).await;
        let rows = found.map(|found| found.rows).unwrap_or_default();
        rows.iter().filter_map(|row| Some(row.get("detail")?.as_str()?.to_owned())).collect()
    }

    /// A gateway sees what the server `gw` lists.
    fn sees(&self, tools: &[&str]) {
        let input = ServerInput::new("gw", Origin::record(Layer::Config, "test"), Declared::ByOperator);
        let Ok(keyring) = FileKeyring::open(&self.locations.config_dir) else { unreachable!("a key is made") };
        let book = Book::open(Some(self.locations.clone()), &[ServerDefinition::of(input)], &keyring, Noon.now());
        let listed: Vec<_> = tools.iter().map(|tool| serde_json::json!({ "name": tool })).collect();
        let page = Part::composed(serde_json::json!({ "tools": listed }).to_string());
        let (Ok(book), Ok(page)) = (book, page) else { unreachable!("a book is opened") };
        let caller = Arc::new(Caller::local_person("ada"));
        let sighting =
            Sighting { server: "gw".into(), kind: Kind::Tool, caller, pages: vec![page], is_whole: true, after: 0 };
        assert!(book.record(&sighting, Noon.now()).is_ok());
    }

    async fn accepts(&self, version: Option<&str>) -> Result<Vec<String>, String> {
        let request =
            tools_accept::Request { server: "gw".to_owned(), name: None, version: version.map(str::to_owned) };
        let done = self.run::<ToolsAccept>(request).await.map_err(|error| format!("{error:?}"))?;
        Ok(done.accepted.into_iter().map(|one| one.name).collect())
    }

    /// Writes the config that counts.
    fn config(&self, text: &str) {
        assert!(std::fs::write(self.locations.config_dir.join("toolwarden.toml"), text).is_ok());
    }

    /// How many records the store holds.
    async fn records(&self) -> usize {
        self.run::<PolicyRecords>(Nothing {}).await.map_or(usize::MAX, |found| found.records.len())
    }
}

fn entry(text: &str) -> allowlist_add::Request {
    allowlist_add::Request { entry: text.to_owned(), ..allowlist_add::Request::default() }
}

#[tokio::test]
async fn a_change_is_recorded_with_who_and_what_and_announced() {
    let office = office(true).await;
    let mut follower = office.clerk.changes().follow();
    let follow = tokio::spawn(async move {
        let mut seen = Vec::new();
        while let Some(change) = follower.next().await {
            let is_second = !seen.is_empty();
            follower.took(&change, is_second.then(|| "broken".to_owned()));
            seen.push(change.by.map(|author| author.user));
            if is_second {
                break;
            }
        }
        seen
    });
    let added = office.run::<AllowlistAdd>(entry("gw:read")).await;
    assert!(added.is_ok_and(|added| added.outcome == "added" && added.decision.as_deref() == Some("allow")));
    let removed = office.run::<AllowlistRemove>(entry("gw:read")).await;
    assert!(removed.is_ok_and(|removed| removed.not_in_force.as_deref() == Some("broken")));
    assert_eq!(follow.await.ok(), Some(vec![Some("ada".to_owned()), Some("ada".to_owned())]));
    assert_eq!(
        office.details().await,
        ["remove entry `gw:read`, allowlist of ada", "add entry `gw:read`, allowlist of ada"]
    );
    assert!(office.run::<AuditVerify>(Nothing {}).await.is_ok_and(|report| report.whole && report.nodes.len() == 1));
}

#[tokio::test]
async fn what_was_so_already_is_recorded_as_no_change() {
    let office = office(true).await;
    assert!(office.run::<AllowlistRemove>(entry("gw:read")).await.is_ok_and(|removed| removed.places.is_empty()));
    assert!(office.run::<AllowlistAdd>(entry("gw:read")).await.is_ok());
    assert!(office.run::<AllowlistAdd>(entry("gw:read")).await.is_ok_and(|added| added.outcome == "already_there"));
    let (add, remove) = ("add entry `gw:read`, allowlist of ada", "remove entry `gw:read`, allowlist of ada");
    let unchanged = |words: &str| format!("nothing changed: {words}");
    assert_eq!(office.details().await, [unchanged(add), add.to_owned(), unchanged(remove)]);
}

#[tokio::test]
async fn what_cannot_be_recorded_is_not_done() {
    let office = office(false).await;
    let refused = office.run::<AllowlistAdd>(entry("gw:read")).await;
    assert!(matches!(refused, Err(ControlError::Without("the journal"))), "{refused:?}");
    assert_eq!(office.records().await, 0);
}

#[tokio::test]
async fn what_cannot_be_meant_is_neither_recorded_nor_done() {
    let office = office(true).await;
    for text in ["no entry", "gw:re*", "builtin:shell.run", "gw:a/b"] {
        let refused = office.run::<AllowlistAdd>(entry(text)).await;
        assert!(refused.is_err_and(|error| error.fault().is_input()), "{text}");
    }
    assert_eq!(office.details().await, Vec::<String>::new());
    assert_eq!(office.records().await, 0);
}

#[tokio::test]
async fn a_change_that_fails_is_recorded_as_failed() {
    let office = office(true).await;
    let request = trust_add::Request { directory: "nowhere".into(), ..trust_add::Request::default() };
    assert!(office.run::<TrustAdd>(request).await.is_err_and(|error| error.code() == "bad_input"));
    let details = office.details().await;
    assert!(matches!(details.as_slice(), [failed] if failed.starts_with("failed: trust ")), "{details:?}");
    assert!(office.run::<TrustList>(Nothing {}).await.is_ok_and(|list| list.directories.is_empty()));
}

#[tokio::test]
async fn pages_lead_through_all_rows() {
    let office = office(true).await;
    for number in 0..5 {
        assert!(office.run::<AllowlistAdd>(entry(&format!("gw:t{number}"))).await.is_ok());
    }
    let (mut after, mut seen) = (None, Vec::new());
    for _ in 0..10 {
        let request = audit_query::Request { selection: Selection::default(), limit: Some(2), after };
        let page = office.run::<AuditQuery>(request).await;
        let Ok(page) = page else { unreachable!("{page:?}") };
        seen.extend(page.rows.iter().filter_map(|row| row.get("sequence")?.as_u64()));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen.len(), 5);
    assert!(seen.is_sorted_by(|newer, older| newer > older), "{seen:?}");
    let wrong = audit_query::Request { after: Some("nonsense".to_owned()), ..audit_query::Request::default() };
    assert!(office.run::<AuditQuery>(wrong).await.is_err_and(|error| error.code() == "bad_input"));
}

#[tokio::test]
async fn a_server_shows_its_tools_with_hints() {
    let office = office(true).await;
    assert!(office.run::<AllowlistAdd>(entry("gw:read")).await.is_ok());
    let shown = office.run::<ServersShow>(servers_show::Request { name: "gw".to_owned() }).await;
    let decision = shown.ok().and_then(|shown| shown.tools.first()?.decision.clone());
    assert_eq!(decision.as_deref(), Some("allow"));
    let missing = office.run::<ServersShow>(servers_show::Request { name: "other".to_owned() }).await;
    assert!(missing.is_err_and(|error| error.fault().help.as_deref() == Some("there are: gw")));
}

#[tokio::test]
async fn gate_12_what_waits_is_shown_as_held() {
    let office = office(true).await;
    office.sees(&["other"]);
    office.sees(&["other", "read"]);
    let shown = office.run::<ServersShow>(servers_show::Request { name: "gw".to_owned() }).await;
    let tool = shown.ok().and_then(|shown| shown.tools.first().cloned());
    let met = tool.map(|tool| (tool.name, tool.decision, tool.reason));
    let held = ("read".to_owned(), Some("hold".to_owned()), Some("definition_new".to_owned()));
    assert_eq!(met, Some(held));
}

#[tokio::test]
async fn gate_12_everything_of_a_server_is_accepted_as_it_was_shown_or_not_at_all() {
    let office = office(true).await;
    office.sees(&["first"]);
    office.sees(&["first", "second", "third"]);
    let listed = office.run::<ToolsList>(tools_list::Request::default()).await;
    let shown = listed.ok().and_then(|listed| listed.waiting.get("gw").cloned()).unwrap_or_default();
    let unseen = office.accepts(None).await.err().unwrap_or_default();
    let command = format!("toolwarden tools accept gw --version {shown}");
    assert!(unseen.contains("tools diff gw") && unseen.contains(&command), "{unseen}");
    office.sees(&["first", "second", "third", "fourth"]);
    let other = office.accepts(Some(&shown)).await.err().unwrap_or_default();
    assert!(other.contains("something else waits now"), "{other}");
    let listed = office.run::<ToolsList>(tools_list::Request::default()).await;
    let shown = listed.ok().and_then(|listed| listed.waiting.get("gw").cloned()).unwrap_or_default();
    assert_eq!(
        office.accepts(Some(&shown)).await,
        Ok(vec!["fourth".to_owned(), "second".to_owned(), "third".to_owned()])
    );
    office.sees(&["fifth"]);
    assert_eq!(office.accepts(None).await, Ok(vec!["fifth".to_owned()]), "of one there is no doubt");
}

#[tokio::test]
async fn vault_4_a_rotation_is_recorded_step_by_step_or_not_begun() {
    for records in [false, true] {
        let office = office(records).await;
        let file = Location::File(office.directory.path().join("data/toolwarden.sqlite"));
        let Ok(database) = Database::open(&file).await else { unreachable!("it was opened before") };
        assert!(database.replace_keys(&[], &[key(1, "current")]).await.is_ok_and(|replaced| replaced));
        let step = |root| office.run::<VaultRotateKey>(vault_rotate_key::Request { root, master: false });
        let begun = step(None).await;
        let states = database.keys().await.map(|keys| keys.iter().map(|key| key.state.clone()).collect::<Vec<_>>());
        if !records {
            assert!(begun.is_err_and(|error| error.to_string().contains("the journal is needed")));
            assert_eq!(states.ok(), Some(vec!["current".to_owned()]));
            continue;
        }
        assert!(begun.is_ok_and(|begun| begun.root == 2 && begun.state == "waiting"));
        assert_eq!(states.ok(), Some(vec!["current".to_owned(), "waiting".to_owned()]));
        let status = office.run::<VaultStatus>(Nothing {}).await;
        assert!(status.is_ok_and(|status| {
            status.warning.is_some() && status.rotation.is_some_and(|rotation| rotation.state == "waiting")
        }));
        // Whoever goes on says with what; what is over is not begun anew.
        assert!(step(Some(2)).await.is_ok_and(|done| done.is_done()));
        assert!(step(Some(2)).await.is_ok_and(|done| done.is_done()));
        assert!(step(Some(3)).await.is_err_and(|error| error.code() == "bad_input"));
        let added = "a root after root 1 is added, and waits until every gateway knows it";
        assert_eq!(office.details().await, ["root 2 is to seal in the place of the former one", added]);
    }
}
