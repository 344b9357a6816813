//! The verdict over the evidence, and the sentence that explains it.

use serde::{Deserialize, Serialize};

use super::evidence::Evidence;
use super::rule::{Rule, Test, tests};
use super::score::human;
use super::sentence;
use super::settings::Settings;
use super::tally::Tally;

/// Good windows beyond which an estimate of what is missing helps nobody: a week of them.
const FURTHEST: u32 = 120_960;

/// What the gate says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Every enforced test passes.
    Pass,
    /// Green is not good enough.
    Fail,
    /// Not known; stay on blue, keep probing.
    NoVerdict,
}

/// How one test stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RuleState {
    /// The test in words.
    pub name: String,
    /// Whether it decides.
    pub enforced: bool,
    /// Windows within the limit.
    pub votes_good: u32,
    /// Windows beyond it.
    pub votes_bad: u32,
    /// The pass score over the whole run, as a logarithm.
    pub pass_ln: f64,
    /// The same for people, `12.4 of 20`.
    pub pass_score: String,
    /// The pass score over the most recent hour, as a logarithm.
    pub recent_ln: f64,
    /// The same for people.
    pub recent_score: String,
    /// The fail score, as a logarithm.
    pub fail_ln: f64,
    /// The same for people.
    pub fail_score: String,
    /// The window in which the fail score reached its threshold, if it did.
    pub failed_at: Option<u64>,
    /// The usual quantile on blue in the last two minutes, in microseconds; `u64::MAX` means lost.
    pub blue_micros: Option<u64>,
    /// The usual quantile on green in the last two minutes, in microseconds; `u64::MAX` means lost.
    pub green_micros: Option<u64>,
    /// Whether neighboring windows are so alike that they vote in pairs.
    pub merged: bool,
    /// About how many more good windows it needs; none when that cannot be said.
    pub still_needed: Option<u32>,
}

impl RuleState {
    /// Says whether the evidence suffices, over the whole run and over the recent hour.
    pub fn passes(&self) -> bool {
        self.still_needed == Some(0)
    }
}

/// What the gate says, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Outcome,
    /// Why, in one sentence: wanted, got, missing.
    pub reason: String,
    /// Every test, in the objectives' order.
    pub rules: Vec<RuleState>,
    /// Windows that could vote.
    pub windows_valid: u32,
    /// Windows that could not.
    pub windows_invalid: u32,
}

/// Judges. `elapsed_seconds` is since measuring began.
pub fn judge(evidence: &Evidence, rules: &[Rule], settings: &Settings, elapsed_seconds: u64) -> Judgement {
    let states: Vec<RuleState> = tests(rules).iter().map(|test| state(test, evidence, settings)).collect();
    let (verdict, reason) = decide(evidence, &states, settings, elapsed_seconds);
    Judgement {
        verdict,
        reason,
        rules: states,
        windows_valid: evidence.valid,
        windows_invalid: evidence.invalid,
    }
}

fn decide(
    evidence: &Evidence,
    states: &[RuleState],
    settings: &Settings,
    elapsed_seconds: u64,
) -> (Outcome, String) {
    if let Some(reason) = too_many_invalid(evidence, settings) {
        return (Outcome::NoVerdict, reason);
    }
    if let Some(stop) = &evidence.stop {
        return (Outcome::Fail, format!("Fail: {stop}."));
    }
    let enforced: Vec<&RuleState> = states.iter().filter(|state| state.enforced).collect();
    if let Some(failed) = enforced.iter().find(|state| state.failed_at.is_some()) {
        return (Outcome::Fail, sentence::failed(failed, settings));
    }
    match sentence::missing(evidence, &enforced, settings, elapsed_seconds) {
        Some(reason) => (Outcome::NoVerdict, reason),
        None => (Outcome::Pass, sentence::passed(evidence, &enforced, settings)),
    }
}

/// Too much noise, over the whole run or lately, allows neither a pass nor a fail.
fn too_many_invalid(evidence: &Evidence, settings: &Settings) -> Option<String> {
    let recent = evidence.recent.count();
    let counts = [("", evidence.invalid, evidence.valid), ("recent ", recent.bad, recent.good)];
    let (what, invalid, valid) = counts.into_iter().find(|(_, invalid, valid)| {
        let total = u64::from(*invalid) + u64::from(*valid);
        u64::from(*invalid) * 100 > total * u64::from(settings.invalid_max_percent)
    })?;
    let last = evidence.last_invalid.as_deref().unwrap_or("no reason given");
    let stop = evidence.stop.as_ref().map(|stop| format!("; also seen: {stop}")).unwrap_or_default();
    Some(format!(
        "No verdict: {invalid} of {} {what}windows are invalid, at most {} % may be; the last one: {last}{stop}.",
        u64::from(invalid) + u64::from(valid),
        settings.invalid_max_percent
    ))
}

fn state(test: &Test, evidence: &Evidence, settings: &Settings) -> RuleState {
    let name = test.label();
    let tally = evidence.tallies.get(&name).cloned().unwrap_or_default();
    let pass_ln = tally.pass_ln(test.limit, settings, 0);
    let recent_ln = tally.recent_ln(test.limit, settings, 0);
    let fail_ln = tally.fail_ln(test.limit, settings);
    RuleState {
        name,
        enforced: test.is_enforced(),
        votes_good: tally.votes.good,
        votes_bad: tally.votes.bad,
        pass_ln,
        pass_score: format!("{} of {}", human(pass_ln), settings.pass_score),
        recent_ln,
        recent_score: format!("{} of {}", human(recent_ln), settings.pass_score),
        fail_ln,
        fail_score: format!("{} of {}", human(fail_ln), settings.fail_threshold),
        failed_at: tally.failed_at,
        blue_micros: tally.blue_micros(),
        green_micros: tally.green_micros(),
        merged: tally.is_merged(),
        still_needed: still_needed(test, &tally, settings),
    }
}

/// The fewest further good windows after which both scores suffice; 0 only when they do now.
fn still_needed(test: &Test, tally: &Tally, settings: &Settings) -> Option<u32> {
    let enough = f64::from(settings.pass_score.max(1)).ln();
    let suffices = |more: u32| {
        let recent = usize::try_from(more).unwrap_or(usize::MAX).min(settings.recent_windows());
        tally.votes.total().saturating_add(more) > 0
            && tally.pass_ln(test.limit, settings, more) >= enough
            && tally.recent_ln(test.limit, settings, recent) >= enough
    };
    if !suffices(FURTHEST) {
        return None;
    }
    let (mut low, mut high) = (0, FURTHEST);
    while low < high {
        let middle = low + (high - low) / 2;
        if suffices(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(low)
}
