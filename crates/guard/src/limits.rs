//! Limits of calls (GATE-13) at three levels: the gateway, its servers, their tools.
//!
//! What bounds one call is said by the narrowest level that speaks of it. Calls in flight and calls per minute count at
//! every level together. A changed file changes the table; what is counted stays counted. Time is given in.
//!
//! Calls on their way are counted by each process. Calls per minute are counted here and, beyond this process, by whoever
//! is given to `enter`: a call counts everywhere or nowhere.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use toolwarden_core::{Decision, Layer, Origin, Reason, Stage, Weakness, name, weak};
use toolwarden_policy::input::{LimitsInput, ServerInput};
use toolwarden_policy::{Explanation, RuleRef};

use crate::rate::{Counted, Rate};
use crate::turns::{Place, Turn, Turns};

/// What counts where no file says anything.
#[derive(Debug, Clone, Copy)]
pub struct Defaults {
    /// Largest request, and how deep it may nest.
    pub request_bytes: usize,
    pub depth: usize,
    /// Requests of everybody on their way at the same time.
    pub in_flight: u64,
}

/// Keeps calls within their limits.
#[derive(Debug)]
pub struct Limiter {
    defaults: Defaults,
    table: ArcSwap<Table>,
}

#[derive(Debug)]
struct Table {
    gateway: Level,
    servers: HashMap<String, OfServer>,
    request_bytes: usize,
    depth: usize,
}

#[derive(Debug)]
struct OfServer {
    own: Level,
    /// By their names without regard to case: what narrows ignores it.
    tools: HashMap<String, Level>,
}

#[derive(Debug)]
struct Level {
    whose: String,
    origin: Origin,
    limits: LimitsInput,
    turns: Arc<Turns>,
    rate: Arc<Rate>,
    /// Its name where minutes are counted beyond this process.
    name: String,
    /// Until this second its minute is known to be full there.
    full_until: Arc<AtomicU64>,
}

/// A level with a limit of calls per minute, as it is counted beyond this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerMinute {
    pub name: String,
    pub most: u64,
}

/// Why a call is not counted beyond this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uncounted {
    /// The minute of the level of this number is full; after how many seconds it may not be.
    Full { level: usize, wait: u64 },
    /// It cannot be counted, so nobody knows.
    Unknown,
}

/// A call that is over a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Over {
    pub reason: Reason,
    /// Which limit, and where it is written.
    pub rule: RuleRef,
    /// Which limit, whose, and when to come back.
    pub words: String,
    /// Seconds after which there may be room.
    pub retry_after: u64,
}

/// The places of one call, given back when this is dropped.
#[derive(Debug, Default)]
pub struct Held {
    places: [Option<Place>; 3],
}

/// What a call counts in the minutes of its levels; given back unless it is made.
struct Minutes<'a> {
    counted: [Option<(&'a Level, Counted)>; 3],
}

impl Over {
    /// The same as the judge would say it.
    #[must_use]
    pub fn explanation(&self, policy_version: u64) -> Explanation {
        Explanation {
            decision: Decision::Deny,
            stage: Stage::Limits,
            reason: self.reason,
            rule: Some(self.rule.clone()),
            detail: None,
            candidates: Vec::new(),
            payers: Vec::new(),
            trace: Vec::new(),
            policy_version,
            valid_until: None,
        }
    }
}

impl Limiter {
    #[must_use]
    pub fn new(defaults: Defaults, gateway: &LimitsInput, servers: &[ServerInput]) -> Self {
        Self { defaults, table: ArcSwap::from_pointee(Table::of(&defaults, gateway, servers, None)) }
    }

    /// Other limits count from the next call on.
    pub fn replace(&self, gateway: &LimitsInput, servers: &[ServerInput]) {
        let former = self.table.load_full();
        self.table.store(Arc::new(Table::of(&self.defaults, gateway, servers, Some(&former))));
    }

    /// The largest request anybody may send, and how deep it may nest: what is read before it is known for whom it is.
    #[must_use]
    pub fn request(&self) -> (usize, usize) {
        let table = self.table.load();
        (table.request_bytes, table.depth)
    }

    /// What is said of every server, and of this one.
    #[must_use]
    pub fn of_server(&self, server: &str) -> [LimitsInput; 2] {
        let table = self.table.load();
        let own = table.servers.get(server).map(|server| server.own.limits).unwrap_or_default();
        [table.gateway.limits, own]
    }

    /// What is said of one tool alone.
    #[must_use]
    pub fn of_tool(&self, server: &str, tool: &str) -> Option<LimitsInput> {
        let table = self.table.load();
        table.tool(server, tool).map(|tool| tool.limits)
    }

    /// Lets a request in: a call of a tool, or anything else that only the gateway counts. Waits for its turn as long as
    /// there is patience; then `beyond` counts it in the minutes that other processes share.
    ///
    /// # Errors
    /// The minute is full, no place got free, or it cannot be counted.
    pub async fn enter<F: Future<Output = Result<(), Uncounted>>>(
        &self,
        call: Option<(&str, &str)>,
        who: impl Fn() -> String,
        now: u64,
        patience: impl Future<Output = ()>,
        beyond: impl FnOnce(Vec<PerMinute>) -> F,
    ) -> Result<Held, Over> {
        if weak::is(Weakness::Limits) {
            return Ok(Held::default());
        }
        let table = self.table.load_full();
        // The narrowest first: whoever waits for a tool must not keep a place that others could use.
        let levels = table.levels(call);
        let mut minutes = Minutes { counted: [None; 3] };
        if call.is_some() {
            minutes.count(levels, now)?;
        }
        let mut patience = pin!(patience);
        let mut held = Held::default();
        for (level, kept) in levels.into_iter().zip(&mut held.places) {
            let Some(level) = level else { continue };
            *kept = Some(match level.turns.take(&who) {
                Turn::Now(place) => place,
                Turn::Never => return Err(level.is_full()),
                Turn::Later(waiter) => tokio::select! {
                    biased;
                    place = waiter => place,
                    () = patience.as_mut() => return Err(level.is_full()),
                },
            });
        }
        let shared = minutes.shared();
        if !shared.is_empty() {
            // Apart: most calls have no limit per minute, and need no room for this.
            Box::pin(beyond(shared)).await.map_err(|why| minutes.uncounted(why, now))?;
        }
        minutes.keep();
        Ok(held)
    }

    /// Whose limit counts for a tool: the narrowest level that has it.
    #[must_use]
    pub fn whose(&self, server: &str, tool: &str, has: fn(&LimitsInput) -> bool) -> Option<String> {
        let table = self.table.load();
        let levels = table.levels(Some((server, tool)));
        levels.into_iter().flatten().find(|level| has(&level.limits)).map(|level| level.whose.clone())
    }

    /// Calls on their way by whose they are: the gateway's first, then every server's and tool's that has any.
    #[must_use]
    pub fn in_flight(&self) -> Vec<(String, u64)> {
        let table = self.table.load();
        let narrower =
            table.servers.values().flat_map(|server| std::iter::once(&server.own).chain(server.tools.values()));
        let narrower = narrower.filter(|level| level.turns.taken() > 0);
        std::iter::once(&table.gateway)
            .chain(narrower)
            .map(|level| (level.whose.clone(), level.turns.taken()))
            .collect()
    }
}

impl Table {
    fn of(defaults: &Defaults, gateway: &LimitsInput, servers: &[ServerInput], former: Option<&Self>) -> Self {
        let mut most = LimitsInput { in_flight: Some(defaults.in_flight), ..LimitsInput::default() };
        most = gateway.or(most);
        let layer = if gateway.in_flight.is_some() { Layer::Config } else { Layer::Shipped };
        let origin = Origin::record(layer, "[gateway] limits");
        let mut table = Self {
            gateway: Level::of(
                ("the gateway".to_owned(), "gateway".to_owned()),
                &origin,
                most,
                former.map(|former| &former.gateway),
            ),
            servers: HashMap::new(),
            request_bytes: gateway.request_bytes.unwrap_or(defaults.request_bytes),
            depth: gateway.depth.unwrap_or(defaults.depth),
        };
        for input in servers {
            // The first definition of a name counts; the judge refuses names with rivals.
            if !table.servers.contains_key(&input.name) {
                let former = former.and_then(|former| former.servers.get(&input.name));
                table.servers.insert(input.name.clone(), OfServer::of(input, former));
            }
            let said = input.tools.values().map(|tool| tool.limits).chain([input.limits]);
            // What one user installed does not make the gateway read more of everybody's messages.
            for limits in said.filter(|_| input.owner.is_none()) {
                table.request_bytes = table.request_bytes.max(limits.request_bytes.unwrap_or(0));
                table.depth = table.depth.max(limits.depth.unwrap_or(0));
            }
        }
        table
    }

    fn tool(&self, server: &str, tool: &str) -> Option<&Level> {
        let tools = &self.servers.get(server)?.tools;
        if tools.is_empty() { None } else { tools.get(&*name::folded(tool)) }
    }

    fn levels(&self, call: Option<(&str, &str)>) -> [Option<&Level>; 3] {
        let server = call.and_then(|(server, _)| self.servers.get(server)).map(|server| &server.own);
        [call.and_then(|(server, tool)| self.tool(server, tool)), server, Some(&self.gateway)]
    }
}

impl OfServer {
    fn of(input: &ServerInput, former: Option<&Self>) -> Self {
        let shown = name::shown(&input.name);
        let names = (format!("server `{shown}`"), format!("server:{}", input.name));
        let own = Level::of(names, &input.origin, input.limits, former.map(|former| &former.own));
        let mut said: HashMap<String, (LimitsInput, &Origin)> = HashMap::new();
        for (tool, configured) in input.tools.iter().filter(|(_, tool)| tool.limits != LimitsInput::default()) {
            let origin = configured.origin.as_ref().unwrap_or(&input.origin);
            let (limits, _) = said.entry(tool.to_ascii_lowercase()).or_insert((LimitsInput::default(), origin));
            *limits = limits.smaller(configured.limits);
        }
        let level = |(tool, (limits, origin)): (String, (LimitsInput, &Origin))| {
            let whose = format!("tool `{}` of server `{shown}`", name::shown(&tool));
            let names = (whose, format!("tool:{}:{tool}", input.name));
            let level = Level::of(names, origin, limits, former.and_then(|former| former.tools.get(&tool)));
            (tool, level)
        };
        Self { own, tools: said.into_iter().map(level).collect() }
    }
}

impl Level {
    /// Counts go on from where they were.
    fn of((whose, name): (String, String), origin: &Origin, limits: LimitsInput, former: Option<&Self>) -> Self {
        let turns = former.map_or_else(|| Arc::new(Turns::new(limits.in_flight)), |former| former.turns.clone());
        turns.set_limit(limits.in_flight);
        let rate = former.map(|former| former.rate.clone()).unwrap_or_default();
        // Under another limit the minute may not be full.
        let same = former.filter(|former| former.limits.per_minute == limits.per_minute);
        let full_until = same.map(|former| former.full_until.clone()).unwrap_or_default();
        Self { whose, origin: origin.clone(), limits, turns, rate, name, full_until }
    }

    fn is_full(&self) -> Over {
        let limit = self.limits.in_flight.unwrap_or_default();
        let words =
            format!("{} may have {limit} calls on their way, and none ended in time; come back in 1 s", self.whose);
        self.over(Reason::CallsInFlight, &format!("in_flight = {limit}"), words, 1)
    }

    fn is_spent(&self, retry_after: u64) -> Over {
        let limit = self.limits.per_minute.unwrap_or_default();
        let words = format!("{} takes {limit} calls in a minute; come back in {retry_after} s", self.whose);
        self.over(Reason::CallsPerMinute, &format!("per_minute = {limit}"), words, retry_after)
    }

    fn is_unknown(&self) -> Over {
        let limit = self.limits.per_minute.unwrap_or_default();
        let words = format!(
            "{} takes {limit} calls in a minute, and how many were made cannot be looked up in the store; come back later",
            self.whose
        );
        self.over(Reason::CallsUncounted, &format!("per_minute = {limit}"), words, 1)
    }

    fn over(&self, reason: Reason, limit: &str, words: String, retry_after: u64) -> Over {
        Over { reason, rule: RuleRef::new(format!("{limit} of {}", self.whose), &self.origin), words, retry_after }
    }
}

impl<'a> Minutes<'a> {
    fn count(&mut self, levels: [Option<&'a Level>; 3], now: u64) -> Result<(), Over> {
        for (level, place) in levels.into_iter().zip(&mut self.counted) {
            let Some((level, limit)) = level.and_then(|level| Some((level, level.limits.per_minute?))) else {
                continue;
            };
            let full = level.full_until.load(Ordering::Relaxed).saturating_sub(now);
            if full > 0 {
                return Err(level.is_spent(full));
            }
            *place = Some((level, level.rate.count(limit, now).map_err(|wait| level.is_spent(wait))?));
        }
        Ok(())
    }

    /// The levels that count, for whoever counts beyond this process.
    fn shared(&self) -> Vec<PerMinute> {
        let levels = self.counted.iter().flatten();
        let shared = |(level, _): &(&Level, Counted)| {
            Some(PerMinute { name: level.name.clone(), most: level.limits.per_minute? })
        };
        levels.filter_map(shared).collect()
    }

    /// The refusal of a call that is not counted beyond this process. One that is full is not asked again before its time.
    fn uncounted(&self, why: Uncounted, now: u64) -> Over {
        let levels: Vec<&Level> = self.counted.iter().flatten().map(|(level, _)| *level).collect();
        match why {
            Uncounted::Full { level, wait } => match levels.get(level) {
                Some(level) => {
                    level.full_until.fetch_max(now.saturating_add(wait.min(60)), Ordering::Relaxed);
                    level.is_spent(wait)
                }
                None => unknown(),
            },
            Uncounted::Unknown => levels.first().map_or_else(unknown, |level| level.is_unknown()),
        }
    }

    fn keep(&mut self) {
        self.counted = [None; 3];
    }
}

/// A refusal by a level that is none of ours.
fn unknown() -> Over {
    Over {
        reason: Reason::CallsUncounted,
        rule: RuleRef::new("per_minute".to_owned(), &Origin::record(Layer::Shipped, "limits")),
        words: Reason::CallsUncounted.sentence().to_owned(),
        retry_after: 1,
    }
}

impl Drop for Minutes<'_> {
    fn drop(&mut self) {
        for (level, counted) in self.counted.iter().flatten() {
            level.rate.give_back(*counted);
        }
    }
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
