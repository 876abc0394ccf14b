//! CORE-3 as a golden table: reason → payers.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::Reason;
use crate::decision::Decision;

#[test]
fn core_3_reason_to_payers_table() {
    let mut table = String::from("decision  reason                 payers\n");
    for reason in Reason::ALL {
        let payers: Vec<_> = reason.payers().iter().map(|payer| payer.as_str()).collect();
        let row = format!("{:<9} {:<22} {}", reason.decision().as_str(), reason.code(), payers.join(", "));
        let written = writeln!(table, "{}", row.trim_end());
        assert!(written.is_ok());
    }
    insta::assert_snapshot!("reason_payers", table);
}

#[test]
fn core_3_only_holds_have_payers_and_every_hold_has_one() {
    for reason in Reason::ALL {
        assert_eq!(reason.payers().is_empty(), reason.decision() != Decision::Hold, "{}", reason.code());
    }
}

#[test]
fn codes_are_unique_and_sentences_are_there() {
    let codes: BTreeSet<_> = Reason::ALL.iter().map(|reason| reason.code()).collect();
    assert_eq!(codes.len(), Reason::ALL.len());
    for reason in Reason::ALL {
        assert!(!reason.sentence().is_empty());
        assert_eq!(reason.remedy().is_empty(), reason.decision() == Decision::Allow, "{}", reason.code());
    }
}
