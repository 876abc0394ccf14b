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
        after_help = "Examples:\n  toolwarden vault rotate-key\n  toolwarden vault rotate-key --master\n\nThe master key stays, unless --master is given: then a new key file takes its place first, and whoever has the former one opens nothing that is stored from then on. Former roots are kept, sealed by the master key: they open and check what they made, and seal nothing. Interrupted at any moment, nothing is lost; the same command goes on."
    )]
    RotateKey {
        /// Replace the master key, too (where it is kept in a file)
        #[arg(long)]
        master: bool,
        #[command(flatten)]
        format: Format,
    },
}
