//! Servers that answer with a gigabyte, in every form: it is cut off at the limit, or passes where the limit
//! permits it, and is never held in memory.

use anyhow::Result;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::json;
use tokio::time::timeout;

use crate::caller::{Bystanders, ECHO, Session, error_of};
use crate::house::{Gateway, House, PATIENCE, PERMISSIVE, at_url, by_script, report};
use crate::journal::Records;
use crate::scripted::SCRIPT;
use crate::upstream::{Upstream, bad};

const MIB: u64 = 1024 * 1024;
const GIB: u64 = 1024 * MIB;
/// `response_bytes` where nothing is configured, and what one event or line may have.
const LIMIT: u64 = 64 * MIB;
const LARGEST_EVENT: u64 = 16 * MIB;
/// What may be on its way in buffers.
const SLACK: u64 = 16 * MIB;
/// MiB that the gateway may take besides what it had.
const MOST_GROWTH: u64 = 100;

struct Scene {
    house: House,
    gateway: Gateway,
    huge: Upstream,
    bystanders: Bystanders,
    before: u64,
}

impl Scene {
    /// A gateway with a healthy server that is in use, and one that answers hugely.
    async fn set(limits: &str) -> Result<Self> {
        let (healthy, huge) = (Upstream::start().await?, Upstream::start().await?);
        let (near, far) = (at_url("healthy", &healthy.url), at_url("huge", &huge.url));
        let house = House::new(&format!("{PERMISSIVE}{near}{far}{limits}"));
        let gateway = house.serve().await;
        let bystanders = Bystanders::at(gateway.base(), "healthy");
        bystanders.served(100).await?;
        let before = gateway.peak();
        Ok(Self { house, gateway, huge, bystanders, before })
    }

    /// How the huge calls must have ended, and what the gateway may have taken meanwhile.
    async fn ends(self, tool: &str, status: &str) -> Result<()> {
        self.bystanders.served(20).await?;
        self.bystanders.leave().await?;
        let (before, peak) = (self.before, self.gateway.peak());
        report(&format!("{tool}, MiB: {before} before, at most {peak}"));
        assert!(peak < before + MOST_GROWTH, "the gateway grew from {before} to {peak} MiB");
        self.gateway.stop().await;
        assert_eq!(Records::of(&self.house).statuses_of(tool), [status]);
        Ok(())
    }
}

/// Reads a body to its end: how much came, and whether it came whole.
async fn read(mut body: Incoming) -> Result<(u64, bool)> {
    let mut size = 0;
    while let Some(frame) = timeout(PATIENCE, body.frame()).await? {
        let Ok(frame) = frame else { return Ok((size, false)) };
        size += frame.into_data().map_or(0, |data| data.len() as u64);
    }
    Ok((size, true))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gigabyte_of_json_is_cut_off_at_the_limit() -> Result<()> {
    let scene = Scene::set("").await?;
    let mut session = Session::open(scene.gateway.base(), "huge").await?;
    let response = session.begin(bad::LONG_JSON, &json!({"bytes": GIB})).await?;
    let (size, is_whole) = read(response.into_body()).await?;
    assert!(!is_whole && size <= LIMIT, "{size} bytes came, as if they were whole: {is_whole}");
    assert!(scene.huge.sent() < LIMIT + SLACK, "the gateway took {} bytes", scene.huge.sent());
    scene.ends(bad::LONG_JSON, "too_large").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gigabyte_of_json_passes_where_the_limit_permits_it() -> Result<()> {
    let scene = Scene::set(&format!("limits = {{ response_bytes = {} }}\n", 2 * GIB)).await?;
    let mut session = Session::open(scene.gateway.base(), "huge").await?;
    let response = session.begin(bad::LONG_JSON, &json!({"bytes": GIB})).await?;
    let (size, is_whole) = read(response.into_body()).await?;
    assert!(is_whole && size > GIB, "{size} bytes came, whole: {is_whole}");
    scene.ends(bad::LONG_JSON, "ok").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_of_a_gigabyte_is_refused_at_the_limit() -> Result<()> {
    let scene = Scene::set("").await?;
    let mut session = Session::open(scene.gateway.base(), "huge").await?;
    let answer = session.call(bad::LONG_EVENT, &json!({"bytes": GIB})).await?;
    let words = "larger than the limit: it is 67108864 bytes unless a limit says otherwise (16777216 for one event)";
    assert_eq!(error_of(&answer), Some(format!("the server's answer is {words}").as_str()), "{answer}");
    assert!(scene.huge.sent() < LARGEST_EVENT + SLACK, "the gateway took {} bytes", scene.huge.sent());
    scene.ends(bad::LONG_EVENT, "too_large").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gigabyte_of_events_is_cut_off_at_the_limit() -> Result<()> {
    let scene = Scene::set("").await?;
    let mut session = Session::open(scene.gateway.base(), "huge").await?;
    let response = session.begin(bad::LONG_STREAM, &json!({"bytes": GIB})).await?;
    let (size, is_whole) = read(response.into_body()).await?;
    // The last event says why there are no more.
    assert!(is_whole && size < LIMIT + SLACK, "{size} bytes came, whole: {is_whole}");
    assert!(scene.huge.sent() < LIMIT + SLACK, "the gateway took {} bytes", scene.huge.sent());
    scene.ends(bad::LONG_STREAM, "too_large").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_without_end_ends_the_child_alone() -> Result<()> {
    let healthy = Upstream::start().await?;
    let (near, child) = (at_url("healthy", &healthy.url), by_script("child", SCRIPT, &[]));
    let house = House::new(&format!("{PERMISSIVE}{near}{child}"));
    let gateway = house.serve().await;
    let bystanders = Bystanders::at(gateway.base(), "healthy");
    bystanders.served(100).await?;
    let before = gateway.peak();
    let mut session = Session::open(gateway.base(), "child").await?;
    session.echo("before").await?;
    let answer = session.call("endless", &json!({})).await?;
    assert!(error_of(&answer).is_some_and(|error| error.contains("the server ended")), "{answer}");
    crate::dying::comes_back(&mut session).await?;
    bystanders.served(20).await?;
    bystanders.leave().await?;
    let peak = gateway.peak();
    report(&format!("endless line, MiB: {before} before, at most {peak}"));
    assert!(peak < before + MOST_GROWTH, "the gateway grew from {before} to {peak} MiB");
    gateway.stop().await;
    assert_eq!(Records::of(&house).statuses_of("endless"), ["unknown"]);
    Ok(())
}

/// A limit may be small, and counts for answers that are gathered and for lines of children, too.
#[tokio::test]
async fn answers_over_a_small_limit_are_refused() -> Result<()> {
    let limits = "limits = { response_bytes = 10000 }\n";
    let upstream = Upstream::start().await?;
    let (http, child) = (at_url("http", &upstream.url), by_script("child", SCRIPT, &[]));
    let house = House::new(&format!("{PERMISSIVE}{http}{limits}{child}{limits}"));
    let gateway = house.serve().await;
    let mut session = Session::open(gateway.base(), "child").await?;
    for _ in 0..2 {
        let answer = session.call("large", &json!({})).await?;
        let words = "larger than the limit: `response_bytes` of server `child` is 10000 bytes";
        assert_eq!(error_of(&answer), Some(format!("the server's answer is {words}").as_str()));
        session.echo("after").await?;
    }
    let mut session = Session::open(gateway.base(), "http").await?;
    for size in [20_000, 50_000, 200_000] {
        let answer = session.call(ECHO, &json!({"padding": "x".repeat(size)})).await?;
        let words = "larger than the limit: `response_bytes` of server `http` is 10000 bytes";
        assert_eq!(error_of(&answer), Some(format!("the server's answer is {words}").as_str()));
        session.echo("after").await?;
    }
    gateway.stop().await;
    let records = Records::of(&house);
    assert_eq!(records.statuses_of("large"), ["too_large"; 2]);
    let echoes = records.statuses_of(ECHO);
    assert_eq!(echoes, ["ok", "ok", "too_large", "ok", "too_large", "ok", "too_large", "ok"]);
    Ok(())
}
