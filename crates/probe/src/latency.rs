//! Latencies with an honest infinity: a histogram, the count of what never came, and quantiles over both.

use std::time::Duration;

use hdrhistogram::{CreationError, Histogram};
use serde::{Deserialize, Serialize};

/// Nanoseconds. Below lies noise of the clock; above, the loss deadline has long cut in.
const LOWEST: u64 = 1_000;
const HIGHEST: u64 = 60_000_000_000;

/// One latency: a time, or never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Latency {
    /// It took this many microseconds.
    Micros(u64),
    /// It was lost, refused or could not even be sent: slower than anything.
    Infinite,
}

impl Latency {
    /// Whether it is at most this long.
    pub fn is_within(self, limit: Duration) -> bool {
        match self {
            Self::Micros(micros) => u128::from(micros) <= limit.as_micros(),
            Self::Infinite => false,
        }
    }

    /// Microseconds; `None` if infinite.
    pub fn micros(self) -> Option<u64> {
        match self {
            Self::Micros(micros) => Some(micros),
            Self::Infinite => None,
        }
    }
}

/// Quantiles of one histogram. `None`: too few messages to bound this quantile at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Quantiles {
    /// Median.
    pub p50: Option<Latency>,
    /// 95th percentile.
    pub p95: Option<Latency>,
    /// 99th percentile.
    pub p99: Option<Latency>,
    /// 99.9th percentile.
    pub p999: Option<Latency>,
    /// The slowest.
    pub max: Option<Latency>,
}

/// Whether a quantile needs the messages that bound it at 95 % (`q^n <= 0.05`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Samples {
    /// 59 for p95, 299 for p99, 2995 for p99.9, else there is no quantile.
    Enough,
    /// Any number does. For tests with short windows.
    Any,
}

/// A quantile as a fraction and the messages it needs.
const P50: (u64, u64, u64) = (1, 2, 1);
const P95: (u64, u64, u64) = (95, 100, 59);
const P99: (u64, u64, u64) = (99, 100, 299);
const P999: (u64, u64, u64) = (999, 1_000, 2_995);

/// A histogram of nanoseconds beside the count of what never came. Merging is exact, in any order.
#[derive(Debug, Clone)]
pub struct Recorder {
    histogram: Histogram<u64>,
    infinite: u64,
    max: u64,
}

impl Recorder {
    /// An empty recorder. Clone it for more.
    pub fn new() -> Result<Self, CreationError> {
        let histogram = Histogram::new_with_bounds(LOWEST, HIGHEST, 3)?;
        Ok(Self { histogram, infinite: 0, max: 0 })
    }

    /// Records a latency in nanoseconds; above 60 s counts as 60 s.
    pub fn record(&mut self, nanos: u64) {
        self.histogram.saturating_record(nanos);
        self.max = self.max.max(nanos);
    }

    /// Records messages that never came.
    pub fn record_infinite(&mut self, messages: u64) {
        self.infinite += messages;
    }

    /// Adds another recorder's content.
    pub fn merge(&mut self, other: &Self) {
        // Same bounds by construction, so nothing can be out of range.
        let _ = self.histogram.add(&other.histogram);
        self.infinite += other.infinite;
        self.max = self.max.max(other.max);
    }

    /// Messages recorded, those that never came included.
    pub fn messages(&self) -> u64 {
        self.histogram.len() + self.infinite
    }

    /// How many never came.
    pub fn infinite(&self) -> u64 {
        self.infinite
    }

    /// The slowest that came, in nanoseconds.
    pub fn slowest(&self) -> u64 {
        self.max
    }

    /// All quantiles, in one pass.
    pub fn quantiles(&self, samples: Samples) -> Quantiles {
        let total = self.messages();
        let ranks = [P50, P95, P99, P999].map(|(part, of, least)| match samples {
            _ if total == 0 => None,
            Samples::Enough if total < least => None,
            Samples::Enough | Samples::Any => Some(rank(total, part, of)),
        });
        let [p50, p95, p99, p999] = self.at_ranks(ranks);
        let slowest = if self.infinite == 0 { Latency::Micros(self.max / 1_000) } else { Latency::Infinite };
        let max = (total > 0).then_some(slowest);
        Quantiles { p50, p95, p99, p999, max }
    }

    /// The latency at each rank (1 = fastest); ranks ascend.
    fn at_ranks<const N: usize>(&self, ranks: [Option<u64>; N]) -> [Option<Latency>; N] {
        let mut buckets = self.histogram.iter_recorded();
        let (mut seen, mut value) = (0, 0);
        ranks.map(|rank| {
            let rank = rank?;
            while seen < rank {
                let Some(bucket) = buckets.next() else { return Some(Latency::Infinite) };
                seen += bucket.count_at_value();
                value = bucket.value_iterated_to();
            }
            Some(Latency::Micros(value.min(self.max) / 1_000))
        })
    }
}

/// The smallest rank that has the fraction at or below it.
fn rank(total: u64, part: u64, of: u64) -> u64 {
    let rank = (u128::from(total) * u128::from(part)).div_ceil(u128::from(of));
    u64::try_from(rank).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn recorded(nanos: &[u64], infinite: u64) -> Recorder {
        let mut recorder = Recorder::new().unwrap();
        for nanos in nanos {
            recorder.record(*nanos);
        }
        recorder.record_infinite(infinite);
        recorder
    }

    fn millis(from: u64, to: u64) -> Vec<u64> {
        (from..=to).map(|ms| ms * 1_000_000).collect()
    }

    #[test]
    fn lost_messages_count_as_infinite() {
        let quantiles = recorded(&millis(1, 980), 20).quantiles(Samples::Enough);
        assert!(quantiles.p95.unwrap() < Latency::Infinite);
        assert_eq!(quantiles.p99, Some(Latency::Infinite));
        assert_eq!(quantiles.max, Some(Latency::Infinite));
    }

    #[test]
    fn exactly_one_percent_lost_leaves_p99_finite() {
        let quantiles = recorded(&millis(1, 990), 10).quantiles(Samples::Enough);
        assert_eq!(quantiles.p99, Some(Latency::Micros(990_000)));
        let quantiles = recorded(&millis(1, 989), 11).quantiles(Samples::Enough);
        assert_eq!(quantiles.p99, Some(Latency::Infinite));
    }

    #[test]
    fn too_few_messages_bound_no_quantile() {
        let quantiles = recorded(&millis(1, 298), 0).quantiles(Samples::Enough);
        assert!(quantiles.p95.is_some());
        assert_eq!(quantiles.p99, None);
        assert_eq!(recorded(&millis(1, 58), 0).quantiles(Samples::Enough).p95, None);
        assert!(recorded(&millis(1, 299), 0).quantiles(Samples::Enough).p99.is_some());
        assert!(recorded(&millis(1, 10), 0).quantiles(Samples::Any).p999.is_some());
    }

    #[test]
    fn nothing_recorded_has_no_quantile() {
        assert_eq!(recorded(&[], 0).quantiles(Samples::Any), Quantiles::default());
    }

    #[test]
    fn the_limit_itself_is_within() {
        assert!(Latency::Micros(50_000).is_within(Duration::from_millis(50)));
        assert!(!Latency::Micros(50_001).is_within(Duration::from_millis(50)));
        assert!(!Latency::Infinite.is_within(Duration::MAX));
    }

    #[test]
    fn a_latency_reads_well_as_json() {
        assert_eq!(serde_json::to_string(&Latency::Micros(5)).unwrap(), r#"{"micros":5}"#);
        assert_eq!(serde_json::to_string(&Latency::Infinite).unwrap(), r#""infinite""#);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn merging_in_any_order_gives_the_same(
            parts in prop::collection::vec(
                (prop::collection::vec(0u64..100_000_000_000, 0..40), 0u64..5), 1..6,
            ).prop_flat_map(|parts| (Just(parts.clone()), Just(parts).prop_shuffle())),
        ) {
            let merged = |parts: &[(Vec<u64>, u64)]| {
                let mut all = Recorder::new().unwrap();
                for (nanos, infinite) in parts {
                    all.merge(&recorded(nanos, *infinite));
                }
                all
            };
            let (one, other) = (merged(&parts.0), merged(&parts.1));
            prop_assert_eq!(one.messages(), other.messages());
            prop_assert_eq!(one.quantiles(Samples::Any), other.quantiles(Samples::Any));
            prop_assert_eq!(one.histogram, other.histogram);
        }

        #[test]
        fn a_quantile_is_the_sorted_samples_within_a_bucket(
            mut nanos in prop::collection::vec(1_000u64..10_000_000_000, 1..400),
        ) {
            let quantiles = recorded(&nanos, 0).quantiles(Samples::Any);
            nanos.sort_unstable();
            let exact = nanos[(nanos.len() * 99).div_ceil(100) - 1];
            let got = quantiles.p99.unwrap().micros().unwrap() * 1_000;
            prop_assert!(got + 1_000 >= exact && got <= exact + exact / 500 + 1_000);
        }
    }
}
