//! The arguments of `vault`.

use clap::Subcommand;

use super::Format;

/// Look at how the store is sealed, and give it another key
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  toolwarden vault status\n  toolwarden vault rotate-key")]
pub enum VaultCommand {
    /// Show where the master key comes from, the roots, and what each of them sealed
    #[command(after_help = "Example:\n  toolwarden vault status --json")]
    Status {
        #[command(flatten)]
        format: Format,
    },
    /// Seal everything with a new root, while gateways go on; or go on where that was interrupted
    #[command(
        after_help = "Example:\n  toolwarden vault rotate-key\n\nThe master key stays. Former roots are kept, sealed by it: they check what they signed, and seal nothing. Interrupted at any moment, nothing is lost; the same command goes on."
    )]
    RotateKey {
        #[command(flatten)]
        format: Format,
    },
}
