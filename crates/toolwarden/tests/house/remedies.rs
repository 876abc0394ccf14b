//! A remedy names only commands that exist.

use std::process::Command;

use toolwarden_core::Reason;

/// The verbs named as `toolwarden VERB ..` in a text.
fn named_verbs(text: &str) -> Vec<String> {
    let after = text.split("`toolwarden ").skip(1);
    after.filter_map(|rest| rest.split(['`', ' ']).next()).map(str::to_owned).collect()
}

#[test]
fn remedies_name_commands_that_exist() {
    let help = Command::new(env!("CARGO_BIN_EXE_toolwarden")).arg("--help").output();
    let help = help.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let verbs: Vec<&str> = help.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    assert!(verbs.contains(&"explain"), "{help}");
    let mut checked = 0;
    for reason in Reason::ALL {
        for verb in named_verbs(reason.remedy()) {
            assert!(verbs.contains(&verb.as_str()), "{}: `toolwarden {verb}` does not exist", reason.code());
            checked += 1;
        }
    }
    assert!(checked > 0);
}
