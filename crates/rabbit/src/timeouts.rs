//! How long one call may take.

use std::time::Duration;

/// Time limits of one client; each call is bound by one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the TCP (and TLS) connection stands. 2 s: pods answer in milliseconds or not at all.
    pub connect: Duration,
    /// One small call. 5 s: above the broker's own internal 5 s tick nothing gets better by waiting.
    pub request: Duration,
    /// Exports, imports and full listings. 60 s: fifty thousand queues take tens of seconds.
    pub bulk: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(2),
            request: Duration::from_secs(5),
            bulk: Duration::from_mins(1),
        }
    }
}
