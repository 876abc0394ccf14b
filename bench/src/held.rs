//! What held calls cost while many of them lie there: memory, a page of the list, the way of an event to whoever listens,
//! an answer, and the call that is made under it. `toolwarden-bench-held TOOLWARDEN [MANY]`.
//!
//! Two gateways side by side in one run, one with ten held calls and one with ten thousand, asked in turns; on a file
//! and on PostgreSQL. A third has callers that wait.

#[path = "held/wire.rs"]
mod wire;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::time::Instant;
use toolwarden_bench::proxies::{Running, free_port, toolwarden_with};
use toolwarden_test_postgres::Cluster;

use wire::{Door, member, owner, owners_door};

const FEW: usize = 10;
const MANY: usize = 10_000;
/// One in so many of them waits, with a connection of its own, where callers wait.
const WAITING: usize = 10;
/// Each caller may have so many held calls; there are enough callers.
const OF_ONE: usize = 200;
const ROUNDS: usize = 100;
const WAITED_ROUNDS: usize = 20;
const FILLING: usize = 8;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let program = PathBuf::from(arguments.next().context("usage: toolwarden-bench-held TOOLWARDEN [MANY]")?);
    let many = arguments.next().map_or(Ok(MANY), |number| number.parse())?;
    let root = tempfile::tempdir()?;
    say("held calls on a file")?;
    compare(&program, &root.path().join("file"), [None, None], many)?;
    let clusters = [cluster()?, cluster()?];
    say("held calls on PostgreSQL")?;
    let stores = clusters.each_ref().map(|cluster| Some(cluster.url()));
    compare(&program, &root.path().join("server"), stores, many)?;
    waiting(&program, &root.path().join("waiting"), many / WAITING)
}

fn cluster() -> Result<Cluster> {
    Cluster::start().context("PostgreSQL does not start")
}

/// Gives a gateway time to come to rest.
fn settles(time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        std::thread::park_timeout(time.saturating_sub(begun.elapsed()));
    }
}

fn say(words: &str) -> Result<()> {
    Ok(writeln!(std::io::stdout(), "{words}")?)
}

/// A gateway whose notes may be written if a person says so.
struct House {
    program: PathBuf,
    home: PathBuf,
    config: String,
    running: Option<Running>,
    port: u16,
    /// A person who may answer.
    person: String,
    callers: Vec<String>,
}

impl House {
    fn new(program: &Path, home: PathBuf, store: Option<&str>, hold: &str, held: usize) -> Result<Self> {
        let store = store.map(|url| format!("[store]\nurl = \"{url}\"\n")).unwrap_or_default();
        let config = format!(
            "{store}[gateway]\nhold = \"{hold}\"\n[servers.notes]\ncommand = \"{}\"\nargs = [\"demo-server\"]\n",
            program.display()
        );
        let program = program.to_owned();
        let mut house =
            Self { program, home, config, running: None, port: 0, person: String::new(), callers: Vec::new() };
        house.start()?;
        house.person = house.issue(r#"{"person":true,"user":"bob","rights":["approver"]}"#)?;
        for number in 0..=held / OF_ONE {
            let token = house.issue(&format!(r#"{{"person":true,"user":"user{number}"}}"#))?;
            house.callers.push(token);
        }
        // Whoever starts its server is not measured.
        let first = house.caller(0).holds("the first one")?;
        house.approves(&first)?;
        ensure!(house.caller(0).calls("the first one")?.contains("wrote plan"), "it runs");
        Ok(house)
    }

    /// Starts it, or starts it again.
    fn start(&mut self) -> Result<()> {
        self.running = None;
        self.port = free_port()?;
        std::fs::create_dir_all(&self.home)?;
        self.running = Some(toolwarden_with(&self.program, &self.home, self.port, &self.config)?);
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() || owners_door(&self.home).is_err() {
            ensure!(begun.elapsed() < Duration::from_secs(20), "it does not listen");
            std::thread::park_timeout(Duration::from_millis(2));
        }
        Ok(())
    }

    fn issue(&self, claims: &str) -> Result<String> {
        let answer = owner(&self.home, "/api/v1/tokens/issue", claims)?;
        member(&answer, "token").with_context(|| answer)
    }

    fn caller(&self, number: usize) -> Door {
        let token = self.callers.get(number % self.callers.len().max(1)).cloned().unwrap_or_default();
        Door { port: self.port, token }
    }

    fn person(&self) -> Door {
        Door { port: self.port, token: self.person.clone() }
    }

    fn approves(&self, id: &str) -> Result<()> {
        self.person().asks("POST", "/api/v1/approvals/approve", &format!(r#"{{"id":"{id}"}}"#)).map(drop)
    }

    /// Has so many calls held, by several callers at once.
    fn fill(&self, held: usize) -> Result<()> {
        std::thread::scope(|scope| {
            let fillers: Vec<_> = (0..FILLING)
                .map(|me| {
                    scope.spawn(move || {
                        for number in (me..held).step_by(FILLING) {
                            self.caller(number / OF_ONE).holds(&format!("held {number}"))?;
                        }
                        anyhow::Ok(())
                    })
                })
                .collect();
            fillers.into_iter().try_for_each(|filler| filler.join().unwrap_or_else(|_| anyhow::bail!("it panicked")))
        })
    }

    /// Resident memory in MiB.
    fn memory(&self) -> f64 {
        let id = self.running.as_ref().map(Running::id).unwrap_or_default();
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        line.trim().split(' ').next().and_then(|kib| kib.parse::<f64>().ok()).unwrap_or_default() / 1024.0
    }
}

/// How long each thing took, round by round.
#[derive(Default)]
struct Spans([Vec<Duration>; 6]);

const WHAT: [&str; 6] = [
    "a page of ten of the list",
    "a page of a hundred, as far as there are so many",
    "holding one more call",
    "an answer",
    "an answer to the event at whoever listens",
    "the call that is made under it",
];

impl Spans {
    fn median(&mut self, what: usize) -> Duration {
        let Some(spans) = self.0.get_mut(what) else { return Duration::ZERO };
        spans.sort_unstable();
        spans.get(spans.len() / 2).copied().unwrap_or_default()
    }

    fn put(&mut self, what: usize, span: Duration) {
        if let Some(spans) = self.0.get_mut(what) {
            spans.push(span);
        }
    }

    /// Everything once, at one gateway.
    fn round(&mut self, house: &House, events: &wire::Events, text: &str) -> Result<()> {
        for (what, limit) in [10, 100].into_iter().enumerate() {
            let begun = Instant::now();
            house.person().asks("GET", &format!("/api/v1/approvals?state=held&limit={limit}"), "")?;
            self.put(what, begun.elapsed());
        }
        // By a caller of its own, who has few of them.
        let caller = house.caller(house.callers.len() - 1);
        let begun = Instant::now();
        let id = caller.holds(text)?;
        self.put(2, begun.elapsed());
        let begun = Instant::now();
        house.approves(&id)?;
        self.put(3, begun.elapsed());
        self.put(4, events.heard(&id, "approved")?.duration_since(begun));
        let begun = Instant::now();
        let said = caller.calls(text)?;
        ensure!(said.contains("wrote plan"), "{said}");
        self.put(5, begun.elapsed());
        Ok(())
    }
}

fn milliseconds(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

/// Few and many held calls side by side.
fn compare(program: &Path, home: &Path, stores: [Option<String>; 2], held: usize) -> Result<()> {
    let [first, second] = stores;
    let few = House::new(program, home.join("few"), first.as_deref(), "return", held)?;
    let mut many = House::new(program, home.join("many"), second.as_deref(), "return", held)?;
    let none = many.memory();
    few.fill(FEW)?;
    let begun = Instant::now();
    many.fill(held)?;
    let filled = begun.elapsed();
    say(&format!(
        "memory: {none:.1} MiB with none, {:.1} with {FEW}, {:.1} right after {held} were held, in {:.1} s",
        few.memory(),
        many.memory(),
        filled.as_secs_f64()
    ))?;
    many.start()?;
    // It reads what it needs, and looks after held calls once.
    settles(Duration::from_secs(7));
    say(&format!("memory: {:.1} MiB of a gateway that was started with {held} in its store", many.memory()))?;
    let heard = [few.person().listens()?, many.person().listens()?];
    let mut spans = [Spans::default(), Spans::default()];
    for round in 0..=ROUNDS {
        let text = format!("round {round}");
        let mut both: Vec<_> = [&few, &many].into_iter().zip(&heard).zip(&mut spans).collect();
        // Whoever comes second finds the machine as the first one left it.
        if round % 2 == 1 {
            both.reverse();
        }
        for ((house, events), spans) in both {
            match round {
                // The first one opens what the others find open.
                0 => Spans::default().round(house, events, &text)?,
                _ => spans.round(house, events, &text)?,
            }
        }
    }
    let [mut at_few, mut at_many] = spans;
    for (what, name) in WHAT.into_iter().enumerate() {
        let (few, many) = (at_few.median(what), at_many.median(what));
        let ratio = milliseconds(many) / milliseconds(few);
        say(&format!(
            "{name}: {:.2} ms with {FEW}, {:.2} ms with {held}, x {ratio:.2}",
            milliseconds(few),
            milliseconds(many)
        ))?;
    }
    say(&format!("memory: {:.1} MiB after {ROUNDS} rounds with {held}", many.memory()))
}

/// Callers that wait: what each costs, and how soon one of them has its answer.
fn waiting(program: &Path, home: &Path, most: usize) -> Result<()> {
    say("callers that wait, on a file")?;
    let house = {
        let mut house = House::new(program, home.to_owned(), None, "return", most)?;
        house.config = house.config.replace("\"return\"", "\"wait\"");
        house.start()?;
        house
    };
    let wait = |number: usize| house.caller(number / OF_ONE).begins(&format!("waits {number}"));
    let mut open = vec![wait(most)?];
    settles(Duration::from_secs(1));
    let none = house.memory();
    let mut answers = Vec::new();
    for wanted in [FEW, most] {
        while open.len() < wanted {
            open.push(wait(open.len())?);
        }
        held(&house, wanted)?;
        let memory = house.memory();
        let mut spans = Vec::new();
        for round in 0..WAITED_ROUNDS {
            let mut stream = house.caller(house.callers.len() - 1).begins(&format!("round {wanted} {round}"))?;
            let id = newest(&house, wanted + 1)?;
            let begun = Instant::now();
            house.approves(&id)?;
            let mut said = String::new();
            stream.read_to_string(&mut said)?;
            ensure!(said.contains("wrote plan"), "{said}");
            spans.push(begun.elapsed());
        }
        spans.sort_unstable();
        answers.push(milliseconds(spans.get(spans.len() / 2).copied().unwrap_or_default()));
        say(&format!(
            "memory: {memory:.1} MiB with {wanted} callers that wait, {:.1} KiB each",
            (memory - none) * 1024.0 / wanted as f64
        ))?;
    }
    let [few, many] = answers.as_slice() else { return Ok(()) };
    say(&format!(
        "an answer to the end of its call: {few:.2} ms with {FEW} that wait, {many:.2} ms with {most}, x {:.2}",
        many / few
    ))
}

/// Waits until so many calls are held.
fn held(house: &House, wanted: usize) -> Result<String> {
    let begun = Instant::now();
    loop {
        let path = format!("/api/v1/approvals?state=held&limit={}", wanted + 1);
        let listed = house.person().asks("GET", &path, "")?;
        let found = listed.matches("\"state\"").count();
        if found >= wanted {
            return Ok(listed);
        }
        ensure!(begun.elapsed() < Duration::from_secs(60), "{found} of {wanted} are held");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// The newest of so many.
fn newest(house: &House, wanted: usize) -> Result<String> {
    let listed = held(house, wanted)?;
    member(&listed, "id").with_context(|| listed)
}
