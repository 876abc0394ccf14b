//! A secret shows itself to nobody who only prints.

use super::Secret;

#[test]
fn vault_6_debug_and_display_show_nothing() {
    let secret = Secret::new("hunter2".to_owned());
    let printed = format!("{secret:?} {secret} {:#?}", Some(&secret));
    assert!(!printed.contains("hunter"), "{printed}");
    assert_eq!(secret.reveal_to_upstream(), "hunter2");
}
