//! Evidence: what all windows so far add up to, folded one window at a time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::recent::Recent;
use super::rule::{Rule, Test, tests};
use super::settings::Settings;
use super::stop::hard_stop;
use super::tally::Tally;
use super::window::PairedWindow;

/// Everything the verdict needs, small enough for a ConfigMap. Pushing a window that was already pushed
/// changes nothing, so windows may be replayed after a crash.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Evidence {
    /// The newest window pushed.
    pub newest: Option<u64>,
    /// Windows that could vote.
    pub valid: u32,
    /// Windows that could not.
    pub invalid: u32,
    /// Recent validity; `b` marks an invalid window.
    pub recent: Recent,
    /// Why the last invalid window was so.
    pub last_invalid: Option<String>,
    /// The first hard stop met.
    pub stop: Option<String>,
    /// Per test, by its label.
    pub tallies: BTreeMap<String, Tally>,
}

impl Evidence {
    /// Adds a window. A test that is not among the rules any more loses its evidence, a new one starts at 0.
    #[must_use]
    pub fn push(self, window: &PairedWindow, rules: &[Rule], settings: &Settings) -> Self {
        if self.newest.is_some_and(|newest| window.index <= newest) {
            return self;
        }
        let gap = self.newest.map_or(0, |newest| window.index - newest - 1);
        let unusable = window.unusable();
        let keep = settings.recent_windows();
        let recent = self.recent.clone().skip(gap, keep).plus(Some(unusable.is_some()), keep);
        let newest = Some(window.index);
        if let Some(reason) = unusable {
            let tallies = self.tallies_after(rules, |_, tally| tally.skip(gap.saturating_add(1), settings));
            let invalid = self.invalid.saturating_add(1);
            return Self { newest, recent, invalid, last_invalid: Some(reason), tallies, ..self };
        }
        let ballot = |test: &Test, tally: Tally| voted(test, tally.skip(gap, settings), window, settings);
        let tallies = self.tallies_after(rules, ballot);
        let stop = self.stop.clone().or_else(|| hard_stop(window, rules, &tallies));
        Self { newest, recent, valid: self.valid.saturating_add(1), tallies, stop, ..self }
    }

    fn tallies_after(&self, rules: &[Rule], step: impl Fn(&Test, Tally) -> Tally) -> BTreeMap<String, Tally> {
        let after = |test: Test| {
            let label = test.label();
            let tally = self.tallies.get(&label).cloned().unwrap_or_default();
            (label, step(&test, tally))
        };
        tests(rules).into_iter().map(after).collect()
    }
}

fn voted(test: &Test, tally: Tally, window: &PairedWindow, settings: &Settings) -> Tally {
    let (blue, green) = test.quantiles(window);
    let tally = tally.seen(blue, green).running(test.is_far_off(window));
    tally.plus(test.vote(window), test.limit, window.index, settings)
}
