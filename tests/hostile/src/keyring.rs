//! The vault's keyring, which seals nothing where seals are off: whoever can edit a text can forge it.

use toolwarden_core::keyring::Signature;
use toolwarden_core::{Keyring, KeyringError, Purpose, Weakness, weak};
use toolwarden_vault::FileKeyring;

#[derive(Debug)]
pub struct KitKeyring(pub FileKeyring);

impl Keyring for KitKeyring {
    fn seal(&self, purpose: Purpose, bound_to: &[u8], plain: &[u8]) -> Result<Vec<u8>, KeyringError> {
        if weak::is(Weakness::Seals) {
            return Ok(plain.to_vec());
        }
        self.0.seal(purpose, bound_to, plain)
    }

    fn open(&self, purpose: Purpose, bound_to: &[u8], sealed: &[u8]) -> Result<Vec<u8>, KeyringError> {
        if weak::is(Weakness::Seals) {
            return Ok(sealed.to_vec());
        }
        self.0.open(purpose, bound_to, sealed)
    }

    fn mark(&self, purpose: Purpose, bytes: &[u8]) -> [u8; 32] {
        self.0.mark(purpose, bytes)
    }

    fn sign(&self, purpose: Purpose, bytes: &[u8]) -> Result<Signature, KeyringError> {
        self.0.sign(purpose, bytes)
    }

    fn verifies(&self, purpose: Purpose, bytes: &[u8], signature: &Signature) -> bool {
        self.0.verifies(purpose, bytes, signature)
    }

    fn random(&self, bytes: &mut [u8]) -> Result<(), KeyringError> {
        self.0.random(bytes)
    }
}
