//! The evidence of one test: counts of votes, whole and recent, single and merged in pairs.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::recent::Recent;
use super::rule::{Limit, Vote};
use super::score::{Count, fail_ln, pass_ln};
use super::settings::Settings;
use super::window::Quantile;

/// Quantiles kept for the point estimate: two minutes of windows.
const KEPT_QUANTILES: usize = 24;
/// Above this lag-1 autocorrelation single windows are not independent enough.
const MERGE_ABOVE: f64 = 0.3;
/// What stands for "lost" among kept quantiles.
const LOST: u64 = u64::MAX;

/// Everything known about one test. Integers only, so storing and reading it back loses nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Tally {
    /// All votes.
    pub votes: Count,
    /// All pairs of votes, good only when both are.
    pub pairs: Count,
    /// Votes since the fail score last restarted.
    pub against: Count,
    /// Pairs since the fail score of pairs last restarted, bad only when both are.
    pub against_pairs: Count,
    /// The first half of an open pair.
    open: Option<bool>,
    /// The vote of the window just before the next one.
    last: Option<bool>,
    /// Neighboring votes seen, and those where both were bad.
    neighbors: u32,
    both_bad: u32,
    /// Windows running in which green was beyond ten times the promise.
    pub far_off: u32,
    /// The window in which the fail score reached its threshold, if it did.
    pub failed_at: Option<u64>,
    /// The recent votes.
    pub recent: Recent,
    blue: VecDeque<u64>,
    green: VecDeque<u64>,
}

impl Tally {
    /// Lets windows pass that nobody saw.
    #[must_use]
    pub fn skip(self, windows: u64, settings: &Settings) -> Self {
        if windows == 0 {
            return self;
        }
        let recent = self.recent.skip(windows, settings.recent_windows());
        Self { recent, last: None, far_off: 0, ..self }
    }

    /// Adds a window's vote.
    #[must_use]
    pub fn plus(self, vote: Option<Vote>, limit: Limit, index: u64, settings: &Settings) -> Self {
        let bad = vote.map(|vote| match vote {
            Vote::Good => false,
            Vote::Bad => true,
        });
        let recent = self.recent.plus(bad, settings.recent_windows());
        let Some(bad) = bad else {
            return Self { recent, last: None, ..self };
        };
        let rho = settings.rho();
        let tally = Self {
            votes: self.votes.plus(bad),
            against: restarted(self.against.plus(bad), limit, rho),
            recent,
            last: Some(bad),
            neighbors: self.neighbors.saturating_add(u32::from(self.last.is_some())),
            both_bad: self.both_bad.saturating_add(u32::from(self.last == Some(true) && bad)),
            ..self
        };
        tally.paired(bad, limit, rho).latched(limit, index, settings)
    }

    /// Counts windows running in which green is far off.
    #[must_use]
    pub fn running(self, far_off: bool) -> Self {
        let far_off = if far_off { self.far_off.saturating_add(1) } else { 0 };
        Self { far_off, ..self }
    }

    /// Keeps a window's quantiles for the point estimate.
    #[must_use]
    pub fn seen(self, blue: Quantile, green: Quantile) -> Self {
        Self { blue: kept(self.blue, blue), green: kept(self.green, green), ..self }
    }

    /// Says whether neighboring windows are so alike that pairs must vote instead.
    pub fn is_merged(&self) -> bool {
        self.autocorrelation() > MERGE_ABOVE
    }

    /// The lag-1 autocorrelation of the votes; votes that are all alike have none.
    pub fn autocorrelation(&self) -> f64 {
        let (bad, total) = (f64::from(self.votes.bad), f64::from(self.votes.total()));
        if self.neighbors == 0 || self.votes.bad == 0 || self.votes.good == 0 {
            return 0.0;
        }
        let share = bad / total;
        let both = f64::from(self.both_bad) / f64::from(self.neighbors);
        (both - share * share) / (share * (1.0 - share))
    }

    /// The pass score over the whole run, as a logarithm, were so many more windows good.
    pub fn pass_ln(&self, limit: Limit, settings: &Settings, more: u32) -> f64 {
        let (votes, more) = if self.is_merged() { (self.pairs, more / 2) } else { (self.votes, more) };
        let votes = Count { good: votes.good.saturating_add(more), ..votes };
        pass_ln(limit, settings.rho(), votes)
    }

    /// The pass score over the recent windows, as a logarithm, were so many more windows good.
    pub fn recent_ln(&self, limit: Limit, settings: &Settings, more: usize) -> f64 {
        let recent = self.recent.after_good(more, settings.recent_windows());
        let votes = if self.is_merged() { recent.count_pairs() } else { recent.count() };
        pass_ln(limit, settings.rho(), votes)
    }

    /// The fail score as a logarithm.
    pub fn fail_ln(&self, limit: Limit, settings: &Settings) -> f64 {
        let votes = if self.is_merged() { self.against_pairs } else { self.against };
        fail_ln(limit, settings.rho(), votes)
    }

    /// The median of the last windows' quantiles on blue, in microseconds; `u64::MAX` means lost.
    pub fn blue_micros(&self) -> Option<u64> {
        median(&self.blue)
    }

    /// The median of the last windows' quantiles on green, in microseconds; `u64::MAX` means lost.
    pub fn green_micros(&self) -> Option<u64> {
        median(&self.green)
    }

    fn paired(self, bad: bool, limit: Limit, rho: f64) -> Self {
        let Some(first) = self.open else {
            return Self { open: Some(bad), ..self };
        };
        Self {
            pairs: self.pairs.plus(first || bad),
            against_pairs: restarted(self.against_pairs.plus(first && bad), limit, rho),
            open: None,
            ..self
        }
    }

    fn latched(self, limit: Limit, index: u64, settings: &Settings) -> Self {
        let reached = self.fail_ln(limit, settings) >= f64::from(settings.fail_threshold.max(1)).ln();
        let failed_at = self.failed_at.or_else(|| reached.then_some(index));
        Self { failed_at, ..self }
    }
}

/// A fail score restarts at 1 whenever it falls below: else forty good hours hide a green turned bad.
fn restarted(votes: Count, limit: Limit, rho: f64) -> Count {
    if fail_ln(limit, rho, votes) < 0.0 { Count::default() } else { votes }
}

fn kept(mut ring: VecDeque<u64>, quantile: Quantile) -> VecDeque<u64> {
    match quantile {
        Quantile::Micros(micros) => ring.push_back(micros),
        Quantile::Infinite => ring.push_back(LOST),
        Quantile::Unknown => return ring,
    }
    if ring.len() > KEPT_QUANTILES {
        ring.pop_front();
    }
    ring
}

fn median(ring: &VecDeque<u64>) -> Option<u64> {
    let mut sorted: Vec<u64> = ring.iter().copied().collect();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}
