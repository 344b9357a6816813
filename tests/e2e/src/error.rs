//! What can go wrong in a run: what was attempted, and the cause.

/// A run that could not go on, or an expectation that did not hold.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The lab refused.
    #[error("lab: {0}")]
    Lab(#[from] lab::Error),
    /// A Kubernetes call failed.
    #[error("{attempt}")]
    Kubernetes {
        /// What was attempted.
        attempt: String,
        /// The cause.
        #[source]
        source: Box<kube::Error>,
    },
    /// A program failed.
    #[error("{attempt}: {output}")]
    Program {
        /// What was attempted.
        attempt: String,
        /// Its last words.
        output: String,
    },
    /// An HTTP call failed.
    #[error("{attempt}")]
    Http {
        /// What was attempted.
        attempt: String,
        /// The cause.
        #[source]
        source: reqwest::Error,
    },
    /// A broker call failed.
    #[error("{attempt}")]
    Broker {
        /// What was attempted.
        attempt: String,
        /// The cause.
        #[source]
        source: Box<rabbit::Error>,
    },
    /// Something did not come in time.
    #[error("{what} did not come within {seconds} s; last seen: {last}")]
    TimedOut {
        /// What was waited for.
        what: String,
        /// How long.
        seconds: u64,
        /// What was seen last.
        last: String,
    },
    /// An expectation did not hold.
    #[error("expected {0}")]
    Expected(String),
    /// A file could not be read or written.
    #[error("{path}")]
    File {
        /// Which.
        path: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// Something that was read makes no sense.
    #[error("{0}")]
    Malformed(String),
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error with its causes in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// Fails with `what` unless `holds`.
pub fn expect(holds: bool, what: impl Into<String>) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::Expected(what.into())) }
}
