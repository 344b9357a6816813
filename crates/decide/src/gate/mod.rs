//! The latency gate: votes per window, evidence scores, verdict.
//!
//! Every window blue and green get the same test traffic and green casts one vote per test. Votes move an
//! evidence score: 1 = know nothing, 20 = fewer than 1 in 20 bad greens would ever look this good, however
//! often one looks. Unknown casts no vote, and no samples never pass.

mod evidence;
mod recent;
mod rule;
mod score;
mod sentence;
mod settings;
mod stop;
mod tally;
mod verdict;
mod window;

#[cfg(test)]
mod laws;

pub use evidence::Evidence;
pub use recent::Recent;
pub use rule::{Enforcement, Limit, Rule, Test, Vote, tests};
pub use score::Count;
pub use settings::Settings;
pub use tally::Tally;
pub use verdict::{Judgement, Outcome, RuleState, judge};
pub use window::{Metric, PairedWindow, Percentile, Quantile, Quantiles, SideWindow};
