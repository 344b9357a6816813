//! What one window of probing saw: both sides, over the same seconds, from the same schedule.

use serde::{Deserialize, Serialize};

/// A percentile of the latency distribution that an objective may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Percentile {
    /// The median.
    P50,
    /// 95 %.
    P95,
    /// 99 %.
    P99,
    /// 99.9 %.
    P999,
}

impl Percentile {
    /// Says how many messages a window needs before this percentile can have a one-sided 95 % bound:
    /// the smallest `n` with `q^n <= 0.05`.
    pub const fn messages_needed(self) -> u64 {
        match self {
            Self::P50 => 5,
            Self::P95 => 59,
            Self::P99 => 299,
            Self::P999 => 2995,
        }
    }

    /// Names it as people and metrics do.
    pub const fn label(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
        }
    }
}

/// Which latency is meant. Both count from the intended send time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Metric {
    /// From publish to delivery.
    EndToEnd,
    /// From publish to the broker's confirm.
    Confirm,
}

impl Metric {
    /// Names it as people and metrics do.
    pub const fn label(self) -> &'static str {
        match self {
            Self::EndToEnd => "end-to-end",
            Self::Confirm => "confirm",
        }
    }
}

/// One quantile of one window. A lost probe counts as infinitely late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Quantile {
    /// The latency in microseconds.
    Micros(u64),
    /// So many messages were lost that the quantile is one of them.
    Infinite,
    /// Nobody knows. Never a good vote, never a bad one.
    #[default]
    Unknown,
}

/// The quantiles of one metric in one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Quantiles {
    /// The median.
    pub p50: Quantile,
    /// 95 %.
    pub p95: Quantile,
    /// 99 %.
    pub p99: Quantile,
    /// 99.9 %.
    pub p999: Quantile,
}

impl Quantiles {
    /// Picks one of them.
    pub const fn at(&self, percentile: Percentile) -> Quantile {
        match percentile {
            Percentile::P50 => self.p50,
            Percentile::P95 => self.p95,
            Percentile::P99 => self.p99,
            Percentile::P999 => self.p999,
        }
    }
}

/// What one side did in one window.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SideWindow {
    /// Messages whose intended send time lies in the window.
    pub planned: u64,
    /// Confirmed, and never delivered.
    pub lost: u64,
    /// Delivered twice without the redelivered flag.
    pub duplicated: u64,
    /// Delivered out of their publisher's order.
    pub reordered: u64,
    /// Refused by the broker.
    pub nacked: u64,
    /// Returned as unroutable.
    pub returned: u64,
    /// Probe connections that the broker closed.
    pub closed: u64,
    /// Times the broker said `connection.blocked` or raised an alarm.
    pub blocked: u64,
    /// Latencies from publish to delivery.
    pub end_to_end: Quantiles,
    /// Latencies from publish to confirm.
    pub confirm: Quantiles,
}

impl SideWindow {
    /// Picks one quantile, `Unknown` when the window holds too few messages to speak of it.
    pub fn quantile(&self, metric: Metric, percentile: Percentile) -> Quantile {
        if self.planned < percentile.messages_needed() {
            return Quantile::Unknown;
        }
        match metric {
            Metric::EndToEnd => self.end_to_end.at(percentile),
            Metric::Confirm => self.confirm.at(percentile),
        }
    }
}

/// The same seconds on both sides.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PairedWindow {
    /// Its place since measuring began: window `index` covers seconds `index * window_seconds` and on.
    pub index: u64,
    /// Why the window may not be used, if it may not (the prober stalled, a side was being restarted).
    pub invalid: Option<String>,
    /// What blue did, if it was seen.
    pub blue: Option<SideWindow>,
    /// What green did, if it was seen.
    pub green: Option<SideWindow>,
}

impl PairedWindow {
    /// Says why no vote may be cast, if so. Sides probed at different rates cannot be compared.
    pub fn unusable(&self) -> Option<String> {
        if let Some(reason) = &self.invalid {
            return Some(reason.clone());
        }
        let Some(green) = &self.green else {
            return Some("green was not seen".to_owned());
        };
        if green.planned == 0 {
            return Some("no message was planned for green".to_owned());
        }
        // Green alone can still keep or break a promise: usable.
        let blue = self.blue.as_ref()?;
        let apart = blue.planned.abs_diff(green.planned);
        // Both sides follow one schedule; a hundredth allows for messages on the window's edge.
        if apart.saturating_mul(100) > blue.planned.max(green.planned) {
            return Some(format!(
                "the sides were probed at different rates ({} and {} messages)",
                blue.planned, green.planned
            ));
        }
        None
    }
}
