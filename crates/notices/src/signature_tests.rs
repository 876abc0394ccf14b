//! Signatures against a vector of Standard Webhooks, and everything that is none.

use jiff::Timestamp;
use toolwarden_core::Secret;

use super::{NotSigned, Signed, check, sign};

const BODY: &[u8] = br#"{"test": 2432232314}"#;
const TIME: &str = "1614265330";
const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";

fn secret() -> Secret {
    Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned())
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap_or_default()
}

#[test]
fn a_signature_is_what_others_make_of_the_same() {
    let expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
    assert_eq!(sign(&secret(), ID, TIME, BODY).as_deref(), Some(expected));
    let signed = Signed { id: ID, time: TIME, signature: &format!("v1,AAAA {expected}") };
    assert_eq!(check(&secret(), signed, BODY, at(1_614_265_400)), Ok(()));
}

#[test]
fn whatever_was_changed_or_is_old_counts_for_nothing() {
    let good = sign(&secret(), ID, TIME, BODY).unwrap_or_default();
    let now = at(1_614_265_330);
    let signed = Signed { id: ID, time: TIME, signature: &good };
    assert_eq!(check(&secret(), signed, BODY, now), Ok(()));
    for wrong in [
        Signed { id: "msg_other", ..signed },
        Signed { time: "1614265331", ..signed },
        Signed { signature: "", ..signed },
        Signed { signature: "v1,", ..signed },
        Signed { signature: good.trim_start_matches("v1,"), ..signed },
    ] {
        assert_eq!(check(&secret(), wrong, BODY, now), Err(NotSigned::Wrong), "{wrong:?}");
    }
    assert_eq!(check(&secret(), signed, b"{}", now), Err(NotSigned::Wrong));
    assert_eq!(check(&Secret::new("other".to_owned()), signed, BODY, now), Err(NotSigned::Wrong));
    for late in [at(1_614_265_330 + 301), at(1_614_265_330 - 301)] {
        assert_eq!(check(&secret(), signed, BODY, late), Err(NotSigned::Late));
    }
    let odd = sign(&secret(), ID, "soon", BODY).unwrap_or_default();
    let odd = Signed { time: "soon", signature: &odd, ..signed };
    assert_eq!(check(&secret(), odd, BODY, now), Err(NotSigned::Late));
}
