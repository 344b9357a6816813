//! What can go wrong while acting: what was attempted, on which side and object; the cause is the source.

use decide::side::Side;

/// An effect that could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    /// A Kubernetes call failed.
    #[error("{attempt} {kind} {name}")]
    Kubernetes {
        /// The verb, such as `apply`.
        attempt: &'static str,
        /// The kind of object.
        kind: &'static str,
        /// Its name.
        name: String,
        /// The cause.
        #[source]
        source: Box<kube::Error>,
    },
    /// A broker call failed.
    #[error("{attempt} on {side}")]
    Broker {
        /// What was attempted.
        attempt: &'static str,
        /// Where.
        side: Side,
        /// The cause.
        #[source]
        source: Box<rabbit::Error>,
    },
    /// We may no longer act: the lease is gone.
    #[error("the lease was lost before {effect}")]
    LeaseLost {
        /// What was not done.
        effect: &'static str,
    },
    /// An object of ours has another owner.
    #[error("{kind} {name} belongs to {owner}, not to this migration")]
    NotOurs {
        /// The kind of object.
        kind: &'static str,
        /// Its name.
        name: String,
        /// Whose it is.
        owner: String,
    },
    /// Something that must be there is not.
    #[error("{what} is missing")]
    Missing {
        /// What.
        what: String,
    },
}

impl ActError {
    /// A stable label for metrics and backoff.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Kubernetes { .. } => "kubernetes",
            Self::Broker { .. } => "broker",
            Self::LeaseLost { .. } => "lease-lost",
            Self::NotOurs { .. } => "not-ours",
            Self::Missing { .. } => "missing",
        }
    }
}

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
