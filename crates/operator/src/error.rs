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

/// An error with its causes in one line. What the API server answered is told in its words, once: its error
/// type would say them three times.
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut parts = Vec::new();
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(status) = answer(cause) {
            parts.push(format!("{} ({})", status.message, status.code));
            break;
        }
        parts.push(cause.to_string());
        next = cause.source();
    }
    parts.join(": ")
}

fn answer<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a kube::core::Status> {
    let boxed = || error.downcast_ref::<Box<kube::Error>>().map(|boxed| &**boxed);
    match error.downcast_ref::<kube::Error>().or_else(boxed) {
        Some(kube::Error::Api(status)) => Some(status),
        Some(_) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_the_api_server_is_told_once() {
        let status = kube::core::Status::failure("the object has been modified", "Conflict").with_code(409);
        let source = Box::new(kube::Error::Api(status.boxed()));
        let error = ActError::Kubernetes { attempt: "delete", kind: "Secret", name: "s".to_owned(), source };
        assert_eq!(chain(&error), "delete Secret s: the object has been modified (409)");
        let missing = ActError::Missing { what: "Service s".to_owned() };
        assert_eq!(chain(&missing), "Service s is missing");
    }
}
