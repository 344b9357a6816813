//! Hard stops: what fails green at once, without statistics.

use std::collections::BTreeMap;

use super::rule::{Rule, tests};
use super::tally::Tally;
use super::window::PairedWindow;

/// Windows running beyond ten times a promise that stop: one may be a host's hiccup, three are green's.
const FAR_OFF_WINDOWS: u32 = 3;

/// Says what in this window fails green, if anything.
pub(super) fn hard_stop(
    window: &PairedWindow,
    rules: &[Rule],
    tallies: &BTreeMap<String, Tally>,
) -> Option<String> {
    let green = window.green.as_ref()?;
    let counted = [
        (green.lost, "lost", "messages"),
        (green.duplicated, "duplicated beyond redelivery", "messages"),
        (green.reordered, "reordered within a publisher", "messages"),
        (green.nacked, "refused", "messages"),
        (green.returned, "returned as unroutable", "messages"),
        (green.closed, "closed by the broker", "connections"),
        (green.blocked, "raised", "alarms or blocks"),
    ];
    let found = counted.into_iter().find(|(count, _, _)| *count > 0);
    let counted = found.map(|(count, what, things)| {
        format!("{count} {things} {what} on green in window {}, want none", window.index)
    });
    counted.or_else(|| far_off(window, rules, tallies))
}

fn far_off(window: &PairedWindow, rules: &[Rule], tallies: &BTreeMap<String, Tally>) -> Option<String> {
    let is_far = |label: &String| tallies.get(label).is_some_and(|tally| tally.far_off >= FAR_OFF_WINDOWS);
    let enforced = tests(rules).into_iter().filter(super::rule::Test::is_enforced);
    let label = enforced.map(|test| test.label()).find(is_far)?;
    let index = window.index;
    Some(format!("{label}: beyond ten times that in {FAR_OFF_WINDOWS} windows running, up to window {index}"))
}
