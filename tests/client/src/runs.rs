//! Deliveries in the order in which they came, as runs of consecutive numbers with equal flags. Pure.

use serde::{Deserialize, Serialize};

/// The longest run: a thousand messages share two points in time, so times stay exact to some seconds.
const LONGEST: u32 = 1000;

/// What was special about a delivery, and which cluster it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Flags(u32);

impl Flags {
    const REDELIVERED: u32 = 1;
    const REJECTED: u32 = 2;

    /// Flags of a delivery from the cluster with this index in the document's list.
    pub fn new(cluster: u32) -> Self {
        Self(cluster << 2)
    }

    /// The broker said that it had delivered this message before.
    #[must_use]
    pub fn with_redelivered(self, yes: bool) -> Self {
        Self(self.0 | if yes { Self::REDELIVERED } else { 0 })
    }

    /// The consumer refuses this message for good (`requeue` false), so it is dead-lettered.
    #[must_use]
    pub fn with_rejected(self, yes: bool) -> Self {
        Self(self.0 | if yes { Self::REJECTED } else { 0 })
    }

    /// Had the broker delivered it before?
    pub fn redelivered(self) -> bool {
        self.0 & Self::REDELIVERED != 0
    }

    /// Was it refused for good?
    pub fn rejected(self) -> bool {
        self.0 & Self::REJECTED != 0
    }

    /// The index of the cluster it came from.
    pub fn cluster(self) -> u32 {
        self.0 >> 2
    }
}

/// Consecutive deliveries `first, first + 1, ...` with the same flags; as JSON
/// `[first, length, flags, millis of the first, millis of the last]`, times since the client's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u32, Flags, u64, u64)", into = "(u64, u32, Flags, u64, u64)")]
pub struct Run {
    /// The first sequence number.
    pub first: u64,
    /// How many follow one another, itself included.
    pub length: u32,
    /// What they have in common.
    pub flags: Flags,
    /// When the first came, in milliseconds since the client's start.
    pub first_millis: u64,
    /// When the last came.
    pub last_millis: u64,
}

impl From<(u64, u32, Flags, u64, u64)> for Run {
    fn from((first, length, flags, first_millis, last_millis): (u64, u32, Flags, u64, u64)) -> Self {
        Self { first, length, flags, first_millis, last_millis }
    }
}

impl From<Run> for (u64, u32, Flags, u64, u64) {
    fn from(run: Run) -> Self {
        let Run { first, length, flags, first_millis, last_millis } = run;
        (first, length, flags, first_millis, last_millis)
    }
}

/// All deliveries of one publisher's messages, in order of arrival.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Runs(Vec<Run>);

impl Runs {
    /// Records one more delivery.
    pub fn push(&mut self, seq: u64, flags: Flags, millis: u64) {
        match self.0.last_mut() {
            Some(run)
                if run.flags == flags
                    && run.length < LONGEST
                    && run.first.checked_add(u64::from(run.length)) == Some(seq) =>
            {
                run.length += 1;
                run.last_millis = millis;
            }
            Some(_) | None => {
                self.0.push(Run { first: seq, length: 1, flags, first_millis: millis, last_millis: millis });
            }
        }
    }

    /// Walks through the deliveries in order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Flags)> {
        self.0.iter().flat_map(|run| {
            (0..u64::from(run.length)).map(|step| (run.first.saturating_add(step), run.flags))
        })
    }

    /// The runs themselves, with their times.
    pub fn runs(&self) -> &[Run] {
        &self.0
    }

    /// Counts the deliveries.
    pub fn len(&self) -> u64 {
        self.0.iter().map(|run| u64::from(run.length)).sum()
    }

    /// Is it empty?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_order_and_flags() {
        let (plain, again) = (Flags::new(1), Flags::new(1).with_redelivered(true).with_rejected(true));
        let arrivals = [(1, plain), (2, plain), (3, again), (2, plain), (4, plain), (5, plain)];
        let mut runs = Runs::default();
        for (millis, (seq, flags)) in (0..).zip(arrivals) {
            runs.push(seq, flags, millis);
        }
        assert_eq!(runs.iter().collect::<Vec<_>>(), arrivals);
        assert_eq!((runs.len(), runs.runs().len()), (6, 4));
        let text = serde_json::to_string(&runs).unwrap();
        assert_eq!(text, "[[1,2,4,0,1],[3,1,7,2,2],[2,1,4,3,3],[4,2,4,4,5]]");
        assert_eq!(serde_json::from_str::<Runs>(&text).unwrap(), runs);
    }

    #[test]
    fn flags_hold_three_things() {
        let flags = Flags::new(5).with_rejected(true);
        assert_eq!((flags.cluster(), flags.rejected(), flags.redelivered()), (5, true, false));
    }

    #[test]
    fn two_million_in_order_stay_small() {
        let mut runs = Runs::default();
        for seq in 1..=2_000_000 {
            runs.push(seq, Flags::default(), seq);
        }
        assert_eq!((runs.len(), runs.runs().len()), (2_000_000, 2000));
    }
}
