//! The canary's ledger: which numbers were attempted, confirmed, delivered. Pure; no clock, no I/O.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ranges::Ranges;

/// Counts one canary's messages. Numbers are 0, 1, 2, ... in the order of first publishing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    next: u64,
    confirmed: Ranges,
    delivered: Ranges,
    resent: Ranges,
    /// Resends that have explained no duplicate yet: each explains one.
    unused: BTreeMap<u64, u32>,
    returned: u64,
    nacked: u64,
    explained: u64,
    unexplained: u64,
    reordered: u64,
    unexpected: u64,
}

/// What the ledger says at one moment. Serializes without floats, fit for an owned object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LedgerSnapshot {
    /// Messages published at least once.
    pub attempted: u64,
    /// Confirmed, and not returned.
    pub confirmed: Ranges,
    /// Delivered at least once.
    pub delivered: Ranges,
    /// Published again after a close because they were unconfirmed.
    pub resent: Ranges,
    /// Resends that have explained no duplicate yet, by number.
    pub unused_resends: BTreeMap<u64, u32>,
    /// Confirmed and not delivered: in the queue, or after the settle time **lost**.
    pub missing: Ranges,
    /// Delivered though never confirmed (Jepsen's "recovered"): stored at a close, confirm lost.
    pub recovered: u64,
    /// Further deliveries that came flagged as redelivered, or of a number that was resent (one per resend).
    pub duplicates_explained: u64,
    /// Further deliveries that nothing explains: a fault.
    pub duplicates_unexplained: u64,
    /// First deliveries that came after a higher number and were not resent.
    pub reordered: u64,
    /// Deliveries that this canary never published.
    pub unexpected: u64,
    /// Publishes that came back as unroutable.
    pub returned: u64,
    /// Times the queue refused a publish; it was published again.
    pub nacked: u64,
    /// What happened to the publisher's connection.
    pub publisher: Outages,
    /// What happened to the consumer's connection.
    pub consumer: Outages,
}

impl LedgerSnapshot {
    /// Numbers confirmed and not delivered; lost if it stays above 0 after the settle time.
    pub fn lost(&self) -> u64 {
        self.missing.len()
    }

    /// Whether nothing is missing, unexpected or unexplained.
    pub fn is_balanced(&self) -> bool {
        self.missing.is_empty() && self.unexpected == 0 && self.duplicates_unexplained == 0
    }
}

/// Interruptions of one connection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Outages {
    /// Logins that succeeded.
    pub connects: u64,
    /// Connections that ended without our asking.
    pub closes: u64,
    /// Logins that were refused (403, 530): locked out.
    pub refused: u64,
    /// Attempts that met nobody.
    pub unreachable: u64,
    /// Longest time between two confirms (publisher) or deliveries (consumer), milliseconds.
    pub longest_gap_ms: u64,
    /// Last failure, in the broker's words.
    pub last_error: Option<String>,
}

impl Ledger {
    /// A ledger that goes on from a stored one: same numbers, same counts.
    pub fn resume(stored: &LedgerSnapshot) -> Self {
        Self {
            next: stored.attempted,
            confirmed: stored.confirmed.clone(),
            delivered: stored.delivered.clone(),
            resent: stored.resent.clone(),
            unused: stored.unused_resends.clone(),
            returned: stored.returned,
            nacked: stored.nacked,
            explained: stored.duplicates_explained,
            unexplained: stored.duplicates_unexplained,
            reordered: stored.reordered,
            unexpected: stored.unexpected,
        }
    }

    /// Takes the next number for a first publish.
    pub fn attempt(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }

    /// A publish again, after a close that left it unconfirmed.
    pub fn resend(&mut self, number: u64) {
        self.resent.insert(number);
        *self.unused.entry(number).or_default() += 1;
    }

    /// A positive confirm without a return.
    pub fn confirm(&mut self, number: u64) {
        self.confirmed.insert(number);
    }

    /// A publish that came back.
    pub fn returned(&mut self) {
        self.returned += 1;
    }

    /// A negative confirm.
    pub fn nacked(&mut self) {
        self.nacked += 1;
    }

    /// A delivery; `redelivered` is the broker's flag.
    pub fn deliver(&mut self, number: u64, redelivered: bool) {
        if number >= self.next {
            self.unexpected += 1;
            return;
        }
        let highest = self.delivered.last();
        if !self.delivered.insert(number) {
            if redelivered || self.use_resend(number) {
                self.explained += 1;
            } else {
                self.unexplained += 1;
            }
        } else if highest.is_some_and(|highest| number < highest) && !self.resent.contains(number) {
            self.reordered += 1;
        }
    }

    /// Takes one resend of a number as explanation, if one is left.
    fn use_resend(&mut self, number: u64) -> bool {
        let Some(left) = self.unused.get_mut(&number) else { return false };
        *left -= 1;
        if *left == 0 {
            self.unused.remove(&number);
        }
        true
    }

    /// A delivery that is not one of ours.
    pub fn foreign(&mut self) {
        self.unexpected += 1;
    }

    /// Whether everything confirmed was delivered.
    pub fn is_settled(&self) -> bool {
        self.confirmed.minus(&self.delivered).is_empty()
    }

    /// What it says now.
    pub fn snapshot(&self, publisher: &Outages, consumer: &Outages) -> LedgerSnapshot {
        LedgerSnapshot {
            attempted: self.next,
            confirmed: self.confirmed.clone(),
            delivered: self.delivered.clone(),
            resent: self.resent.clone(),
            unused_resends: self.unused.clone(),
            missing: self.confirmed.minus(&self.delivered),
            recovered: self.delivered.minus(&self.confirmed).len(),
            duplicates_explained: self.explained,
            duplicates_unexplained: self.unexplained,
            reordered: self.reordered,
            unexpected: self.unexpected,
            returned: self.returned,
            nacked: self.nacked,
            publisher: publisher.clone(),
            consumer: consumer.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(attempts: u64) -> Ledger {
        let mut ledger = Ledger::default();
        for n in 0..attempts {
            assert_eq!(ledger.attempt(), n);
        }
        ledger
    }

    fn snapshot(ledger: &Ledger) -> LedgerSnapshot {
        ledger.snapshot(&Outages::default(), &Outages::default())
    }

    #[test]
    fn a_quiet_run_balances() {
        let mut ledger = with(100);
        for n in 0..100 {
            ledger.confirm(n);
            ledger.deliver(n, false);
        }
        let snapshot = snapshot(&ledger);
        assert!(snapshot.is_balanced());
        assert_eq!((snapshot.attempted, snapshot.lost(), snapshot.reordered), (100, 0, 0));
        assert_eq!(snapshot.confirmed.iter().collect::<Vec<_>>(), [(0, 99)]);
    }

    #[test]
    fn confirmed_and_not_delivered_is_missing() {
        let mut ledger = with(5);
        for n in [0, 1, 2, 3] {
            ledger.confirm(n);
        }
        for n in [0, 3, 4] {
            ledger.deliver(n, false);
        }
        let snapshot = snapshot(&ledger);
        assert_eq!(snapshot.missing.iter().collect::<Vec<_>>(), [(1, 2)]);
        assert_eq!((snapshot.lost(), snapshot.recovered), (2, 1));
        assert!(!ledger.is_settled());
    }

    #[test]
    fn duplicates_are_explained_by_a_resend_or_a_redelivery_only() {
        let mut ledger = with(4);
        ledger.deliver(0, false);
        ledger.deliver(0, true);
        ledger.deliver(1, false);
        ledger.resend(1);
        ledger.deliver(1, false);
        ledger.deliver(1, false);
        ledger.deliver(2, false);
        ledger.deliver(2, false);
        let snapshot = snapshot(&ledger);
        assert_eq!((snapshot.duplicates_explained, snapshot.duplicates_unexplained), (2, 2));
    }

    #[test]
    fn only_first_arrivals_that_were_not_resent_can_be_reordered() {
        let mut ledger = with(6);
        ledger.deliver(0, false);
        ledger.deliver(3, false);
        ledger.deliver(1, false);
        ledger.resend(2);
        ledger.deliver(2, false);
        ledger.deliver(3, true);
        ledger.deliver(4, false);
        assert_eq!(snapshot(&ledger).reordered, 1);
    }

    #[test]
    fn what_was_never_published_is_unexpected() {
        let mut ledger = with(2);
        ledger.deliver(2, false);
        ledger.foreign();
        assert_eq!(snapshot(&ledger).unexpected, 2);
        assert!(!snapshot(&ledger).is_balanced());
    }

    #[test]
    fn a_stored_ledger_goes_on() {
        let mut ledger = with(3);
        ledger.confirm(0);
        ledger.deliver(0, false);
        ledger.resend(2);
        ledger.returned();
        ledger.nacked();
        let stored = serde_json::to_string(&snapshot(&ledger)).unwrap();
        let resumed = Ledger::resume(&serde_json::from_str(&stored).unwrap());
        assert_eq!(resumed, ledger);
    }
}
