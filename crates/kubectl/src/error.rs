//! What can go wrong, each in one line.

use std::error::Error as StdError;

/// A failed command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kubeconfig could not be used.
    #[error("read the kubeconfig")]
    Configure {
        /// The cause.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// No client could be made of it.
    #[error("make a client for the Kubernetes API")]
    Connect {
        /// The cause.
        #[source]
        source: Box<kube::Error>,
    },
    /// The migration could not be read.
    #[error("read rabbitmqmigration {name} in namespace {namespace}")]
    Read {
        /// Its name.
        name: String,
        /// Its namespace.
        namespace: String,
        /// The cause.
        #[source]
        source: Box<kube::Error>,
    },
    /// There is no such migration.
    #[error("there is no rabbitmqmigration {name} in namespace {namespace}")]
    Missing {
        /// Its name.
        name: String,
        /// Its namespace.
        namespace: String,
    },
    /// It was deleted while we watched.
    #[error("rabbitmqmigration {name} in namespace {namespace} was deleted")]
    Deleted {
        /// Its name.
        name: String,
        /// Its namespace.
        namespace: String,
    },
    /// It could not be watched.
    #[error("watch rabbitmqmigration {name} in namespace {namespace}")]
    Watch {
        /// Its name.
        name: String,
        /// Its namespace.
        namespace: String,
        /// The cause.
        #[source]
        source: Box<kube::runtime::watcher::Error>,
    },
    /// The order could not be written.
    #[error("write the order to rabbitmqmigration {name} in namespace {namespace}")]
    Write {
        /// Its name.
        name: String,
        /// Its namespace.
        namespace: String,
        /// The cause.
        #[source]
        source: Box<kube::Error>,
    },
    /// The order makes no sense as the object stands.
    #[error("{0}")]
    Order(String),
    /// The status could not be printed.
    #[error("print the status")]
    Print {
        /// The cause.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The runtime could not be started.
    #[error("start the runtime")]
    Start {
        /// The cause.
        #[source]
        source: std::io::Error,
    },
}

/// An error with its causes in one line. What a cause already says is not said twice.
pub fn line(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let answer = answer(cause);
        let told = answer.map_or_else(|| cause.to_string(), |status| status.message.clone());
        if !text.contains(&told) {
            text.push_str(": ");
            text.push_str(&told);
        }
        source = if answer.is_some() { None } else { cause.source() };
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What the API server answered: the error's own text has it twice.
fn answer<'a>(cause: &'a (dyn StdError + 'static)) -> Option<&'a kube::core::Status> {
    let boxed = || cause.downcast_ref::<Box<kube::Error>>().map(Box::as_ref);
    match cause.downcast_ref::<kube::Error>().or_else(boxed) {
        Some(kube::Error::Api(status)) => Some(status),
        Some(_) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_api_server_says_is_said_once() {
        let status = kube::core::Status {
            message: "rabbitmqmigrations \"orders\" is forbidden".to_owned(),
            reason: "Forbidden".to_owned(),
            ..kube::core::Status::default()
        };
        let error = Error::Read {
            name: "orders".to_owned(),
            namespace: "messaging".to_owned(),
            source: Box::new(kube::Error::Api(Box::new(status))),
        };
        assert_eq!(
            line(&error),
            "read rabbitmqmigration orders in namespace messaging: rabbitmqmigrations \"orders\" is forbidden"
        );
    }
}
