//! Fuzzes the target `headers`; what it does is in `targets.rs`.
#![no_main]

#[path = "../targets.rs"]
#[allow(dead_code)]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    for target in targets::TARGETS.iter().filter(|target| target.name == "headers") {
        (target.run)(data);
    }
});
