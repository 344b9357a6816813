//! One side in one window while it is open: which messages are still owed, and the four histograms. Pure.

use std::collections::HashSet;

use rabbit::amqp::transport::Outcome;

use crate::latency::Recorder;
use crate::summary::Counters;

/// A set of positions within a window.
#[derive(Debug, Clone)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    fn new(positions: u64) -> Self {
        Self(vec![0; usize::try_from(positions.div_ceil(64)).unwrap_or_default()])
    }

    fn has(&self, position: u64) -> bool {
        self.word(position).is_some_and(|(word, bit)| self.0.get(word).is_some_and(|word| word & bit != 0))
    }

    /// Adds a position; whether it is new.
    fn add(&mut self, position: u64) -> bool {
        let Some((word, bit)) = self.word(position) else { return false };
        let Some(word) = self.0.get_mut(word) else { return false };
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    fn word(&self, position: u64) -> Option<(usize, u64)> {
        let word = usize::try_from(position / 64).ok()?;
        (word < self.0.len()).then_some((word, 1 << (position % 64)))
    }
}

/// Which of a closed window's messages came: tells a late message from a duplicate.
#[derive(Debug)]
pub(crate) struct Tombstone {
    first: u64,
    end: u64,
    received: Bits,
}

impl Tombstone {
    /// Whether the message belongs here.
    pub fn holds(&self, sequence: u64) -> bool {
        (self.first..self.end).contains(&sequence)
    }

    /// Notes a message; whether it came for the first time.
    pub fn receive(&mut self, sequence: u64) -> bool {
        self.received.add(sequence - self.first)
    }
}

/// The four histograms of a window.
#[derive(Debug, Clone)]
pub(crate) struct Recorders {
    pub e2e: Recorder,
    pub e2e_actual: Recorder,
    pub confirm: Recorder,
    pub sendlag: Recorder,
}

impl Recorders {
    pub fn from(empty: &Recorder) -> Self {
        Self { e2e: empty.clone(), e2e_actual: empty.clone(), confirm: empty.clone(), sendlag: empty.clone() }
    }

    pub fn merge(&mut self, other: &Self) {
        let Self { e2e, e2e_actual, confirm, sendlag } = other;
        self.e2e.merge(e2e);
        self.e2e_actual.merge(e2e_actual);
        self.confirm.merge(confirm);
        self.sendlag.merge(sendlag);
    }
}

/// A closed window of one side, before it is judged.
#[derive(Debug)]
pub(crate) struct Record {
    pub index: u64,
    pub counters: Counters,
    pub recorders: Recorders,
    pub paused: bool,
}

/// A window that still takes messages.
#[derive(Debug)]
pub(crate) struct Window {
    pub index: u64,
    pub first: u64,
    pub end: u64,
    pub counters: Counters,
    pub paused: bool,
    recorders: Recorders,
    received: Bits,
    answered: Bits,
    refused: HashSet<u64>,
    /// Microseconds from the intended time to the socket, by position.
    wired: Vec<u32>,
    /// Sent, neither received nor refused.
    undelivered: u64,
    /// Sent, no answer of the broker yet.
    unanswered: u64,
}

impl Window {
    pub fn new(index: u64, (first, end): (u64, u64), empty: &Recorder) -> Self {
        Self {
            index,
            first,
            end,
            counters: Counters::default(),
            paused: false,
            recorders: Recorders::from(empty),
            received: Bits::new(end - first),
            answered: Bits::new(end - first),
            refused: HashSet::new(),
            wired: vec![0; usize::try_from(end - first).unwrap_or_default()],
            undelivered: 0,
            unanswered: 0,
        }
    }

    pub fn holds(&self, sequence: u64) -> bool {
        (self.first..self.end).contains(&sequence)
    }

    /// A message goes out, this long after it was due.
    pub fn send(&mut self, lag: u64) {
        self.counters.planned += 1;
        self.counters.sent += 1;
        self.undelivered += 1;
        self.unanswered += 1;
        self.recorders.sendlag.record(lag);
    }

    /// A message was due and could not go out: infinitely late, never skipped.
    pub fn not_sent(&mut self) {
        self.counters.planned += 1;
        self.counters.not_sent += 1;
        self.recorders.e2e.record_infinite(1);
        self.recorders.confirm.record_infinite(1);
    }

    /// A message's bytes are in the socket, this long after it was due.
    pub fn wire(&mut self, sequence: u64, waited: u64) {
        let position = usize::try_from(sequence - self.first).unwrap_or(usize::MAX);
        if let Some(wired) = self.wired.get_mut(position) {
            *wired = u32::try_from(waited / 1_000).unwrap_or(u32::MAX);
        }
    }

    /// The broker answered; `latency` since the intended time, `None` if the clock is wrong.
    pub fn answer(&mut self, sequence: u64, outcome: Outcome, latency: Option<u64>) {
        let position = sequence - self.first;
        if !self.answered.add(position) {
            return;
        }
        self.unanswered = self.unanswered.saturating_sub(1);
        match outcome {
            Outcome::Acked => self.counters.confirmed += 1,
            Outcome::Nacked => self.counters.nacked += 1,
            Outcome::Returned => self.counters.returned += 1,
        }
        match (outcome, latency) {
            (Outcome::Acked, Some(latency)) => self.recorders.confirm.record(latency),
            (Outcome::Acked, None) => self.counters.negative += 1,
            (Outcome::Nacked | Outcome::Returned, _) => {
                self.recorders.confirm.record_infinite(1);
                if !self.received.has(position) && self.refused.insert(position) {
                    self.undelivered = self.undelivered.saturating_sub(1);
                    self.recorders.e2e.record_infinite(1);
                }
            }
        }
    }

    /// A message came, this long after it was due (`None`: before it was sent, a clock is wrong); whether for
    /// the first time.
    pub fn receive(&mut self, sequence: u64, latency: Option<u64>) -> bool {
        let position = sequence - self.first;
        if !self.received.add(position) {
            return false;
        }
        self.counters.received += 1;
        if self.refused.contains(&position) {
            // Refused and yet it came: it already counts as infinite.
            return true;
        }
        self.undelivered = self.undelivered.saturating_sub(1);
        let Some(latency) = latency else {
            self.counters.negative += 1;
            return true;
        };
        let wired = usize::try_from(position).ok().and_then(|position| self.wired.get(position));
        let waited = wired.map_or(0, |micros| u64::from(*micros) * 1_000);
        self.recorders.e2e.record(latency);
        self.recorders.e2e_actual.record(latency.saturating_sub(waited));
        true
    }

    /// Messages still under way.
    pub fn undelivered(&self) -> u64 {
        self.undelivered
    }

    /// Whether nothing is owed any more.
    pub fn is_settled(&self) -> bool {
        self.undelivered == 0 && self.unanswered == 0
    }

    /// Closes the books: what has not come is lost, and infinite.
    pub fn close(mut self) -> (Record, Tombstone) {
        self.counters.lost = self.undelivered;
        self.counters.lost_confirmed = u64::try_from(self.accepted_and_missing()).unwrap_or(u64::MAX);
        self.recorders.e2e.record_infinite(self.undelivered);
        self.recorders.e2e_actual.record_infinite(self.undelivered);
        self.recorders.confirm.record_infinite(self.unanswered);
        let Self { index, first, end, counters, paused, recorders, received, .. } = self;
        (Record { index, counters, recorders, paused }, Tombstone { first, end, received })
    }

    fn accepted_and_missing(&self) -> usize {
        (0..self.end - self.first)
            .filter(|at| self.answered.has(*at) && !self.received.has(*at) && !self.refused.contains(at))
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::{Latency, Samples};

    const MS: u64 = 1_000_000;

    fn window() -> Window {
        Window::new(3, (100, 200), &Recorder::new().unwrap())
    }

    #[test]
    fn a_window_is_settled_when_all_came_and_were_answered() {
        let mut window = window();
        window.send(0);
        assert!(!window.is_settled());
        assert!(window.receive(100, Some(MS)));
        assert!(!window.is_settled());
        window.answer(100, Outcome::Acked, Some(MS));
        assert!(window.is_settled());
    }

    #[test]
    fn what_did_not_come_is_lost_and_infinite() {
        let mut window = window();
        for sequence in 100..200 {
            window.send(0);
            if sequence < 190 {
                window.receive(sequence, Some(MS));
            }
            if sequence != 199 {
                window.answer(sequence, Outcome::Acked, Some(MS));
            }
        }
        let (record, _) = window.close();
        assert_eq!((record.counters.received, record.counters.lost), (90, 10));
        assert_eq!(record.counters.lost_confirmed, 9);
        assert_eq!(record.recorders.e2e.infinite(), 10);
        assert_eq!(record.recorders.confirm.infinite(), 1);
        assert_eq!(record.recorders.e2e.quantiles(Samples::Any).p95, Some(Latency::Infinite));
    }

    #[test]
    fn dropped_slots_are_planned_and_infinite() {
        let mut window = window();
        window.not_sent();
        assert!(window.is_settled());
        let (record, _) = window.close();
        assert_eq!((record.counters.planned, record.counters.not_sent, record.counters.lost), (1, 1, 0));
        assert_eq!(record.recorders.e2e.messages(), 1);
        assert_eq!(record.recorders.confirm.infinite(), 1);
        assert_eq!(record.recorders.e2e_actual.messages(), 0);
    }

    #[test]
    fn a_refused_message_is_not_lost_but_infinite() {
        let mut window = window();
        window.send(0);
        window.answer(100, Outcome::Nacked, Some(MS));
        assert!(window.is_settled());
        window.receive(100, Some(MS));
        let (record, _) = window.close();
        assert_eq!((record.counters.nacked, record.counters.lost, record.counters.received), (1, 0, 1));
        assert_eq!((record.recorders.e2e.messages(), record.recorders.e2e.infinite()), (1, 1));
    }

    #[test]
    fn a_tombstone_tells_late_from_twice() {
        let mut window = window();
        window.send(0);
        window.receive(100, Some(MS));
        let (_, mut tombstone) = window.close();
        assert!(!tombstone.receive(100));
        assert!(tombstone.receive(101));
        assert!(!tombstone.receive(101));
        assert!(!tombstone.holds(200));
    }

    #[test]
    fn back_pressure_shows_as_the_difference_to_the_actual_latency() {
        let mut window = window();
        window.send(0);
        window.wire(100, 90 * MS);
        window.receive(100, Some(100 * MS));
        let (record, _) = window.close();
        assert_eq!(record.recorders.e2e.slowest(), 100 * MS);
        assert_eq!(record.recorders.e2e_actual.slowest(), 10 * MS);
    }

    #[test]
    fn a_negative_latency_is_counted_and_not_recorded() {
        let mut window = window();
        window.send(0);
        window.receive(100, None);
        assert_eq!((window.counters.negative, window.counters.received), (1, 1));
        assert_eq!(window.close().0.recorders.e2e.messages(), 0);
    }
}
