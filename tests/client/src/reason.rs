//! Why a connection ended, as a short word for counting: an AMQP code or a kind of failure. Pure.

use std::io;

use lapin::{Error, ErrorKind};
use tokio::sync::watch;

/// The word for an error of lapin's.
pub fn reason(error: &Error) -> String {
    match error.kind() {
        ErrorKind::ProtocolError(error) => error.get_id().to_string(),
        ErrorKind::IOError(error) => io_reason(error).to_owned(),
        ErrorKind::MissingHeartbeatError => "heartbeat".to_owned(),
        ErrorKind::InvalidChannelState(..) | ErrorKind::InvalidConnectionState(_) => VAGUE.to_owned(),
        other => format!("{other:?}").split(['(', ' ']).next().unwrap_or("other").to_owned(),
    }
}

/// lapin's answer to whoever comes after the error itself: something was closed already.
const VAGUE: &str = "state";

fn io_reason(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "refused",
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionAborted => {
            "reset"
        }
        io::ErrorKind::TimedOut => "timeout",
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => "unreachable",
        _ => "io",
    }
}

/// Tells all that share a connection that it is over, and keeps the most telling reason.
#[derive(Debug)]
pub struct Down(watch::Sender<Option<String>>);

impl Default for Down {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl Down {
    /// It is over. A code from the broker outweighs a broken socket, and that a guess.
    pub fn fail(&self, reason: String) {
        self.0.send_if_modified(|known| {
            let first = known.is_none();
            if known.as_deref().is_none_or(|known| weight(known) < weight(&reason)) {
                *known = Some(reason);
            }
            first
        });
    }

    /// Passes an error on.
    pub fn report(&self, outcome: Result<(), Error>) {
        if let Err(error) = outcome {
            self.fail(reason(&error));
        }
    }

    /// Waits until it is over.
    pub async fn wait(&self) {
        // An error would mean that the sender is gone; it is `self`.
        let _ = self.0.subscribe().wait_for(Option::is_some).await;
    }

    /// The reason, once it is over.
    pub fn reason(&self) -> Option<String> {
        self.0.borrow().clone()
    }
}

fn weight(reason: &str) -> u8 {
    match reason {
        VAGUE => 0,
        code if code.bytes().all(|byte| byte.is_ascii_digit()) => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_telling_reason_stays() {
        for order in [["state", "reset", "320"], ["320", "state", "reset"], ["reset", "320", "state"]] {
            let down = Down::default();
            order.into_iter().map(str::to_owned).for_each(|reason| down.fail(reason));
            assert_eq!(down.reason().as_deref(), Some("320"), "{order:?}");
        }
    }

    #[test]
    fn errors_become_words() {
        let reset = Error::from(io::Error::from(io::ErrorKind::ConnectionReset));
        assert_eq!(reason(&reset), "reset");
        assert_eq!(reason(&ErrorKind::ChannelsLimitReached.into()), "ChannelsLimitReached");
        assert_eq!(reason(&ErrorKind::MissingHeartbeatError.into()), "heartbeat");
    }
}
