//! `toolwarden serve`: the gateway on a loopback port, until a signal ends it.

use std::sync::Arc;

use anyhow::{Context, Result};
use tokio::sync::watch;
use toolwarden_core::name::registration_key;
use toolwarden_core::{Layer, Origin, Records};
use toolwarden_doors::{Listener, Workers, serve};
use toolwarden_policy::PolicySet;
use toolwarden_policy::input::{Declared, Launch, ServerInput};
use toolwarden_sources::{ServerDefinition, records};

use crate::environment;
use crate::output::{self, Exit};
use crate::serving::{self, Base, Readiness};
use crate::wire::{self, House};
use toolwarden_cli::{Places, PolicyArguments, ServeArguments};

const DEMO_SERVER: &str = "notes";

pub fn run(places: &Places, arguments: &ServeArguments) -> Result<Exit> {
    let policy = PolicyArguments { workspace: arguments.workspace.clone(), catalog: Vec::new() };
    let locations = environment::locations(places, policy.workspace.as_deref())?;
    // Beside the workers: accepting connections, the control socket, the index.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let base = runtime.block_on(Base::open(&locations))?;
    let store = base.records();
    let house = wire::house(&locations, &policy, &store)?;
    // It stays when others are added: whoever uses it is not disturbed.
    let demo = arguments.demo && house.loaded.definitions.is_empty();
    let house = with_demo(house, demo, &store)?;
    wire::warn_of_all(&house.loaded);
    serving::log_to_stderr(&house.loaded.config)?;
    serving::make_room_for_connections();
    let reload = move |store: &Records| with_demo(wire::house(&locations, &policy, store)?, demo, store);
    let address = serving::listen_address(&house.loaded.config, arguments.listen)?;
    let tls = serving::tls(&house)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = Arc::new(Workers::start(cores).context("cannot start a thread")?);
    runtime.block_on(async move {
        let names: Vec<String> = house.loaded.definitions.iter().map(|one| one.input.name.clone()).collect();
        let listener = Listener::bind(address).await.with_context(|| {
            format!(
                "cannot listen on {address}: if the port is in use, `toolwarden doctor` says whether by Toolwarden; \
                 choose another with --listen"
            )
        })?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let listener = match tls {
            Some(tls) => listener.with_tls(tls),
            None => listener,
        };
        let running = serving::start(base, house, "serve").await?;
        let (stop, stopping) = watch::channel(false);
        let (taking, readiness) = (running.taking(reload), Readiness::from_environment());
        // Before anybody is told that it is there: until then these signals would end the process as it stands.
        let terminal = environment::Terminal::at_start();
        let signal = serving::wait_for_signal()?;
        running.reload_on_signal(taking.clone(), readiness.clone(), stopping.clone(), terminal.clone())?;
        let (control, persons) = running.open_control((listener.address(), scheme), taking, stopping.clone())?;
        let listener = listener.with_beside(persons);
        announce(scheme, listener.address(), &names)?;
        tokio::spawn(running.gateway.clone().keep_house());
        let (gateway, serves) = (running.gateway.clone(), workers.clone());
        let serving = tokio::spawn(async move { serve(gateway, listener, &serves, stopping).await });
        readiness.ready();
        tokio::spawn(readiness.clone().keep_alive());
        tokio::select! {
            () = signal => {}
            () = terminal.gone.notified() => tracing::info!("the terminal is gone"),
        }
        readiness.stopping();
        let grace = running.gateway.settings().grace;
        tracing::info!("stopping: calls on their way have {} s; a second signal ends them", grace.as_secs());
        running.gateway.closing().begin();
        tokio::spawn(async {
            // Whatever is lost is found at the next start, as after a crash.
            if let Ok(signal) = serving::wait_for_signal() {
                signal.await;
                std::process::exit(130);
            }
        });
        let _ = stop.send(true);
        serving.await.context("the door ended badly")?;
        control.await.context("the control socket ended badly")?;
        running.stop(workers).await?;
        Ok(Exit::Done)
    })
}

fn announce(scheme: &str, address: std::net::SocketAddr, servers: &[String]) -> Result<()> {
    let mut text = format!("Toolwarden is listening.\n  all servers   {scheme}://{address}/mcp\n");
    for server in servers {
        text.push_str(&format!("  {server:<13} {scheme}://{address}/mcp/{server}\n"));
    }
    if servers.is_empty() {
        text.push_str("No server is configured yet: add [servers.NAME] to toolwarden.toml, or start with --demo.\n");
    }
    output::text(&text)
}

/// A server to try things with, where none was configured at the start: this program itself, keeping notes in memory.
fn with_demo(mut house: House, demo: bool, store: &Records) -> Result<House> {
    let is_taken = house.loaded.definitions.iter().any(|one| registration_key(&one.input.name) == DEMO_SERVER);
    if !demo || is_taken {
        return Ok(house);
    }
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let mut input = ServerInput::new(DEMO_SERVER, Origin::record(Layer::Config, serving::DEMO), Declared::ByOperator);
    input.launch =
        Launch::Command { command: program.to_string_lossy().into_owned(), arguments: vec!["demo-server".to_owned()] };
    records::lay_over(store, &mut input);
    house.loaded.definitions.push(ServerDefinition::of(input.clone()));
    house.loaded.input.servers.push(input);
    house.policy = PolicySet::compile(&house.loaded.input).map_err(|refused| wire::policy_refused(&refused))?;
    Ok(house)
}
