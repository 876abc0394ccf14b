//! Protection that processes share (WORK-3): two gateways on one store are one for flow labels, rates and budgets. Every
//! gateway here is what another process would be: nothing but the store is common to them.

use std::collections::BTreeSet;

use toolwarden_classifier::{Money, Settings};
use toolwarden_conversations::Scope;
use toolwarden_core::Caller;

use super::doors::{Speech, request, walk};
use super::house::{Given, House, SharedStore, ada};
use super::machine::{Machine, Says};

const EIGHT_HOURS: i64 = 8 * 60 * 60;

/// `write` sends out, `other` reads what is private; everything is read from anywhere.
const LABELLED: &str = "labels = [\"reads_untrusted\"]\ntools.write = { labels = [\"sends_out\"], scope = \"pm\" }\n\
    tools.other = { labels = [\"reads_private\"], scope = \"pm\" }";

const CONFIG: &str = "[auto_run]\nmode = \"run_everything\"\n[roles.reader]\nscope = \"pm\"\nallow = [\"notes:*\"]";

async fn store() -> SharedStore {
    let Some(store) = SharedStore::make().await else { unreachable!("it is a file") };
    store
}

/// A process on this store, so many seconds after noon.
async fn process(store: &SharedStore, server: &'static str, later: i64) -> House {
    let given = Given { config: CONFIG, server, shares: Some((store.clone(), later)), ..Given::default() };
    let Some(house) = House::build(&given).await else { unreachable!("the house is built") };
    house
}

async fn call(house: &House, caller: &Caller, tool: &str) -> String {
    let text = request(Speech::Modern, "tools/call", &format!("\"name\":\"{tool}\",\"arguments\":{{}}"));
    walk(house, caller.clone(), Scope::One("notes".into()), Speech::Modern, &text).await
}

fn token(id: &str, run: Option<&str>) -> Caller {
    let mut caller = Caller::agent("reader", Some("ada".to_owned()));
    caller.token.id = Some(id.to_owned());
    caller.context.run = run.map(str::to_owned);
    caller
}

#[tokio::test]
async fn work_3_labels_met_in_one_process_hold_in_every_other() {
    for (reads, sends, is_held) in [
        (ada(), ada(), true),
        (ada(), Caller { mode: Some("code".to_owned()), ..ada() }, true),
        (token("t", None), token("t", None), true),
        (token("t", Some("r")), token("u", Some("r")), true),
        (token("t", Some("r")), token("t", None), true),
        (token("t", None), token("u", None), false),
        (token("t", Some("r")), token("u", Some("s")), false),
        (ada(), Caller::person("eve"), false),
    ] {
        let place = format!("{reads:?} then {sends:?}");
        let store = store().await;
        let (one, other) = (process(&store, LABELLED, 0).await, process(&store, LABELLED, 0).await);
        // Both processes have looked before anything was met.
        assert!(call(&other, &sends, "write").await.contains("done"), "{place}");
        assert!(call(&one, &reads, "other").await.contains("done"), "{place}");
        let said = call(&other, &sends, "write").await;
        assert_eq!(said.contains("rule_hold"), is_held, "{place}: {said}");
        assert_eq!(other.recorder.calls().len(), if is_held { 1 } else { 2 }, "{place}");
        // A process that starts afterwards.
        let late = process(&store, LABELLED, 1).await;
        assert_eq!(call(&late, &sends, "write").await.contains("rule_hold"), is_held, "{place}");
        assert_eq!(late.recorder.calls().len(), usize::from(!is_held), "{place}");
    }
}

#[tokio::test]
async fn work_3_labels_of_persons_end_after_eight_idle_hours_and_those_of_tokens_with_the_token() {
    let store = store().await;
    let agent = token("t", None);
    let first = process(&store, LABELLED, 0).await;
    for caller in [&ada(), &agent] {
        assert!(call(&first, caller, "other").await.contains("done"));
    }
    let before = process(&store, LABELLED, EIGHT_HOURS - 1).await;
    assert!(call(&before, &ada(), "write").await.contains("rule_hold"));
    let after = process(&store, LABELLED, EIGHT_HOURS + 121).await;
    assert!(call(&after, &ada(), "write").await.contains("done"));
    let much_later = process(&store, LABELLED, 100 * EIGHT_HOURS).await;
    let said = call(&much_later, &agent, "write").await;
    assert!(said.contains("rule_hold"), "{said}");
    assert!(much_later.recorder.calls().is_empty());
}

#[tokio::test]
async fn work_3_calls_keep_labels_alive_whatever_they_call() {
    let store = store().await;
    let labelled = "tools.write = { labels = [\"sends_out\"] }\ntools.other = { labels = [\"reads_private\", \"reads_untrusted\"] }";
    let first = process(&store, labelled, 0).await;
    assert!(call(&first, &ada(), "other").await.contains("done"));
    // Nothing that is called there needs labels, or has any.
    let busy = process(&store, "tools.write = { labels = [\"sends_out\"] }", EIGHT_HOURS - 60).await;
    assert!(call(&busy, &ada(), "other").await.contains("done"));
    busy.gateway.note_flows().await;
    let after = process(&store, labelled, 2 * EIGHT_HOURS - 120).await;
    let said = call(&after, &ada(), "write").await;
    assert!(said.contains("rule_hold"), "{said}");
}

#[tokio::test]
async fn work_3_where_the_store_cannot_say_what_was_met_calls_are_held() {
    let store = store().await;
    let house = process(&store, LABELLED, 0).await;
    assert!(call(&house, &ada(), "write").await.contains("done"));
    house.store_goes_away().await;
    // Whether a call needs to know what was met, or would meet something itself.
    for (caller, tool) in [(ada(), "write"), (ada(), "other"), (token("t", None), "write"), (token("t", None), "other")]
    {
        let said = call(&house, &caller, tool).await;
        assert!(said.contains("labels_unknown") && said.contains("hold"), "{tool}: {said}");
    }
    assert_eq!(house.recorder.calls().len(), 1);
    let held: BTreeSet<String> = house
        .records()
        .await
        .iter()
        .filter(|record| record.get("kind").is_some_and(|kind| kind == "refusal"))
        .map(|record| format!("{} {}", record["decision"], record["reason"]))
        .collect();
    assert_eq!(held, BTreeSet::from(["\"hold\" \"labels_unknown\"".to_owned()]));
}

#[tokio::test]
async fn work_3_what_is_denied_anyway_is_denied_and_what_no_rule_asks_runs_without_the_store() {
    let store = store().await;
    let given = Given {
        config: CONFIG,
        server: "tools.write = { labels = [\"sends_out\"] }",
        rules: Some(
            "permit(principal, action, resource);\n\
             forbid(principal, action, resource in Mcp::Label::\"sends_out\") when { !context.seen.contains(\"reads_private\") };\n\
             forbid(principal == Person::\"eve\", action, resource);",
        ),
        shares: Some((store.clone(), 0)),
        ..Given::default()
    };
    let Some(house) = House::build(&given).await else { unreachable!("the house is built") };
    house.store_goes_away().await;
    assert!(call(&house, &ada(), "other").await.contains("done"));
    let denied = call(&house, &Caller::person("eve"), "write").await;
    assert!(denied.contains("rule_forbid"), "{denied}");
    // A rule that a label would open: not knowing opens nothing.
    let held = call(&house, &ada(), "write").await;
    assert!(held.contains("labels_unknown"), "{held}");
    assert_eq!(house.recorder.calls().len(), 1);
}

#[tokio::test]
async fn work_3_calls_per_minute_are_those_of_all_processes() {
    for server in ["limits = { per_minute = 5 }", "tools.write = { limits = { per_minute = 5 } }"] {
        let store = store().await;
        let (one, other) = (process(&store, server, 0).await, process(&store, server, 0).await);
        let callers = [ada(), Caller::person("eve"), token("t", None)];
        let mut made = 0;
        for number in 0..20 {
            let house = if number % 3 == 0 { &one } else { &other };
            let Some(caller) = callers.get(number % 2) else { continue };
            let said = call(house, caller, "write").await;
            made += usize::from(said.contains("done"));
            assert!(said.contains("done") || said.contains("calls_per_minute"), "{said}");
        }
        assert_eq!(made, 5, "{server}");
        assert_eq!(one.recorder.calls().len() + other.recorder.calls().len(), 5);
        // The minute goes on in a process that starts now, and ends.
        let late = process(&store, server, 59).await;
        assert!(call(&late, &ada(), "write").await.contains("calls_per_minute"));
        let later = process(&store, server, 61).await;
        assert!(call(&later, &ada(), "write").await.contains("done"));
        // Where nobody knows how many were made, none is.
        later.store_goes_away().await;
        let said = call(&later, &ada(), "write").await;
        assert!(said.contains("calls_uncounted"), "{said}");
        assert_eq!(later.recorder.calls().len(), 1);
    }
}

#[tokio::test]
async fn work_3_without_labels_and_rates_the_store_is_not_asked() {
    let store = store().await;
    let house = process(&store, "", 0).await;
    house.store_goes_away().await;
    for tool in ["write", "other"] {
        assert!(call(&house, &ada(), tool).await.contains("done"), "{tool}");
    }
}

/// A process that asks this classifier before persons.
async fn reviewed(store: &SharedStore, settings: Settings) -> House {
    let given = Given {
        config: "[auto_run]\nauto_review = true\n",
        classifier: Some(settings),
        shares: Some((store.clone(), 0)),
        ..Given::default()
    };
    let Some(house) = House::build(&given).await else { unreachable!("the house is built") };
    house
}

#[tokio::test]
async fn work_3_classifiers_of_all_processes_have_one_budget_and_one_patience() {
    let money = Money { per_day: 3_000_000, input: 0, output: 1_000_000_000 };
    for (says, bound, most) in [
        ("allow", Settings { per_hour: 3, ..Machine::start(Says::Nothing).await.settings() }, 3),
        ("hold", Machine::start(Says::Nothing).await.settings(), 5),
        ("allow", Settings { money: Some(money), ..Machine::start(Says::Nothing).await.settings() }, 0),
    ] {
        let (store, machine) = (store().await, Machine::start(Says::Verdict(says)).await);
        let settings = Settings { kind: machine.settings().kind, ..bound.clone() };
        let mut asked = 0;
        // Every call is another one, each from a process of its own.
        for number in 0..8 {
            let house = reviewed(&store, settings.clone()).await;
            let arguments = format!("\"name\":\"write\",\"arguments\":{{\"n\":{number}}}");
            let text = request(Speech::Modern, "tools/call", &arguments);
            let said = walk(&house, ada(), Scope::One("notes".into()), Speech::Modern, &text).await;
            let is_made = said.contains("done");
            assert_eq!(house.recorder.calls().len(), usize::from(is_made), "{said}");
            asked = machine.asked().len();
        }
        let is_bound = if most == 0 { (1..8).contains(&asked) } else { asked == most };
        assert!(is_bound, "{says} {bound:?}: asked {asked} times");
        // Where nobody knows what was asked, nothing is.
        let house = reviewed(&store, Settings { per_hour: 1000, money: None, ..settings }).await;
        house.store_goes_away().await;
        let text = request(Speech::Modern, "tools/call", "\"name\":\"other\",\"arguments\":{}");
        let said = walk(&house, ada(), Scope::One("notes".into()), Speech::Modern, &text).await;
        assert!(said.contains("not_in_allowlist"), "{said}");
        assert_eq!((machine.asked().len(), house.recorder.calls().len()), (asked, 0));
    }
}
