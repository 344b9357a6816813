//! The sentences of the gate: what, wanted, got, what is missing and about how long it takes.

use super::evidence::Evidence;
use super::settings::Settings;
use super::verdict::RuleState;

/// Explains a fail score.
pub(super) fn failed(state: &RuleState, settings: &Settings) -> String {
    format!(
        "Fail: {} does not hold, {} good and {} bad windows took its fail score to {} in window {}{}.",
        state.name,
        state.votes_good,
        state.votes_bad,
        settings.fail_threshold,
        state.failed_at.unwrap_or_default(),
        estimate(state),
    )
}

/// Explains a pass.
pub(super) fn passed(evidence: &Evidence, enforced: &[&RuleState], settings: &Settings) -> String {
    let weakest = enforced.iter().min_by(|one, other| lower(one).total_cmp(&lower(other)));
    let weakest = weakest.map(|state| format!("; the weakest, {}, has {}", state.name, state.recent_score));
    format!(
        "Pass: all {} enforced tests have a score of {} or more after {} valid windows, over the run and over \
         the last {} s{}.",
        enforced.len(),
        settings.pass_score,
        evidence.valid,
        settings.recent_seconds,
        weakest.unwrap_or_default()
    )
}

/// Says what is still missing for a pass, if anything.
pub(super) fn missing(
    evidence: &Evidence,
    enforced: &[&RuleState],
    settings: &Settings,
    elapsed_seconds: u64,
) -> Option<String> {
    if enforced.is_empty() {
        return Some("No verdict: no objective is enforced, want at least one with a limit.".to_owned());
    }
    let short = settings.minimum_windows.max(1).saturating_sub(evidence.valid);
    let wait = settings.minimum_duration_seconds.saturating_sub(elapsed_seconds);
    let open: Vec<&&RuleState> = enforced.iter().filter(|state| !state.passes()).collect();
    // What takes longest is what people want to hear; a test that cannot tell comes first.
    let slowest = open.iter().max_by_key(|state| state.still_needed.unwrap_or(u32::MAX));
    match slowest {
        Some(state) if state.still_needed.is_none_or(|needed| needed > short) => {
            Some(test_missing(state, open.len(), settings))
        }
        Some(_) | None if short > 0 => Some(format!(
            "No verdict: {} valid windows, want {}, about {} s more.",
            evidence.valid,
            settings.minimum_windows,
            settings.seconds(short).max(wait)
        )),
        Some(state) => Some(test_missing(state, open.len(), settings)),
        None if wait > 0 => Some(format!(
            "No verdict: measured for {elapsed_seconds} s, want {} s, {wait} s more.",
            settings.minimum_duration_seconds
        )),
        None => None,
    }
}

fn test_missing(state: &RuleState, open: usize, settings: &Settings) -> String {
    let total = state.votes_good.saturating_add(state.votes_bad);
    let votes = if total == 0 {
        "no window could vote on it (no samples, or too few per window)".to_owned()
    } else {
        format!("{} good, {} bad of {total} windows", state.votes_good, state.votes_bad)
    };
    let merged = if state.merged { ", merged in pairs since neighbors are alike" } else { "" };
    let needs = match state.still_needed {
        Some(windows) => {
            format!("needs about {windows} more good windows ({} s)", settings.seconds(windows))
        }
        None => "needs more good windows than a week has".to_owned(),
    };
    let score = if state.recent_ln < state.pass_ln {
        format!("{} over the recent windows", state.recent_score)
    } else {
        state.pass_score.clone()
    };
    let others = if open > 1 { format!("; {} other tests are open", open - 1) } else { String::new() };
    format!(
        "No verdict: {} has {score} ({votes}{merged}{}) and {needs}{others}.",
        state.name,
        estimate(state)
    )
}

fn estimate(state: &RuleState) -> String {
    let say = |micros: Option<u64>| match micros {
        Some(u64::MAX) => "lost".to_owned(),
        Some(micros) => format!("{}.{} ms", micros / 1000, micros % 1000 / 100),
        None => "unknown".to_owned(),
    };
    format!("; lately green {}, blue {}", say(state.green_micros), say(state.blue_micros))
}

fn lower(state: &RuleState) -> f64 {
    state.pass_ln.min(state.recent_ln)
}
