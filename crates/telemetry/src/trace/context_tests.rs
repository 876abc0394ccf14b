//! What is taken for a place in a trace, and what is not.

use super::TraceContext;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[test]
fn a_good_one_comes_back_as_it_was() {
    let context = TraceContext::parse(PARENT, Some("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"));
    assert_eq!(context.as_ref().map(ToString::to_string).as_deref(), Some(PARENT));
    assert_eq!(context.as_ref().and_then(TraceContext::state), Some("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"));
    assert!(context.is_some_and(|context| context.is_sampled()));
    let unsampled = TraceContext::parse(&PARENT.replace("-01", "-00"), None);
    assert!(unsampled.is_some_and(|context| !context.is_sampled()));
    // Of a later version the part that is known, written as our own.
    let later = TraceContext::parse(&format!("{}-what-comes", PARENT.replace("00-0", "cc-0")), None);
    assert_eq!(later.map(|context| context.to_string()).as_deref(), Some(PARENT));
}

#[test]
fn what_is_wrong_is_none() {
    let long = format!("cc{}-{}", PARENT.get(2..).unwrap_or_default(), "x".repeat(300));
    let upper = PARENT.to_uppercase();
    for wrong in [
        "",
        "00",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0af7651916cd43dd8448eb211c80319-b7ad6b71692033311-01",
        "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        " 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333é-01",
        &upper,
        &long,
    ] {
        assert_eq!(TraceContext::parse(wrong, None), None, "{wrong:?}");
    }
}

#[test]
fn a_wrong_state_is_left_out() {
    let (long, many) = (format!("a={}", "x".repeat(511)), vec!["a=b"; 33].join(","));
    for wrong in ["", "a", "a=", "=b", "a=b=c", "a=b\r\nevil: 1", "a=\u{e9}", &long, &many] {
        let context = TraceContext::parse(PARENT, Some(wrong));
        assert!(context.is_some_and(|context| context.state().is_none()), "{wrong:?}");
    }
}
