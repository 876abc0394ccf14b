//! The clerk of a running server: its socket, and the policy read again after every change, whether it
//! came through the socket or by an editor.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use anyhow::Result;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use toolwarden_console::{ControlSocket, Desk, PAGE_PATH, SocketError, serve_socket};
use toolwarden_control::{
    AnswerTimes, Clerk, ClerkParts, Follower, RefusedPolicy, ServerView, Servers, SessionView, Stays,
};
use toolwarden_core::Records;
use toolwarden_doors::hosts;
use toolwarden_gateway::{Gateway, NotSwitched, OpenSession};
use toolwarden_notices::{Answers, Courier};
use toolwarden_policy::input::ServerInput;

use super::file_watch::FileWatch;
use super::persons::{Hooks, Logins, Persons};
use super::taking::{Came, Taking};
use super::{DEMO, Readiness, Running, webhooks};
use crate::environment::{SystemClock, Terminal};
use crate::wire::House;

/// The records the command line writes.
const RECORDS: [&str; 2] = ["trust.json", "confirmed.json"];
/// How often they are looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Reads the policy again, from the files that counted at the start and what the store holds by now.
pub trait Reload: Fn(&Records) -> Result<House> + Send + Sync + 'static {}

impl<F: Fn(&Records) -> Result<House> + Send + Sync + 'static> Reload for F {}

impl Running {
    /// Who puts policies in force that are read again.
    pub fn taking<R: Reload>(&self, reload: R) -> Arc<Taking<R>> {
        let store = (self.feed.clone(), self.state.clone());
        let taking = Taking::new(&self.gateway, store, reload, &self.locations, &self.start);
        let taking = Arc::new(taking);
        tokio::spawn(follow_store(self.feed.versions(), Arc::downgrade(&taking)));
        taking
    }

    /// Opens the control socket and serves it until told to stop.
    ///
    /// # Errors
    /// The socket cannot be made. Where another server has it, or none can be, this one goes without.
    pub fn open_control(
        &self,
        (address, scheme): (SocketAddr, &str),
        taking: Arc<Taking<impl Reload>>,
        stop: watch::Receiver<bool>,
    ) -> Result<(JoinHandle<()>, Arc<Persons>)> {
        let watching = self.watch_files(self.file_watch(taking.clone()), stop.clone());
        let page = self.page(address, scheme);
        self.gateway.set_page(&page);
        let clerk = Arc::new(self.clerk(Some(address), Some(page)));
        let webhooks = self.deliver(clerk.clone())?;
        let desk = Desk::new(clerk.clone());
        tokio::spawn(follow(clerk.changes().follow(), taking));
        let logins =
            Logins { feed: self.feed.clone(), keyring: self.keyring.clone(), gateway: Arc::downgrade(&self.gateway) };
        let hooks = Hooks { answers: Arc::new(webhooks), clerk };
        let origins = hosts::origins(scheme, address, self.public_url.as_deref());
        let persons = Arc::new(Persons { desk: desk.clone(), logins: Arc::new(logins), hooks, origins });
        let socket = match ControlSocket::bind(&self.locations.data_dir) {
            Ok(socket) => socket,
            Err(SocketError::InUse(_)) => {
                tracing::warn!(
                    "another server has the control socket of this data directory: the command line speaks to that \
                     one, and this one reads its policy again when the files change"
                );
                return Ok((watching, persons));
            }
            Err(error @ SocketError::TooLong(_)) => {
                tracing::warn!("there is no control socket: {error}; files are read again when they change");
                return Ok((watching, persons));
            }
            Err(error) => return Err(error.into()),
        };
        Ok((tokio::spawn(serve_socket(socket, desk, stop)), persons))
    }

    /// Watches the files the policy was read from.
    pub fn file_watch<R: Reload>(&self, taking: Arc<Taking<R>>) -> Arc<FileWatch<R>> {
        let data = &self.locations.data_dir;
        let mut records: Vec<PathBuf> = RECORDS.iter().map(|name| data.join(name)).collect();
        records.push(self.locations.user_permissions());
        Arc::new(FileWatch::new(taking, records, &self.start.files, &self.start.looks))
    }

    /// Looks at the files and the accepted definitions at an interval.
    pub fn watch_files(&self, files: Arc<FileWatch<impl Reload>>, mut stop: watch::Receiver<bool>) -> JoinHandle<()> {
        let gateway = Arc::downgrade(&self.gateway);
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = tokio::time::sleep(LOOK) => {}
                    _ = stop.changed() => return,
                }
                if let Some(gateway) = gateway.upgrade() {
                    gateway.refresh_pins();
                    let pins = gateway.pins.clone();
                    if pins.has_unkept_offers() {
                        // Nobody here waits for whoever else changes the data directory.
                        drop(tokio::task::spawn_blocking(move || pins.keep_offers()));
                    }
                }
                files.look().await;
            }
        })
    }

    /// Reads the policy again whenever the process gets SIGHUP, as when a file changes: one that cannot be used leaves the
    /// former in force. A hang-up because the terminal is gone ends the process instead.
    ///
    /// # Errors
    /// Signals cannot be heard.
    pub fn reload_on_signal(
        &self,
        taking: Arc<Taking<impl Reload>>,
        readiness: Readiness,
        mut stop: watch::Receiver<bool>,
        terminal: Terminal,
    ) -> Result<JoinHandle<()>> {
        let mut hangups = signal(SignalKind::hangup())?;
        Ok(tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = stop.changed() => return,
                    hangup = hangups.recv() => if hangup.is_none() { return },
                }
                if terminal.is_gone() {
                    return terminal.gone.notify_one();
                }
                readiness.reloading();
                if let Err(error) = taking.take_over(Came::OnSignal).await {
                    tell_refusal(&format!("{error:#}"));
                }
                readiness.ready();
            }
        }))
    }

    /// Delivers to webhooks from now on; gives those that may answer.
    fn deliver(&self, clerk: Arc<Clerk>) -> Result<Answers> {
        let webhooks = webhooks::of(&self.webhooks)?;
        let answers = Answers::of(&webhooks);
        let (state, journal, feed) = (self.state.clone(), self.journal.clone(), self.feed.clone());
        tokio::spawn(Courier { state, clerk, journal, clock: Arc::new(SystemClock), webhooks, feed }.run());
        Ok(answers)
    }

    /// Delivers to webhooks where no control side is: the page is another gateway's, where the config says how that is
    /// reached.
    ///
    /// # Errors
    /// A webhook cannot be used.
    pub fn deliver_alone(&self) -> Result<()> {
        let page = self.public_url.as_deref().map(|url| format!("{}{PAGE_PATH}", url.trim_end_matches('/')));
        self.deliver(Arc::new(self.clerk(None, page))).map(drop)
    }

    /// Where persons reach the pages of held calls.
    fn page(&self, address: SocketAddr, scheme: &str) -> String {
        let base = self.public_url.as_deref().map(|url| url.trim_end_matches('/').to_owned());
        format!("{}{PAGE_PATH}", base.unwrap_or_else(|| format!("{scheme}://{address}")))
    }

    fn clerk(&self, address: Option<SocketAddr>, page: Option<String>) -> Clerk {
        let servers = GatewayServers { gateway: Arc::downgrade(&self.gateway) };
        Clerk::new(ClerkParts {
            locations: self.locations.clone(),
            clock: Arc::new(SystemClock),
            keyring: Some(self.keyring.clone()),
            journal: Some(self.journal.clone()),
            index: Some(self.index.clone()),
            state: Some(self.state.clone()),
            feed: Some(self.feed.clone()),
            servers: Some(Arc::new(servers)),
            address,
            page,
            answer_times: AnswerTimes { held: self.times.held, approved: self.times.approved },
        })
    }
}

/// Takes every change over, until the clerk is gone.
async fn follow(mut changes: Follower, taking: Arc<Taking<impl Reload>>) {
    while let Some(change) = changes.next().await {
        let taken = taking.take_over(Came::ByClerk(change.by.clone())).await.map_err(|error| format!("{error:#}"));
        if let Err(error) = &taken {
            tell_refusal(error);
        }
        changes.took(&change, taken.err());
    }
}

/// Takes over what was decided anywhere: at another gateway, or by a command beside this one.
async fn follow_store(mut versions: watch::Receiver<u64>, taking: Weak<Taking<impl Reload>>) {
    while versions.changed().await.is_ok() {
        let version = *versions.borrow_and_update();
        let Some(taking) = taking.upgrade() else { return };
        if let Err(error) = taking.follow(version).await {
            tell_refusal(&format!("{error:#}"));
        }
    }
}

pub(super) fn tell_refusal(error: &str) {
    // A log has lines of its own.
    let error = error.lines().map(str::trim).collect::<Vec<_>>().join("; ");
    tracing::error!("the former policy stays in force: {error}");
}

/// The gateway's servers, in the clerk's words.
#[derive(Debug)]
pub(super) struct GatewayServers {
    pub(super) gateway: Weak<Gateway>,
}

impl Servers for GatewayServers {
    fn list(&self) -> Vec<ServerView> {
        let Some(gateway) = self.gateway.upgrade() else { return Vec::new() };
        let configured = gateway.live.configured();
        let view = |status: toolwarden_gateway::ServerStatus| {
            let mut view = ServerView::configured(configured.iter().find(|server| server.name == status.name)?);
            view.tools = gateway.listed_tools(&status.name).len();
            view.status = status.state.as_str().to_owned();
            view.detail = status.detail;
            view.tools_refused = gateway.refused_tools(&status.name);
            if let Some(why) = &view.tools_refused {
                view.detail = Some(refused_words(view.detail.as_deref(), why));
            }
            Some(view)
        };
        gateway.server_statuses().into_iter().filter_map(view).collect()
    }

    fn tools(&self, server: &str) -> Vec<(String, Option<String>)> {
        let gateway = self.gateway.upgrade();
        let listed = gateway.map(|gateway| gateway.listed_tools(server)).unwrap_or_default();
        listed.into_iter().map(|tool| (tool.name, tool.description)).collect()
    }

    fn own(&self) -> Vec<ServerInput> {
        let configured = self.gateway.upgrade().map(|gateway| gateway.live.configured()).unwrap_or_default();
        configured.into_iter().filter(|server| &*server.origin.source == DEMO).collect()
    }

    fn restart(&self, server: &str) -> bool {
        self.gateway.upgrade().is_some_and(|gateway| gateway.restart_server(server))
    }

    fn sessions(&self) -> Vec<SessionView> {
        let open = self.gateway.upgrade().map(|gateway| gateway.open_sessions()).unwrap_or_default();
        open.into_iter().map(session_view).collect()
    }

    fn may_switch(&self, id: &str, mode: Option<&str>) -> Result<(), Stays> {
        let gateway = self.gateway.upgrade().ok_or(Stays::Gone)?;
        gateway.may_switch_mode(id, mode).map_err(stays)
    }

    fn switch_session(&self, id: &str, mode: Option<&str>) -> Result<SessionView, Stays> {
        let gateway = self.gateway.upgrade().ok_or(Stays::Gone)?;
        gateway.switch_mode(id, mode).map(session_view).map_err(stays)
    }

    fn refused_policy(&self) -> Option<RefusedPolicy> {
        let refused = self.gateway.upgrade()?.telemetry().reloads.refusal()?;
        Some(RefusedPolicy { since: refused.since.to_string(), error: refused.error })
    }

    fn waits_for_restart(&self) -> Vec<String> {
        let gateway = self.gateway.upgrade();
        gateway.map(|gateway| gateway.telemetry().reloads.for_restart()).unwrap_or_default()
    }
}

/// What is said of a server whose tools a rule does not fit, after what is said of it besides.
fn refused_words(detail: Option<&str>, why: &str) -> String {
    let besides = detail.map(|detail| format!("{detail}; ")).unwrap_or_default();
    format!("{besides}its tools are refused, because a rule does not fit them: {why}; see `toolwarden rules check`")
}

fn stays(why: NotSwitched) -> Stays {
    match why {
        NotSwitched::NoSession => Stays::Gone,
        why => Stays::Refused(why.to_string()),
    }
}

fn session_view(open: OpenSession) -> SessionView {
    let caller = &open.caller;
    SessionView {
        id: open.mark,
        user: caller.user.clone(),
        role: caller.role.clone(),
        token: caller.token.id.clone(),
        mode: caller.mode.clone(),
        server: open.server.as_deref().map(str::to_owned),
        client: open.client,
        version: open.version.to_owned(),
    }
}
