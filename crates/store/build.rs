//! Builds the crate again when a migration is added: the macro that embeds them only notices changed ones.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
