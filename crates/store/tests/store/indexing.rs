//! Delivery and questions: each line once, calls completed by their outcomes, rows found again.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use toolwarden_core::{AuditRecord, RecordKind};
use toolwarden_store::index::{CSV_HEADER, Filter, PageCursor, ServerStatus, ship, spawn_shipper};
use toolwarden_store::{DatabaseError, Index, IndexError, SyncLevel};

use crate::kit::{Outcome, Place, at, intent, on_both, outcome, refusal};

async fn all(index: &Index) -> Result<Vec<toolwarden_store::index::Row>, IndexError> {
    index.query(&Filter::default(), 100_000, None).await
}

async fn gate_15_calls_are_rows_completed_by_their_outcomes(place: Place) -> Outcome {
    let index = place.index().await?;
    let (journal, _) = place.open()?;
    let receipt = journal.record(&intent(1)).await?;
    let refused = journal.record(&refusal(2)).await?;
    ship(&place.journal_root(), &index).await?;
    let rows = all(&index).await?;
    let told: Vec<_> = rows.iter().map(|row| (row.call, row.kind.as_str(), row.status.as_deref())).collect();
    assert_eq!(told, [(2, "refusal", Some("denied")), (1, "intent", None)], "newest first");
    // The outcome arrives in a later delivery, and another call within one.
    journal.note(&outcome(1))?;
    journal.record(&intent(3)).await?;
    journal.note(&outcome(3))?;
    journal.flush().await?;
    ship(&place.journal_root(), &index).await?;
    let rows = all(&index).await?;
    assert_eq!(rows.len(), 3);
    let first = rows.last().cloned().unwrap_or_default();
    assert_eq!((first.status.as_deref(), first.duration_us), (Some("ok"), Some(10)));
    assert_eq!((first.decision.as_deref(), first.user.as_deref()), (Some("allow"), Some("anna")));
    assert_eq!((first.sequence, first.outcome_sequence), (receipt.sequence, Some(refused.sequence + 1)));
    assert_eq!((first.hash, first.node), (receipt.hash.to_string(), receipt.node.to_string()));
    let third = rows.first().cloned().unwrap_or_default();
    assert_eq!((third.status.as_deref(), third.duration_us, third.response_bytes), (Some("ok"), Some(30), Some(512)));
    Ok(())
}

async fn rows_have_the_documented_fields(place: Place) -> Outcome {
    let index = place.index().await?;
    let (journal, _) = place.open()?;
    journal.record(&refusal(2)).await?;
    ship(&place.journal_root(), &index).await?;
    let row = all(&index).await?.pop().unwrap_or_default();
    let json = serde_json::to_value(&row)?;
    let names: Vec<&str> = json.as_object().into_iter().flat_map(|fields| fields.keys()).map(String::as_str).collect();
    for name in [
        "time",
        "decision",
        "stage",
        "reason",
        "status",
        "server",
        "tool",
        "user",
        "agent_type",
        "token_id",
        "task_id",
        "approval_id",
        "duration_us",
        "node",
        "sequence",
        "hash",
    ] {
        assert!(names.contains(&name), "{name}");
    }
    assert_eq!(CSV_HEADER.trim_end(), names.join(","));
    assert_eq!(row.to_csv_line().matches(',').count(), CSV_HEADER.matches(',').count());
    assert_eq!(json.get("reason").and_then(|reason| reason.as_str()), Some("role_disallows"));
    Ok(())
}

async fn gate_15_two_deliveries_at_once_deliver_each_line_once(place: Place) -> Outcome {
    let mut options = place.options();
    options.segment_bytes = 50_000;
    let (journal, _) = place.open_with(&options)?;
    let (other, _) = place.open_with(&options)?;
    let indexes = [place.index().await?, place.index().await?, place.index().await?];
    let root = place.journal_root();
    let writer = tokio::spawn(async move {
        for call in 1..=3000 {
            for journal in [&journal, &other] {
                journal.record(&intent(call)).await?;
                journal.note(&outcome(call))?;
            }
        }
        journal.close().await?;
        other.close().await
    });
    while !writer.is_finished() {
        let [a, b, c] = &indexes;
        let (a, b, c) = tokio::join!(ship(&root, a), ship(&root, b), ship(&root, c));
        for delivered in [a?, b?, c?] {
            assert!(delivered.problems.is_empty(), "{:?}", delivered.problems);
        }
    }
    writer.await??;
    let [index, ..] = &indexes;
    ship(&root, index).await?;
    let rows = all(index).await?;
    let kept = rows.iter().filter(|row| row.kind == "intent" && row.status.as_deref() == Some("ok"));
    assert_eq!((rows.len(), kept.count()), (6000, 6000));
    assert_eq!(place.problem(&index.seen().await?)?, None);
    Ok(())
}

async fn a_broken_journal_is_delivered_up_to_the_break_and_others_wholly(place: Place) -> Outcome {
    let index = place.index().await?;
    let (first, _) = place.open()?;
    let (second, _) = place.open()?;
    for call in 1..=5 {
        first.record(&refusal(call)).await?;
        second.record(&refusal(call)).await?;
    }
    first.close().await?;
    second.close().await?;
    let segment = place.segments("serve-1")?.pop().unwrap_or_default();
    let text = fs::read_to_string(&segment)?;
    let changed = text.replace("\"call\":3", "\"call\":9");
    fs::write(&segment, changed)?;
    let delivered = ship(&place.journal_root(), &index).await?;
    assert!(
        delivered
            .problems
            .iter()
            .any(|problem| matches!(problem, IndexError::Broken { node, .. } if node == "serve-1"))
    );
    assert_eq!(all(&index).await?.len(), 7);
    // Put right, the rest follows.
    fs::write(&segment, text)?;
    assert!(ship(&place.journal_root(), &index).await?.problems.is_empty());
    assert_eq!(all(&index).await?.len(), 10);
    Ok(())
}

#[tokio::test]
async fn self_3_the_database_is_owner_only_and_others_are_refused() -> Outcome {
    let place = Place::new()?;
    let path = place.base().join("audit.db");
    let database = place.database().await?;
    Index::over(database.clone()).tell_servers("n", &[status("a", "connected")], at(1)).await?;
    for entry in
        fs::read_dir(place.base())?.flatten().filter(|entry| entry.metadata().is_ok_and(|found| found.is_file()))
    {
        assert_eq!(entry.metadata()?.permissions().mode() & 0o777, 0o600, "{:?}", entry.path());
    }
    database.close().await;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644))?;
    let error = place.database().await.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("chmod 600"), "{error}");
    Ok(())
}

async fn a_newer_database_is_refused_with_what_to_do(place: Place) -> Outcome {
    let database = place.database().await?;
    let insert = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                  VALUES (9000, 'later', TRUE, '', 0)";
    place.execute(insert).await?;
    database.close().await;
    let error = place.database().await.err();
    assert!(matches!(&error, Some(DatabaseError::Newer { version: 9000, .. })), "{error:?}");
    assert!(error.is_some_and(|error| error.to_string().contains("update this one")));
    Ok(())
}

async fn processes_that_start_at_once_share_a_new_database(place: Place) -> Outcome {
    let (a, b, c, d) = tokio::join!(place.index(), place.index(), place.index(), place.index());
    for index in [a?, b?, c?, d?] {
        assert!(index.servers_elsewhere(None, at(0)).await?.is_empty());
    }
    Ok(())
}

/// Calls 1 to 30: every third is refused; two tools, two users.
async fn filled(place: &Place) -> Result<Index, Box<dyn std::error::Error>> {
    let index = place.index().await?;
    let (journal, _) = place.open()?;
    for call in 1..=30 {
        if call % 3 == 0 {
            journal.record(&refusal(call)).await?;
            continue;
        }
        let mut record = intent(call);
        record.user = Some(if call % 2 == 0 { "anna" } else { "bert" });
        record.tool = Some(if call > 15 { "create_issue" } else { "=list,\"issues\"" });
        journal.record(&record).await?;
        journal.note(&outcome(call))?;
    }
    let mut event = AuditRecord::new(RecordKind::Event, at(40), 31);
    event.detail = Some("a session began");
    journal.record(&event).await?;
    journal.close().await?;
    ship(&place.journal_root(), &index).await?;
    Ok(index)
}

async fn filters_narrow(place: Place) -> Outcome {
    let index = filled(&place).await?;
    let text = |value: &str| Some(value.to_owned());
    let cases = [
        (Filter::default(), 31),
        (Filter { decision: text("deny"), ..Filter::default() }, 10),
        (Filter { kind: text("event"), ..Filter::default() }, 1),
        (Filter { status: text("ok"), ..Filter::default() }, 20),
        (Filter { user: text("bert"), ..Filter::default() }, 10),
        (Filter::default().with_tool("github:create_issue"), 20),
        (Filter::default().with_tool("github:*"), 30),
        (Filter::default().with_tool("gitlab"), 0),
        (Filter { since: Some(at(11)), until: Some(at(21)), ..Filter::default() }, 10),
        (Filter { user: text("' OR 1 = 1 --"), ..Filter::default() }, 0),
    ];
    for (filter, expected) in cases {
        assert_eq!(index.query(&filter, 1000, None).await?.len(), expected, "{filter:?}");
    }
    Ok(())
}

async fn pages_follow_each_other_without_gaps(place: Place) -> Outcome {
    let index = filled(&place).await?;
    let whole = all(&index).await?;
    let mut paged = Vec::new();
    let mut after: Option<PageCursor> = None;
    loop {
        let page = index.query(&Filter::default(), 7, after.as_ref()).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.cursor().to_string().parse()?);
        paged.extend(page);
    }
    assert_eq!(paged, whole);
    assert!("".parse::<PageCursor>().is_err() && "1.x.n".parse::<PageCursor>().is_err());
    Ok(())
}

async fn stats_count(place: Place) -> Outcome {
    let index = filled(&place).await?;
    let stats = index.stats(&Filter::default()).await?;
    let named = |counts: &[toolwarden_store::index::Count]| -> Vec<(String, u64)> {
        counts.iter().map(|count| (count.name.clone(), count.count)).collect()
    };
    assert_eq!(stats.total, 31);
    assert_eq!(named(&stats.by_decision), [("allow".to_owned(), 20), ("deny".to_owned(), 10)]);
    assert_eq!(named(&stats.by_status), [("ok".to_owned(), 20), ("denied".to_owned(), 10)]);
    assert_eq!(named(&stats.by_user), [("anna".to_owned(), 20), ("bert".to_owned(), 10)]);
    assert_eq!(named(&stats.by_tool).first(), Some(&("github:create_issue".to_owned(), 20)));
    let durations = stats.duration_us.map(|durations| (durations.calls, durations.p50, durations.p99, durations.max));
    assert_eq!(durations, Some((20, 140, 290, 290)));
    let none = index.stats(&Filter::default().with_tool("gitlab")).await?;
    assert_eq!((none.total, none.duration_us), (0, None));
    Ok(())
}

async fn exports_are_whole_oldest_first_and_safe_for_spreadsheets(place: Place) -> Outcome {
    let index = filled(&place).await?;
    let mut export = index.export(Filter::default());
    let (mut json, mut csv, mut calls) = (String::new(), CSV_HEADER.to_owned(), Vec::new());
    loop {
        let page = export.next_page().await?;
        if page.is_empty() {
            break;
        }
        for row in page {
            json.push_str(&row.to_json_line());
            csv.push_str(&row.to_csv_line());
            calls.push(row.call);
        }
    }
    assert!(calls.iter().copied().eq(1..=31));
    assert!(json.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
    assert_eq!((json.lines().count(), csv.lines().count()), (31, 32));
    assert!(csv.contains(",\"'=list,\"\"issues\"\"\","), "{csv}");
    assert!(export.next_page().await?.is_empty());
    Ok(())
}

fn status(name: &str, status: &str) -> ServerStatus {
    let owner = (name == "a").then(|| "anna".to_owned());
    ServerStatus { name: name.to_owned(), owner, status: status.to_owned(), tools: 3, detail: None }
}

async fn server_states_are_replaced_and_forgotten(place: Place) -> Outcome {
    let index = place.index().await?;
    let there = place.index().await?;
    let told = async |here: Option<&str>, since| {
        let told = there.servers_elsewhere(here, since).await?;
        let words = told.into_iter().map(|told| format!("{} {} {}", told.node, told.server.name, told.server.status));
        Ok::<_, Box<dyn std::error::Error>>(words.collect::<Vec<_>>())
    };
    index.tell_servers("n1", &[status("b", "idle"), status("a", "connected")], at(1)).await?;
    index.tell_servers("n2", &[status("b", "error")], at(2)).await?;
    assert_eq!(told(None, at(0)).await?, ["n1 a connected", "n1 b idle", "n2 b error"]);
    index.tell_servers("n1", &[status("b", "connected")], at(3)).await?;
    assert_eq!(told(None, at(3)).await?, ["n1 b connected"], "a node that was not heard for long is gone");
    assert_eq!(told(Some("n1"), at(0)).await?, ["n2 b error"]);
    let owners: Vec<_> =
        there.servers_elsewhere(None, at(0)).await?.into_iter().map(|told| told.server.owner).collect();
    assert_eq!(owners, [None, None]);
    index.tell_servers("n1", &[], at(4)).await?;
    assert_eq!(told(None, at(0)).await?, ["n2 b error"]);
    Ok(())
}

async fn gate_15_at_level_store_a_record_is_in_the_index_when_acknowledged(place: Place) -> Outcome {
    let index = place.index().await?;
    let mut options = place.options();
    options.sync = SyncLevel::Store;
    let (journal, _) = place.open_with(&options)?;
    // The interval never comes: records ask for their delivery themselves.
    let hour = Duration::from_secs(3600);
    let shipper = spawn_shipper(place.journal_root(), index.clone(), Some(journal.clone()), hour);
    for call in 1..=5 {
        journal.record(&intent(call)).await?;
        assert_eq!(all(&index).await?.len() as u64, call);
        journal.note(&outcome(call))?;
    }
    journal.close().await?;
    shipper.stop().await;
    assert!(all(&index).await?.iter().all(|row| row.status.as_deref() == Some("ok")));
    Ok(())
}

async fn the_shipper_delivers_by_itself_and_when_told(place: Place) -> Outcome {
    let index = place.index().await?;
    let (journal, _) = place.open()?;
    for interval in [Duration::from_millis(10), Duration::from_secs(3600)] {
        let shipper = spawn_shipper(place.journal_root(), index.clone(), None, interval);
        let before = all(&index).await?.len();
        journal.record(&refusal(journal.next_call())).await?;
        for _ in 0..400 {
            if all(&index).await?.len() > before {
                break;
            }
            if interval > Duration::from_secs(1) {
                shipper.deliver();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(all(&index).await?.len(), before + 1);
        shipper.stop().await;
    }
    Ok(())
}

on_both!(
    gate_15_calls_are_rows_completed_by_their_outcomes,
    rows_have_the_documented_fields,
    gate_15_two_deliveries_at_once_deliver_each_line_once,
    a_broken_journal_is_delivered_up_to_the_break_and_others_wholly,
    a_newer_database_is_refused_with_what_to_do,
    filters_narrow,
    pages_follow_each_other_without_gaps,
    stats_count,
    exports_are_whole_oldest_first_and_safe_for_spreadsheets,
    server_states_are_replaced_and_forgotten,
    gate_15_at_level_store_a_record_is_in_the_index_when_acknowledged,
    the_shipper_delivers_by_itself_and_when_told,
    processes_that_start_at_once_share_a_new_database,
);
