//! The canary's counts across restarts, and what of them is overdue. Pure.

use api::status::LedgerStatus;
use decide::world::LedgerView;
use rabbit::amqp::{LedgerSnapshot, Ranges};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long a number may stay away after a later one came. In a switch numbers wait on the other side, but
/// then no later one comes either.
const OVERDUE: Duration = Duration::from_secs(5);
/// Looks that are kept. 64: they are at least a tenth of a second apart.
const LOOKS: usize = 64;
/// Between two looks that are kept.
const APART: Duration = Duration::from_millis(100);

/// What an earlier process counted, as status has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Base {
    counted: LedgerView,
}

impl Base {
    /// Counts of a process that was interrupted. What it confirmed and did not see delivered is unaccounted,
    /// and so is what it confirmed after the last store: at least one, since nobody knows.
    pub fn interrupted(status: &LedgerStatus) -> Self {
        let count = |count: i64| u64::try_from(count).unwrap_or(0);
        let open = count(status.confirmed).saturating_sub(count(status.delivered));
        let open = open.saturating_sub(count(status.lost)).max(1);
        Self {
            counted: LedgerView {
                running: false,
                attempted: count(status.confirmed),
                confirmed: count(status.confirmed),
                delivered: count(status.delivered),
                lost: count(status.lost),
                duplicated_explained: count(status.duplicated_explained),
                duplicated_unexplained: count(status.duplicated_unexplained),
                reordered: count(status.reordered),
                unaccounted: count(status.unaccounted).max(open),
                publish_gap_millis: count(status.publish_gap_millis),
                refused: 0,
            },
        }
    }

    /// These counts and those of a snapshot together.
    pub fn plus(&self, snapshot: &LedgerSnapshot, lost: u64, running: bool) -> LedgerView {
        let base = &self.counted;
        let refused = snapshot.publisher.refused.saturating_add(snapshot.consumer.refused);
        LedgerView {
            running,
            attempted: base.attempted.saturating_add(snapshot.attempted),
            confirmed: base.confirmed.saturating_add(snapshot.confirmed.len()),
            delivered: base.delivered.saturating_add(snapshot.delivered.len()),
            lost: base.lost.saturating_add(lost),
            duplicated_explained: base.duplicated_explained.saturating_add(snapshot.duplicates_explained),
            duplicated_unexplained: base
                .duplicated_unexplained
                .saturating_add(snapshot.duplicates_unexplained),
            reordered: base.reordered.saturating_add(snapshot.reordered),
            unaccounted: base.unaccounted,
            publish_gap_millis: base.publish_gap_millis.max(snapshot.publisher.longest_gap_ms),
            refused: base.refused.saturating_add(refused),
        }
    }
}

/// A look at what was confirmed and not delivered though a later number was.
struct Look {
    at: Instant,
    overtaken: Ranges,
}

/// The last looks, oldest first.
#[derive(Default)]
pub struct Watch {
    looks: VecDeque<Look>,
}

impl Watch {
    /// How many numbers were overtaken long ago and are still missing: lost, unless they come after all.
    pub fn overdue(&mut self, snapshot: &LedgerSnapshot, now: Instant) -> u64 {
        let overtaken = overtaken(snapshot);
        let age = |look: &Look| now.saturating_duration_since(look.at);
        // Of the looks that are old enough only the newest says most.
        while self.looks.get(1).is_some_and(|look| age(look) >= OVERDUE) {
            self.looks.pop_front();
        }
        let old = self.looks.front().filter(|look| age(look) >= OVERDUE);
        let overdue = old.map_or(0, |look| {
            let came = look.overtaken.minus(&overtaken).len();
            look.overtaken.len().saturating_sub(came)
        });
        if self.looks.back().is_none_or(|look| age(look) >= APART) && self.looks.len() < LOOKS {
            self.looks.push_back(Look { at: now, overtaken });
        }
        overdue
    }
}

/// Numbers that are missing though a later one was delivered.
fn overtaken(snapshot: &LedgerSnapshot) -> Ranges {
    let mut later = Ranges::new();
    let Some(last) = snapshot.delivered.last() else { return later };
    for (first, end) in snapshot.missing.iter() {
        for number in first..=end.min(last) {
            later.insert(number);
        }
    }
    later
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(numbers: impl IntoIterator<Item = u64>) -> Ranges {
        let mut ranges = Ranges::new();
        numbers.into_iter().for_each(|number| {
            ranges.insert(number);
        });
        ranges
    }

    fn snapshot(confirmed: u64, delivered: impl IntoIterator<Item = u64>) -> LedgerSnapshot {
        let (confirmed, delivered) = (ranges(0..confirmed), ranges(delivered));
        let missing = confirmed.minus(&delivered);
        LedgerSnapshot {
            attempted: confirmed.len(),
            confirmed,
            delivered,
            missing,
            ..LedgerSnapshot::default()
        }
    }

    #[test]
    fn what_waits_on_the_other_side_is_not_lost() {
        let mut watch = Watch::default();
        let start = Instant::now();
        for second in 0..60 {
            let waiting = snapshot(100 + second * 50, 0..100);
            assert_eq!(watch.overdue(&waiting, start + Duration::from_secs(second)), 0);
        }
    }

    #[test]
    fn what_was_overtaken_is_lost_until_it_comes() {
        let mut watch = Watch::default();
        let start = Instant::now();
        let holed = |upto: u64| snapshot(upto, (0..upto).filter(|n| *n != 7));
        assert_eq!(watch.overdue(&holed(10), start), 0, "it may be on its way");
        assert_eq!(watch.overdue(&holed(200), start + Duration::from_secs(4)), 0);
        assert_eq!(watch.overdue(&holed(300), start + Duration::from_secs(6)), 1);
        assert_eq!(watch.overdue(&snapshot(400, 0..400), start + Duration::from_secs(7)), 0, "carried");
    }

    #[test]
    fn after_an_interruption_something_is_unaccounted() {
        let status = LedgerStatus { confirmed: 100, delivered: 90, lost: 2, ..LedgerStatus::default() };
        let view = Base::interrupted(&status).plus(&snapshot(50, 0..50), 0, true);
        assert_eq!((view.confirmed, view.delivered, view.lost, view.unaccounted), (150, 140, 2, 8));
        let quiet = LedgerStatus { confirmed: 100, delivered: 100, ..LedgerStatus::default() };
        assert_eq!(Base::interrupted(&quiet).plus(&snapshot(0, []), 0, true).unaccounted, 1);
    }
}
