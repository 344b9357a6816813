//! Objectives, and the yes-or-no tests that each window votes on.

use serde::{Deserialize, Serialize};

use super::window::{Metric, PairedWindow, Percentile, Quantile};

/// How much slower than blue green may be before it counts, beside the percentage, in microseconds:
/// 0.4 ms becoming 0.6 ms is no crisis.
const SLACK_MICROS: u64 = 1000;

/// Whether an objective decides, or is only shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Enforcement {
    /// Must pass before traffic moves.
    Enforced,
    /// Shown beside the others, decides nothing.
    Advisory,
}

/// An objective as the user wrote it. With both limits it gives two tests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// The user's name for it.
    pub name: String,
    /// Which percentile.
    pub percentile: Percentile,
    /// Which latency.
    pub metric: Metric,
    /// The promise: at most this many milliseconds.
    pub max_millis: Option<u32>,
    /// The comparison: at most this many percent of blue, `110` meaning a tenth slower.
    pub max_percent_of_blue: Option<u32>,
    /// Whether it decides.
    pub enforcement: Enforcement,
}

/// What is asked of each window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limit {
    /// Rule A: green's quantile is at most this many microseconds.
    Promise(u64),
    /// Rule B: green's quantile is at most this many percent of blue's, plus a millisecond.
    OfBlue(u32),
}

/// One yes-or-no question to every window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Test {
    /// The objective it comes from.
    pub name: String,
    /// Which percentile.
    pub percentile: Percentile,
    /// Which latency.
    pub metric: Metric,
    /// What is asked.
    pub limit: Limit,
    /// Whether it decides.
    pub enforcement: Enforcement,
}

/// A window's answer to a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vote {
    /// Within the limit.
    Good,
    /// Beyond the limit.
    Bad,
}

/// Turns objectives into tests, in the objectives' order, the promise first.
pub fn tests(rules: &[Rule]) -> Vec<Test> {
    rules.iter().flat_map(Rule::tests).collect()
}

impl Rule {
    fn tests(&self) -> impl Iterator<Item = Test> + '_ {
        let promise = self.max_millis.map(|millis| Limit::Promise(u64::from(millis).saturating_mul(1000)));
        let of_blue = self.max_percent_of_blue.map(Limit::OfBlue);
        promise.into_iter().chain(of_blue).map(|limit| Test {
            name: self.name.clone(),
            percentile: self.percentile,
            metric: self.metric,
            limit,
            enforcement: self.enforcement,
        })
    }
}

impl Test {
    /// Says in a few words what is asked: the key of its evidence, so that a changed limit starts anew.
    pub fn label(&self) -> String {
        let what = match self.limit {
            Limit::Promise(micros) => format!("at most {} ms", micros / 1000),
            Limit::OfBlue(percent) => format!("at most {percent} % of blue"),
        };
        format!("{}: {} {} {what}", self.name, self.percentile.label(), self.metric.label())
    }

    /// Says whether it decides.
    pub const fn is_enforced(&self) -> bool {
        match self.enforcement {
            Enforcement::Enforced => true,
            Enforcement::Advisory => false,
        }
    }

    /// Picks blue's and green's quantile out of a window.
    pub fn quantiles(&self, window: &PairedWindow) -> (Quantile, Quantile) {
        let of = |side: &Option<super::SideWindow>| {
            side.as_ref().map_or(Quantile::Unknown, |side| side.quantile(self.metric, self.percentile))
        };
        (of(&window.blue), of(&window.green))
    }

    /// Casts the window's vote, or none when what it needs is unknown.
    pub fn vote(&self, window: &PairedWindow) -> Option<Vote> {
        let (blue, green) = self.quantiles(window);
        match self.limit {
            Limit::Promise(micros) => promise(green, micros),
            Limit::OfBlue(percent) => of_blue(blue, green, percent),
        }
    }

    /// Says whether green is beyond ten times the promise: three such windows running are a hard stop.
    /// Above p99 it is p99 that must be so late, since a p99.9 can be one stray message.
    pub fn is_far_off(&self, window: &PairedWindow) -> bool {
        let Limit::Promise(micros) = self.limit else { return false };
        let percentile = self.percentile.min(Percentile::P99);
        let green = window.green.as_ref().map(|green| green.quantile(self.metric, percentile));
        match green {
            Some(Quantile::Micros(got)) => got > micros.saturating_mul(10),
            Some(Quantile::Infinite) => true,
            Some(Quantile::Unknown) | None => false,
        }
    }
}

fn promise(green: Quantile, micros: u64) -> Option<Vote> {
    match green {
        Quantile::Micros(got) if got <= micros => Some(Vote::Good),
        Quantile::Micros(_) | Quantile::Infinite => Some(Vote::Bad),
        Quantile::Unknown => None,
    }
}

fn of_blue(blue: Quantile, green: Quantile, percent: u32) -> Option<Vote> {
    match (blue, green) {
        (Quantile::Micros(blue), Quantile::Micros(green)) => {
            let most = u128::from(blue) * u128::from(percent) + u128::from(SLACK_MICROS) * 100;
            Some(if u128::from(green) * 100 <= most { Vote::Good } else { Vote::Bad })
        }
        (Quantile::Micros(_), Quantile::Infinite) => Some(Vote::Bad),
        (Quantile::Infinite, Quantile::Micros(_)) => Some(Vote::Good),
        // Two infinities say nothing about which is worse.
        (Quantile::Infinite, Quantile::Infinite) | (Quantile::Unknown, _) | (_, Quantile::Unknown) => None,
    }
}
