//! Any record comes out of the journal and the index as it went in.

use jiff::Timestamp;
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert_eq, proptest};
use proptest::test_runner::TestCaseError;
use toolwarden_core::{AuditRecord, RecordKind, Status};
use toolwarden_store::index::{Filter, Row, ship};

use crate::kit::Place;

/// What a record is made of.
#[derive(Debug, Clone)]
struct Parts {
    texts: Vec<Option<String>>,
    groups: Vec<String>,
    numbers: Vec<Option<u64>>,
    microseconds: i64,
    is_refusal: bool,
}

fn parts() -> impl Strategy<Value = Parts> {
    let text = proptest::option::of("(?s).{0,40}");
    let number = proptest::option::of(0..i64::MAX.unsigned_abs());
    let fields =
        (vec(text, 14), vec(any::<String>(), 0..4), vec(number, 4), 0..4_000_000_000_000_000_i64, any::<bool>());
    fields.prop_map(|(texts, groups, numbers, microseconds, is_refusal)| Parts {
        texts,
        groups,
        numbers,
        microseconds,
        is_refusal,
    })
}

impl Parts {
    fn text(&self, place: usize) -> Option<&str> {
        self.texts.get(place)?.as_deref()
    }

    fn number(&self, place: usize) -> Option<u64> {
        self.numbers.get(place).copied().flatten()
    }

    fn record(&self, call: u64) -> AuditRecord<'_> {
        let kind = if self.is_refusal { RecordKind::Refusal } else { RecordKind::Event };
        let time = Timestamp::from_microsecond(self.microseconds).unwrap_or_default();
        let mut record = AuditRecord::new(kind, time, call);
        record.groups = &self.groups;
        record.status = self.is_refusal.then_some(Status::Held);
        let fields = [
            &mut record.method,
            &mut record.server,
            &mut record.tool,
            &mut record.user,
            &mut record.agent_type,
            &mut record.token_id,
            &mut record.task_id,
            &mut record.run_id,
            &mut record.session,
            &mut record.rule,
            &mut record.rule_source,
            &mut record.approval_id,
            &mut record.arguments_digest,
            &mut record.detail,
        ];
        for (place, field) in fields.into_iter().enumerate() {
            *field = self.text(place);
        }
        let fields = [
            &mut record.policy_version,
            &mut record.duration_us,
            &mut record.request_bytes,
            &mut record.response_bytes,
        ];
        for (place, field) in fields.into_iter().enumerate() {
            *field = self.number(place);
        }
        record
    }

    /// The row as it must come out, apart from its place in the chain.
    fn row(&self, call: u64) -> Row {
        let json = serde_json::to_string(&self.record(call)).unwrap_or_default();
        let with_sequence = json.replacen('{', "{\"seq\":0,", 1);
        serde_json::from_str(&with_sequence).unwrap_or_default()
    }
}

async fn round_trip(records: &[Parts]) -> Result<Vec<Row>, Box<dyn std::error::Error>> {
    let place = Place::new()?;
    let (journal, _) = place.open()?;
    for (parts, call) in records.iter().zip(1..) {
        journal.record(&parts.record(call)).await?;
    }
    journal.close().await?;
    assert_eq!(place.problem(&[])?, None);
    let index = place.index().await?;
    ship(&place.journal_root(), &index).await?;
    let mut rows = index.query(&Filter::default(), 1000, None).await?;
    rows.sort_by_key(|row| row.call);
    Ok(rows)
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(40))]

    #[test]
    fn gate_15_any_record_comes_out_as_it_went_in(records in vec(parts(), 1..12)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let rows = runtime.block_on(round_trip(&records)).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(rows.len(), records.len());
        for ((parts, row), call) in records.iter().zip(rows).zip(1..) {
            let expected = Row { node: row.node.clone(), hash: row.hash.clone(), sequence: row.sequence, ..parts.row(call) };
            prop_assert_eq!(row, expected);
        }
    }
}
