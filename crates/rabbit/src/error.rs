//! One error enum: the variant is what was attempted, [`Cause`] is how it failed, [`Kind`] decides the retry.

use std::time::Duration;

/// Result of every call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What was attempted and on which object. The cause is the source, not part of the text; no secret is in
/// either. [`Error::report`] prints both on one line.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A client could not be built (bad base URL or CA).
    #[error("build client for {url}")]
    BuildClient {
        /// Base URL, without user information.
        url: String,
        /// How it failed.
        #[source]
        cause: Cause,
    },
    /// A read of the management API.
    #[error("read {object}")]
    Read {
        /// What was read, for example `queues` or `limits of vhost orders`.
        object: String,
        /// How it failed.
        #[source]
        cause: Cause,
    },
    /// A change through the management API.
    #[error("change {object}")]
    Change {
        /// What was changed.
        object: String,
        /// How it failed.
        #[source]
        cause: Cause,
    },
    /// A removal through the management API.
    #[error("remove {object}")]
    Remove {
        /// What was removed.
        object: String,
        /// How it failed.
        #[source]
        cause: Cause,
    },
    /// Closing client connections.
    #[error("close {object}")]
    Close {
        /// Connection or user.
        object: String,
        /// How it failed.
        #[source]
        cause: Cause,
    },
    /// An import of definitions; what came before the refused object stays on the broker.
    #[error("import {object}")]
    Import {
        /// Phase and range of objects.
        object: String,
        /// How it failed.
        #[source]
        cause: Cause,
    },
    /// A bare AMQP handshake.
    #[error("handshake with {address}")]
    Handshake {
        /// `host:port`.
        address: String,
        /// How it failed.
        #[source]
        cause: Cause,
    },
    /// An AMQP login.
    #[error("connect to {address} vhost {vhost} as {user}")]
    Connect {
        /// `host:port`.
        address: String,
        /// Virtual host.
        vhost: String,
        /// User who logged in.
        user: String,
        /// How it failed.
        #[source]
        cause: Cause,
    },
    /// An operation on one queue over AMQP.
    #[error("{attempt} queue {queue}")]
    Queue {
        /// `measure`, `get from`, `declare`, `publish to`.
        attempt: &'static str,
        /// The queue.
        queue: String,
        /// How it failed.
        #[source]
        cause: Cause,
    },
    /// Carrying messages stopped early.
    #[error("carry queue {queue} (moved {moved}, in doubt {in_doubt})")]
    Carry {
        /// The queue.
        queue: String,
        /// Confirmed by the target, acked on the source, and the source has answered since.
        moved: u64,
        /// Published but not confirmed, or confirmed but maybe not acked: they can exist on both sides.
        in_doubt: u64,
        /// How it failed.
        #[source]
        cause: Cause,
    },
    /// Sealing or unsealing a definitions document.
    #[error("{attempt} definitions")]
    Seal {
        /// `seal` or `unseal`.
        attempt: &'static str,
        /// How it failed.
        #[source]
        cause: Cause,
    },
    /// A scrape of the Prometheus endpoint.
    #[error("scrape {url}")]
    Scrape {
        /// Endpoint.
        url: String,
        /// How it failed.
        #[source]
        cause: Cause,
    },
}

/// How an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// No connection, or it broke.
    #[error("not reachable: {0}")]
    Unreachable(String),
    /// No answer in time; a change may or may not have been made.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// An HTTP answer that is not success.
    #[error("status {status}: {reason}")]
    Status {
        /// HTTP status code.
        status: u16,
        /// The broker's reason, shortened, secrets masked.
        reason: String,
    },
    /// An AMQP close: 320 forced, 403 refused, 404 not found, 406 precondition failed, 530 not allowed.
    #[error("amqp {code}: {text}")]
    Amqp {
        /// Reply code.
        code: u16,
        /// Reply text.
        text: String,
    },
    /// A publish came back because no queue took it.
    #[error("returned by the broker: {code} {text}")]
    Returned {
        /// Reply code, 312 for no route.
        code: u16,
        /// Reply text.
        text: String,
    },
    /// A publish was refused by the queue (negative confirm).
    #[error("refused by the queue")]
    Nacked,
    /// The answer is not what this API promises.
    #[error("malformed: {0}")]
    Malformed(String),
    /// A name that cannot be put into a path or a frame: empty, `.`, `..`, or over 255 bytes for AMQP.
    #[error("name not usable: {0:?}")]
    Name(String),
}

/// What kind of failure it is: decides about the retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Nobody answered, or the broker is not able to now: try again, with a growing pause.
    Unreachable,
    /// Wrong credentials or missing permission or tag: wait for a change of the Secret or the user.
    Unauthorized,
    /// The object exists in another form ("inequivalent arg", AMQP 405 and 406).
    Conflict,
    /// The broker understood and said no: a limit, a fence, an invalid object.
    Refused,
    /// The object is not there.
    NotFound,
    /// The answer or our request makes no sense: a bug or a version we do not know.
    Malformed,
}

impl Error {
    /// The cause.
    pub fn cause(&self) -> &Cause {
        match self {
            Self::BuildClient { cause, .. }
            | Self::Read { cause, .. }
            | Self::Change { cause, .. }
            | Self::Remove { cause, .. }
            | Self::Close { cause, .. }
            | Self::Import { cause, .. }
            | Self::Handshake { cause, .. }
            | Self::Connect { cause, .. }
            | Self::Queue { cause, .. }
            | Self::Carry { cause, .. }
            | Self::Seal { cause, .. }
            | Self::Scrape { cause, .. } => cause,
        }
    }

    /// The kind of failure.
    pub fn kind(&self) -> Kind {
        self.cause().kind()
    }

    /// Attempt and cause on one line, fit for a condition or a log.
    pub fn report(&self) -> String {
        format!("{self}: {}", self.cause())
    }
}

impl Cause {
    /// The kind of failure.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Unreachable(_) | Self::Timeout(_) => Kind::Unreachable,
            // The broker has no 409 for an object that exists in another form.
            Self::Status { status: 400, reason } if reason.starts_with("inequivalent arg") => Kind::Conflict,
            Self::Status { status, .. } => kind_of_status(*status),
            Self::Amqp { code, .. } => kind_of_reply(*code),
            Self::Returned { .. } => Kind::NotFound,
            Self::Nacked | Self::Name(_) => Kind::Refused,
            Self::Malformed(_) => Kind::Malformed,
        }
    }
}

/// RabbitMQ answers 401 for bad credentials and for a missing tag or vhost permission alike.
fn kind_of_status(status: u16) -> Kind {
    match status {
        401 | 403 => Kind::Unauthorized,
        404 => Kind::NotFound,
        409 => Kind::Conflict,
        408 | 429 | 500..=599 => Kind::Unreachable,
        400..=499 => Kind::Refused,
        _ => Kind::Malformed,
    }
}

/// 320 is a close by an administrator, 541 an internal error, 504-505 a confused peer.
fn kind_of_reply(code: u16) -> Kind {
    match code {
        320 | 541 => Kind::Unreachable,
        403 => Kind::Unauthorized,
        404 => Kind::NotFound,
        405 | 406 => Kind::Conflict,
        506 | 530 | 402 | 311 | 312 | 540 => Kind::Refused,
        _ => Kind::Malformed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_decide_the_retry() {
        let status = |status| Cause::Status { status, reason: String::new() }.kind();
        assert_eq!(status(401), Kind::Unauthorized);
        assert_eq!(status(404), Kind::NotFound);
        assert_eq!(status(409), Kind::Conflict);
        assert_eq!(status(400), Kind::Refused);
        let reason = "inequivalent arg 'type' for exchange 'x'".to_owned();
        assert_eq!(Cause::Status { status: 400, reason }.kind(), Kind::Conflict);
        assert_eq!(status(503), Kind::Unreachable);
        assert_eq!(status(302), Kind::Malformed);
        let reply = |code| Cause::Amqp { code, text: String::new() }.kind();
        assert_eq!(reply(530), Kind::Refused);
        assert_eq!(reply(403), Kind::Unauthorized);
        assert_eq!(reply(406), Kind::Conflict);
        assert_eq!(reply(320), Kind::Unreachable);
        assert_eq!(Cause::Timeout(Duration::from_secs(1)).kind(), Kind::Unreachable);
        assert_eq!(Cause::Nacked.kind(), Kind::Refused);
    }

    #[test]
    fn the_report_names_attempt_and_cause_once() {
        let error = Error::Read { object: "queues".into(), cause: Cause::Unreachable("reset".into()) };
        assert_eq!(error.to_string(), "read queues");
        assert_eq!(error.report(), "read queues: not reachable: reset");
    }
}
