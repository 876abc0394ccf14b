//! `toolwarden stdio`: the MCP door on stdin and stdout, for clients that start a process.

use anyhow::Result;
use toolwarden_control::or_nearest;
use toolwarden_core::Records;
use toolwarden_core::name::shown;
use toolwarden_doors::stdio::{self, Client, StdioError};
use toolwarden_gateway::{Credential, Scope};

use crate::output::{BadInput, Exit};
use crate::serving::{self, Base, Readiness};
use crate::{environment, wire};
use toolwarden_cli::{Places, PolicyArguments, StdioArguments};

/// Where a client that starts this process puts its token: never into a message (GATE-1).
const TOKEN: &str = "TOOLWARDEN_TOKEN";

/// Why nobody was served. A credential comes from the environment, where whoever reads the message may not look for it.
fn refused(error: &StdioError, credential: &Credential) -> BadInput {
    match (error, credential) {
        (StdioError::Unauthorized(_), Credential::Token(_)) => BadInput(format!(
            "{error}: it is in {TOKEN}; put a token there as `toolwarden tokens issue` gives it, or unset the variable to be \
             the person who starts this"
        )),
        _ => BadInput(error.to_string()),
    }
}

pub fn run(places: &Places, arguments: &StdioArguments) -> Result<Exit> {
    let policy = PolicyArguments { workspace: arguments.workspace.clone(), catalog: Vec::new() };
    let locations = environment::locations(places, policy.workspace.as_deref())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let base = runtime.block_on(Base::open(&locations))?;
    let house = wire::house(&locations, &policy, &base.records())?;
    wire::warn_of_all(&house.loaded);
    serving::log_to_stderr(&house.loaded.config)?;
    let scope = match &arguments.server {
        None => Scope::All,
        Some(name) if house.loaded.definitions.iter().any(|one| one.input.name == *name) => {
            Scope::One(name.as_str().into())
        }
        Some(name) => {
            let servers = house.loaded.definitions.iter().map(|one| one.input.name.as_str());
            let help = or_nearest(name, servers, "see `toolwarden servers list`");
            return Err(
                BadInput(format!("--server {}: no server of that name is configured; {help}", shown(name))).into()
            );
        }
    };
    let mode = arguments.mode.clone();
    // Without a token it is whoever started the process.
    let credential = environment::shown_credential(TOKEN).map_or(Credential::Local, Credential::Token);
    let reload = move |store: &Records| wire::house(&locations, &policy, store);
    let outcome = runtime.block_on(async move {
        let running = serving::start(base, house, "stdio").await?;
        // A person who is told to run `toolwarden allow` expects it to act without a restart.
        let (stop, stopping) = tokio::sync::watch::channel(false);
        let taking = running.taking(reload);
        running.deliver_alone()?;
        // Nobody waits for it to be ready: whoever started it talks to it.
        running.reload_on_signal(
            taking.clone(),
            Readiness::nobody(),
            stopping.clone(),
            environment::Terminal::default(),
        )?;
        let files = running.file_watch(taking);
        let watching = running.watch_files(files.clone(), stopping);
        let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
        let told_to_end = async {
            // Without signals there is still the end of the input.
            match serving::wait_for_signal() {
                Ok(signal) => signal.await,
                Err(_) => std::future::pending().await,
            }
            tokio::spawn(async {
                // Whatever is lost is found at the next start, as after a crash.
                if let Ok(signal) = serving::wait_for_signal() {
                    signal.await;
                    std::process::exit(130);
                }
            });
        };
        let caller = Client { scope, credential: &credential, mode: mode.as_deref() };
        let catch_up = move || {
            let files = files.clone();
            async move { files.catch_up().await }
        };
        let served = stdio::serve(&running.gateway, caller, (input, output), told_to_end, catch_up).await;
        let _ = stop.send(true);
        let _ = watching.await;
        running.stop(()).await?;
        served.map_err(|error| refused(&error, &credential))?;
        Ok(Exit::Done)
    });
    // Whoever reads the input may wait for a line that never comes.
    runtime.shutdown_background();
    outcome
}
