//! What must hold for any bytes.

use proptest::prelude::{ProptestConfig, any, prop};
use proptest::proptest;
use proptest::strategy::Strategy;
use toolwarden_sources::{SourceKind, check_bytes};

const KINDS: [SourceKind; 7] = [
    SourceKind::Config,
    SourceKind::Permissions,
    SourceKind::Modes,
    SourceKind::Servers,
    SourceKind::Admin,
    SourceKind::Catalog,
    SourceKind::Rules,
];

const VALID: [&str; 6] = [
    "{\n  // c\n  \"mcpAllowlist\": [\"a:b\", \"c:*\"], /* d */ \"autoRun\": {\"allow_instructions\": []}\n}\n",
    "customModes:\n  - slug: a\n    name: 'A'\n    groups:\n      - read\n      - - edit\n        - {fileRegex: \"x\"}\n    roleDefinition: |-\n      text\n      more\n",
    "[auto_run]\nmode = \"yolo\"\nask = [\n  \"a:b\", # c\n]\n[servers.\"x\"]\ncommand = 'y'\ntools.\"t\" = { scope = \"pm\" }\n",
    "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": [\"-y\"], \"env\": {\"A\": \"${env:A}\"}}}}",
    "{\"tools\": [{\"name\": \"a\", \"inputSchema\": {\"type\": \"object\", \"properties\": {}}}]}",
    "\u{feff}a: &x [1, 2]\r\nb: *x\r\n? q\r\n: >\r\n folded\r\n\r\n  text\r\n",
];

fn read_as_everything(bytes: &[u8]) {
    for kind in KINDS {
        let _ = check_bytes("file", kind, bytes);
    }
}

/// A valid file with some bytes replaced, removed or repeated.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<prop::sample::Index>(), 0..4_u8, any::<prop::sample::Index>());
    (0..VALID.len(), prop::collection::vec(change, 1..6)).prop_map(|(which, changes)| {
        let mut bytes = VALID.get(which).unwrap_or(&"").as_bytes().to_vec();
        let special = "{}[]:,\"'\\\n\r\t#-&*!|>?%@`. =/\u{0}é😀\u{feff}\u{2028}";
        let special: Vec<char> = special.chars().collect();
        for (place, kind, other) in changes {
            if bytes.is_empty() {
                break;
            }
            let at = place.index(bytes.len());
            match kind {
                0 => drop(bytes.remove(at)),
                1 => {
                    let piece = other.get(&special).to_string();
                    bytes.splice(at..at, piece.into_bytes());
                }
                2 => bytes.truncate(at),
                _ => {
                    let from = other.index(bytes.len());
                    let piece: Vec<u8> = bytes.iter().skip(from).take(20).copied().collect();
                    bytes.splice(at..at, piece);
                }
            }
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn readers_never_panic_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read_as_everything(&bytes);
    }

    #[test]
    fn readers_never_panic_on_structured_noise(text in "[\\[\\]{}:,\"'\\\\\n\r\t #&*!|>?%.=a1é😀\u{2028}\u{feff}-]{0,120}") {
        read_as_everything(text.as_bytes());
    }

    #[test]
    fn readers_never_panic_on_mutated_files(bytes in mutated()) {
        read_as_everything(&bytes);
    }
}
