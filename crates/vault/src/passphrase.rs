//! A key out of what a person types: Argon2id, so that trying many passphrases is dear.
//!
//! Salt and costs are no secret: they are stored with what the key seals, so that values made with
//! today's costs still open when the costs rise.

use std::fmt;
use std::str::FromStr;

use argon2::{Algorithm, Argon2, Params, Version};

use crate::key_text::KeyBytes;

/// What one guess costs: 64 MiB and three passes, about a quarter of a second.
const MEMORY_KIB: u32 = 64 * 1024;
const PASSES: u32 = 3;
const LANES: u32 = 1;

/// Above this a stored row could be used to exhaust the machine that reads it.
const MOST_MEMORY_KIB: u32 = 1024 * 1024;
const MOST_PASSES: u32 = 64;
const MOST_LANES: u32 = 16;

/// How a passphrase becomes a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretching {
    salt: [u8; 16],
    memory_kib: u32,
    passes: u32,
    lanes: u32,
}

impl Stretching {
    /// Today's costs and a salt of its own.
    pub(crate) fn fresh() -> Result<Self, aws_lc_rs::error::Unspecified> {
        let mut salt = [0; 16];
        crate::randomness::fill(&mut salt)?;
        Ok(Self { salt, memory_kib: MEMORY_KIB, passes: PASSES, lanes: LANES })
    }

    /// The key of a passphrase; none where the machine has not got the memory.
    pub(crate) fn stretch(&self, passphrase: &str) -> Option<KeyBytes> {
        let costs = Params::new(self.memory_kib, self.passes, self.lanes, Some(32)).ok()?;
        let mut key = KeyBytes::default();
        Argon2::new(Algorithm::Argon2id, Version::V0x13, costs)
            .hash_password_into(passphrase.as_bytes(), &self.salt, key.as_mut_slice())
            .ok()?;
        Some(key)
    }
}

impl fmt::Display for Stretching {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("argon2id:")?;
        for byte in self.salt {
            write!(formatter, "{byte:02x}")?;
        }
        write!(formatter, ":{}:{}:{}", self.memory_kib, self.passes, self.lanes)
    }
}

impl FromStr for Stretching {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.strip_prefix("argon2id:").ok_or(())?.split(':');
        let digits = parts.next().ok_or(())?;
        let mut cost = |most: u32| {
            let cost: u32 = parts.next().ok_or(())?.parse().map_err(|_| ())?;
            if (1..=most).contains(&cost) { Ok(cost) } else { Err(()) }
        };
        let (memory_kib, passes, lanes) = (cost(MOST_MEMORY_KIB)?, cost(MOST_PASSES)?, cost(MOST_LANES)?);
        if parts.next().is_some() || digits.len() != 32 {
            return Err(());
        }
        let salt = u128::from_str_radix(digits, 16).map_err(|_| ())?.to_be_bytes();
        let stretching = Self { salt, memory_kib, passes, lanes };
        // Read back, because a second spelling of the same costs would be another text to authenticate.
        if stretching.to_string() == text { Ok(stretching) } else { Err(()) }
    }
}

#[cfg(test)]
#[path = "passphrase_tests.rs"]
mod tests;
