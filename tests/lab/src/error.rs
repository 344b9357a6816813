//! What can go wrong while the lab is made, used or removed.

use std::io;

/// An attempt of the lab that failed; the variant names the kind of attempt.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call or a file operation.
    #[error("cannot {attempt}")]
    Io {
        /// What was tried, with its object.
        attempt: String,
        /// Why the system refused.
        #[source]
        source: io::Error,
    },
    /// A program that ran and failed.
    #[error("cannot {attempt}: {detail}")]
    Program {
        /// What the program was to do.
        attempt: String,
        /// Its last words.
        detail: String,
    },
    /// A condition that was waited for in vain.
    #[error("waited {seconds} s to {attempt}: {last}")]
    Timeout {
        /// What was waited for.
        attempt: String,
        /// How long.
        seconds: u64,
        /// What the last look showed.
        last: String,
    },
    /// The machine lacks what the lab needs.
    #[error("this machine cannot carry the lab:\n  - {}", .missing.join("\n  - "))]
    Prerequisites {
        /// One sentence for each thing missing.
        missing: Vec<String>,
    },
    /// The request is understood and not carried out.
    #[error("{reason}")]
    Refused {
        /// Why, and what to do instead.
        reason: String,
    },
    /// A certificate that could not be made.
    #[error("cannot make the certificate of {name}")]
    Certificate {
        /// Whose certificate.
        name: String,
        /// Why.
        #[source]
        source: rcgen::Error,
    },
    /// Text of a program or of the kernel that is not what it should be.
    #[error("cannot read {what}: {detail}")]
    Malformed {
        /// What was read.
        what: String,
        /// What is wrong with it.
        detail: String,
    },
}

/// The result of an attempt of the lab.
pub type Result<T> = std::result::Result<T, Error>;

/// Says what was attempted when a system call fails.
pub trait Attempt<T> {
    /// Turns a system error into ours, naming the attempt.
    fn attempt(self, attempt: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<io::Error>> Attempt<T> for std::result::Result<T, E> {
    fn attempt(self, attempt: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Error::Io { attempt: attempt(), source: error.into() })
    }
}

/// An error with all its causes on one line.
pub fn with_causes(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}
