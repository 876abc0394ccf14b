//! A text that cannot be printed, compared or serialised by accident.

use std::fmt;

use zeroize::Zeroize;

/// Holds a credential. `Debug` and `Display` show nothing of it; memory is wiped on drop.
///
/// ```compile_fail
/// fn leak(secret: &toolwarden_core::Secret) -> impl serde::Serialize + '_ { secret }
/// ```
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The text itself. The long name is meant to be seen in review.
    #[must_use]
    pub fn reveal_to_upstream(&self) -> &str {
        &self.0
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(..)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[secret]")
    }
}

#[cfg(test)]
#[path = "secret_tests.rs"]
mod tests;
