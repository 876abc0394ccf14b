//! Notices of an upgrade: made for databases of an earlier version alone, and told once.

use toolwarden_core::{Bearer, Claims, NewToken, TOKEN_BYTES};
use toolwarden_store::state::{Author, UpgradeNotice};

use crate::kit::{Outcome, Place, at, on_both};

async fn self_5_a_notice_is_made_for_an_earlier_database_and_told_once(place: Place) -> Outcome {
    let state = place.state().await?;
    assert_eq!(state.upgrade_notices().await?, [], "nothing changed for a fresh one");
    assert!(!state.tell_upgrade("client_rights", at(2)).await?);
    let token = NewToken::of_random(&[1; TOKEN_BYTES]);
    let author = Author { user: "ada".to_owned(), door: "cli".to_owned(), time: at(1) };
    state.issue_token(&author, &token.id, token.digest, &Claims::of(Bearer::Person)).await?;
    // As it was before the version that brought notices.
    place.execute("DROP TABLE upgrade_notices").await?;
    place.execute("DELETE FROM _sqlx_migrations WHERE version = 11").await?;
    let notice = |told_at| UpgradeNotice { name: "client_rights".to_owned(), told_at };
    let state = place.state().await?;
    assert_eq!(state.upgrade_notices().await?, [notice(None)]);
    assert!(state.tell_upgrade("client_rights", at(3)).await?);
    assert!(!place.state().await?.tell_upgrade("client_rights", at(4)).await?, "once");
    assert_eq!(place.state().await?.upgrade_notices().await?, [notice(Some(at(3)))]);
    Ok(())
}

on_both!(self_5_a_notice_is_made_for_an_earlier_database_and_told_once);
