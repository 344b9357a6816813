//! What a run is told: sides, rate, windows, bounds. Checked once, before anything starts.

use std::time::Duration;

use rabbit::Credentials;

use crate::latency::Samples;
use crate::schedule::Rate;

/// One broker to probe.
#[derive(Debug, Clone)]
pub struct SideConfig {
    /// Label in every summary, such as `blue`.
    pub label: String,
    /// `host` and port of the broker's nodes; the next is taken after each failure.
    pub addrs: Vec<(String, u16)>,
    /// A vhost of the probe's own; it exists.
    pub vhost: String,
    /// A user of the probe's own, with all permissions in that vhost.
    pub credentials: Credentials,
    /// Authorities (PEM) for TLS, beside the system's; `None` is plain AMQP.
    pub tls: Option<String>,
    /// Type of the probe's queues.
    pub queue_type: QueueType,
}

/// Type of the probe's queues: the workload's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueType {
    /// `quorum`.
    Quorum,
    /// `classic`.
    Classic,
}

impl QueueType {
    /// The value of `x-queue-type`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Quorum => "quorum",
            Self::Classic => "classic",
        }
    }
}

/// The highest percentile an objective asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Percentile {
    /// 59 messages bound it.
    P95,
    /// 299 messages bound it.
    P99,
    /// 2995 messages bound it.
    P999,
}

/// How long a window is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowLength {
    /// 5 s, or the whole seconds in which the rate yields the messages that bound this percentile.
    For(Percentile),
    /// This long, however few messages: quantiles of any number are given. For tests only, where evidence
    /// must come faster than honestly possible.
    TestOnly(Duration),
}

/// When measuring starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarmupConfig {
    /// Discard at least this long.
    pub min: Duration,
    /// Discard at most this long; then measure although it did not settle, and say so.
    pub cap: Duration,
    /// Percent by which the medians of five windows in a row may differ from the middle one.
    pub tolerance: u32,
}

/// A run.
#[derive(Debug, Clone)]
pub struct Config {
    /// One side, or two that get the same traffic at the same time.
    pub sides: Vec<SideConfig>,
    /// Messages per second, for each side.
    pub rate: Rate,
    /// Bytes of a message; at least 44.
    pub size: usize,
    /// The schedule's tick; `None`: 1 ms, or 5 ms below 1000 messages per second.
    pub quantum: Option<Duration>,
    /// Length of a window.
    pub window: WindowLength,
    /// What to discard at the start.
    pub warmup: WarmupConfig,
    /// Queues (`probe.0`, ...) over which the messages are spread; one consuming channel each.
    pub queues: u16,
    /// Queues unused this long are removed by the broker. The last resort behind [`crate::Handle::stop`].
    pub queue_expires: Duration,
    /// A message that has not come this long after its window is lost. Below a minute.
    pub loss_deadline: Duration,
    /// p99 of the send lag above which a window is invalid: [`sendlag_bound`].
    pub sendlag_bound: Duration,
    /// Messages under way per side, beyond which slots are dropped (and counted as infinite); `None`: 5 s
    /// of the rate or 16 MiB, whichever is less.
    pub max_in_flight: Option<usize>,
    /// How long the first connection may take, retries included.
    pub connect_deadline: Duration,
    /// Paired windows kept for [`crate::Handle::windows_since`].
    pub keep_windows: usize,
    /// Identifies this run's messages; `None`: by chance.
    pub run_id: Option<u64>,
}

/// The spec's bound on the send lag: 1 ms, or a tenth of the objective if that is more.
pub fn sendlag_bound(objective: Option<Duration>) -> Duration {
    Duration::from_millis(1).max(objective.unwrap_or_default() / 10)
}

/// Why a configuration cannot run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// No side, or more than a message can name.
    #[error("between 1 and 255 sides are needed, not {0}")]
    Sides(usize),
    /// A side without a node.
    #[error("side {0} has no address")]
    NoAddress(String),
    /// Summaries could not be told apart.
    #[error("two sides are called {0}")]
    SameLabel(String),
    /// A value out of its range.
    #[error("{field} is out of range: {why}")]
    Range {
        /// Field of [`Config`].
        field: &'static str,
        /// Its range.
        why: &'static str,
    },
}

impl Config {
    /// A run with the defaults of the gate: p99, 5 s windows, 1 kB, 3 queues.
    pub fn new(sides: Vec<SideConfig>, rate: Rate) -> Self {
        Self {
            sides,
            rate,
            size: 1_000,
            quantum: None,
            window: WindowLength::For(Percentile::P99),
            warmup: WarmupConfig::default(),
            queues: 3,
            queue_expires: Duration::from_mins(10),
            loss_deadline: Duration::from_secs(10),
            sendlag_bound: sendlag_bound(None),
            max_in_flight: None,
            connect_deadline: Duration::from_mins(1),
            keep_windows: 2_880,
            run_id: None,
        }
    }

    /// Whether it can run.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.sides.is_empty() || self.sides.len() > 255 {
            return Err(ConfigError::Sides(self.sides.len()));
        }
        for (at, side) in self.sides.iter().enumerate() {
            if side.addrs.is_empty() {
                return Err(ConfigError::NoAddress(side.label.clone()));
            }
            if self.sides.iter().skip(at + 1).any(|other| other.label == side.label) {
                return Err(ConfigError::SameLabel(side.label.clone()));
            }
        }
        let ranges = [
            ("size", self.size <= 16 << 20, "at most 16 MiB"),
            ("queues", (1..=64).contains(&self.queues), "1 to 64"),
            ("loss_deadline", self.loss_deadline < Duration::from_mins(1), "below a minute"),
            ("quantum", self.tick() <= Duration::from_secs(1) && !self.tick().is_zero(), "above 0, to 1 s"),
            ("window", self.window_length() >= self.tick(), "at least a tick"),
            ("rate", self.rate <= Rate::per_second(100_000), "at most 100000 per second"),
            ("keep_windows", self.keep_windows > 0, "at least 1"),
        ];
        match ranges.into_iter().find(|(_, fits, _)| !fits) {
            Some((field, _, why)) => Err(ConfigError::Range { field, why }),
            None => Ok(()),
        }
    }

    /// The schedule's tick.
    pub fn tick(&self) -> Duration {
        let slow = self.rate < Rate::per_second(1_000);
        self.quantum.unwrap_or(Duration::from_millis(if slow { 5 } else { 1 }))
    }

    /// The length of a window.
    pub fn window_length(&self) -> Duration {
        let needed = match self.window {
            WindowLength::TestOnly(length) => return length,
            WindowLength::For(Percentile::P95) => 59,
            WindowLength::For(Percentile::P99) => 299,
            WindowLength::For(Percentile::P999) => 2_995,
        };
        Duration::from_secs((needed * 1_000_u64).div_ceil(self.rate.in_kilosecond()).max(5))
    }

    pub(crate) fn samples(&self) -> Samples {
        match self.window {
            WindowLength::For(_) => Samples::Enough,
            WindowLength::TestOnly(_) => Samples::Any,
        }
    }

    /// At least a hundred, so that a slow probe is not stopped by one hiccup.
    pub(crate) fn in_flight_cap(&self) -> usize {
        let seconds = usize::try_from(self.rate.in_kilosecond() * 5 / 1_000).unwrap_or(usize::MAX);
        let memory = (16 << 20) / self.size.max(1);
        self.max_in_flight.unwrap_or(seconds.min(memory).max(100))
    }
}

impl Default for WarmupConfig {
    /// 30 s for slow start, allocators and segment files; given up at 120 s.
    fn default() -> Self {
        Self { min: Duration::from_secs(30), cap: Duration::from_mins(2), tolerance: 10 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(rate: Rate) -> Config {
        let side = |label: &str| SideConfig {
            label: label.to_owned(),
            addrs: vec![("localhost".to_owned(), 5672)],
            vhost: "probe".to_owned(),
            credentials: Credentials::new("probe", "hunter2"),
            tls: None,
            queue_type: QueueType::Quorum,
        };
        Config::new(vec![side("left"), side("right")], rate)
    }

    #[test]
    fn a_window_is_as_long_as_its_percentile_needs() {
        let length = |rate, percentile| {
            Config { window: WindowLength::For(percentile), ..config(rate) }.window_length().as_secs()
        };
        assert_eq!(length(Rate::per_second(500), Percentile::P99), 5);
        assert_eq!(length(Rate::per_second(50), Percentile::P99), 6);
        assert_eq!(length(Rate::per_second(500), Percentile::P999), 6);
        assert_eq!(length(Rate::per_kilosecond(500), Percentile::P95), 118);
    }

    #[test]
    fn the_defaults_can_run_and_hide_the_password() {
        let config = config(Rate::per_second(500));
        assert_eq!(config.check(), Ok(()));
        assert!(!format!("{config:?}").contains("hunter2"));
    }

    #[test]
    fn what_cannot_run_is_named() {
        let mut same = config(Rate::per_second(1));
        same.sides[1].label = "left".to_owned();
        assert_eq!(same.check(), Err(ConfigError::SameLabel("left".to_owned())));
        let none = Config::new(vec![], Rate::per_second(1));
        assert_eq!(none.check(), Err(ConfigError::Sides(0)));
        let long = Config { loss_deadline: Duration::from_mins(1), ..config(Rate::per_second(1)) };
        assert!(matches!(long.check(), Err(ConfigError::Range { field: "loss_deadline", .. })));
    }

    #[test]
    fn in_flight_is_bounded_by_seconds_and_by_memory() {
        let cap = |rate, size| Config { size, ..config(Rate::per_second(rate)) }.in_flight_cap();
        assert_eq!(cap(500, 1_000), 2_500);
        assert_eq!(cap(5_000, 3_000), 5_592);
        assert_eq!(cap(1, 1_000), 100);
    }

    #[test]
    fn the_send_lag_bound_follows_the_objective() {
        assert_eq!(sendlag_bound(None), Duration::from_millis(1));
        assert_eq!(sendlag_bound(Some(Duration::from_millis(5))), Duration::from_millis(1));
        assert_eq!(sendlag_bound(Some(Duration::from_millis(50))), Duration::from_millis(5));
    }
}
