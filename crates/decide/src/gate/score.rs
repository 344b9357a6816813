//! Evidence as betting scores, always as logarithms: as a product rule B leaves f64's range in two hours.
//!
//! A score depends only on how many votes were good and how many bad, never on their order, so counts are
//! all that is kept: nothing drifts, and a stored score is exact.

use super::rule::Limit;

/// Rule B's bets.
const LAMBDAS: [f64; 4] = [0.2, 0.4, 0.6, 0.8];
/// Rule A's bets for passing, as shares of rho: 0, .02 and .05 at the default.
const PASS_SHARES: [f64; 3] = [0.0, 0.2, 0.5];
/// Rule A's bets for failing mirror them: twice rho, five times rho, always.
const FAIL_SHARES: [f64; 3] = [2.0, 5.0, f64::INFINITY];

/// Votes counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Count {
    /// Within the limit.
    pub good: u32,
    /// Beyond it.
    pub bad: u32,
}

impl Count {
    /// Adds a vote.
    #[must_use]
    pub const fn plus(self, bad: bool) -> Self {
        if bad {
            Self { good: self.good, bad: self.bad.saturating_add(1) }
        } else {
            Self { good: self.good.saturating_add(1), bad: self.bad }
        }
    }

    /// Says how many votes there are.
    pub const fn total(self) -> u32 {
        self.good.saturating_add(self.bad)
    }
}

/// The logarithm of the score against "green is not good enough". Nothing seen is 0, that is a score of 1.
pub fn pass_ln(limit: Limit, rho: f64, votes: Count) -> f64 {
    match limit {
        Limit::Promise(_) => mixture(&PASS_SHARES.map(|share| promise_bet(rho * share, rho)), votes),
        Limit::OfBlue(_) => mixture(&LAMBDAS.map(|l| (l.ln_1p(), (-l).ln_1p())), votes),
    }
}

/// The logarithm of the score against "green is good enough".
pub fn fail_ln(limit: Limit, rho: f64, votes: Count) -> f64 {
    match limit {
        Limit::Promise(_) => {
            mixture(&FAIL_SHARES.map(|share| promise_bet((rho * share).min(1.0), rho)), votes)
        }
        Limit::OfBlue(_) => mixture(&LAMBDAS.map(|l| ((-l).ln_1p(), l.ln_1p())), votes),
    }
}

/// What a bet on a share `p1` of bad windows gains per good and per bad vote, as logarithms.
fn promise_bet(p1: f64, rho: f64) -> (f64, f64) {
    (((1.0 - p1) / (1.0 - rho)).ln(), (p1 / rho).ln())
}

/// The mean of the bets' products, as a log-sum-exp.
fn mixture<const N: usize>(bets: &[(f64, f64); N], votes: Count) -> f64 {
    let logs = bets.map(|(good, bad)| times(votes.good, good) + times(votes.bad, bad));
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logs.iter().map(|log| (log - top).exp()).sum();
    let bets: f64 = logs.iter().map(|_| 1.0).sum();
    top + sum.ln() - bets.ln()
}

/// No vote gains nothing, even where one would lose everything (0 times infinity is not a number).
fn times(votes: u32, ln: f64) -> f64 {
    if votes == 0 { 0.0 } else { f64::from(votes) * ln }
}

/// Writes a score for people: `12.4`, or a bound where the number says nothing any more.
pub fn human(ln: f64) -> String {
    let score = ln.exp();
    if score >= 10_000.0 {
        "over 10000".to_owned()
    } else if score < 0.05 {
        "under 0.1".to_owned()
    } else {
        format!("{score:.1}")
    }
}
