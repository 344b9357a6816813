//! Credentials that cannot be printed or serialized.

use std::fmt;

/// What replaces a secret wherever it would be shown.
pub(crate) const MASK: &str = "***";

/// A password, hash or URI that must not leave memory: prints as `***`, has no `Serialize`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// Gives the bare value, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self(value)
    }
}

impl From<&str> for Secret {
    fn from(value: &str) -> Self {
        Self(value.to_owned())
    }
}

/// A user of one broker and his password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The user's name.
    pub username: String,
    /// His password.
    pub password: Secret,
}

impl Credentials {
    /// Puts name and password together.
    pub fn new(username: impl Into<String>, password: impl Into<Secret>) -> Self {
        Self { username: username.into(), password: password.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_never_prints() {
        let creds = Credentials::new("operator", "hunter2");
        assert_eq!(format!("{creds:?}"), r#"Credentials { username: "operator", password: *** }"#);
        assert_eq!(creds.password.to_string(), "***");
        assert_eq!(creds.password.expose(), "hunter2");
    }
}
