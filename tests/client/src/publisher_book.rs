//! What one publisher remembers of what it sent. Pure: time comes in.

use std::collections::BTreeMap;

use crate::document::Published;
use crate::gap::Gap;
use crate::ranges::{Layers, Ranges};

/// One publisher's messages and what became of them.
#[derive(Debug)]
pub struct PublisherBook {
    id: String,
    vhost: String,
    queues: Vec<String>,
    attempted: u64,
    confirmed: Ranges,
    /// Number and time of first sending, at most a window of them.
    unconfirmed: BTreeMap<u64, u64>,
    resent: Layers,
    nacked: Ranges,
    returned: Ranges,
    gap: Gap,
    publishing: bool,
    behind: u64,
}

impl PublisherBook {
    /// The empty book of a publisher that may begin; `queues` is where each of its messages has to arrive.
    pub fn new(id: String, vhost: String, queues: Vec<String>) -> Self {
        Self {
            id,
            vhost,
            queues,
            attempted: 0,
            confirmed: Ranges::default(),
            unconfirmed: BTreeMap::new(),
            resent: Layers::default(),
            nacked: Ranges::default(),
            returned: Ranges::default(),
            gap: Gap::default(),
            publishing: true,
            behind: 0,
        }
    }

    /// The publisher's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// A new message is about to be sent: its number, or `None` once publishing was stopped.
    pub fn next(&mut self, sent_micros: u64) -> Option<u64> {
        if !self.publishing {
            return None;
        }
        self.attempted += 1;
        self.unconfirmed.insert(self.attempted, sent_micros);
        Some(self.attempted)
    }

    /// A message is about to be sent again: when it was sent first, or `None` if there is no need to.
    pub fn again(&mut self, seq: u64) -> Option<u64> {
        let sent = self.unconfirmed.get(&seq).copied()?;
        self.resent.insert(seq);
        Some(sent)
    }

    /// The broker has it.
    pub fn confirm(&mut self, seq: u64, now: u64) {
        self.confirmed.insert(seq);
        self.unconfirmed.remove(&seq);
        self.gap.mark(now);
        self.rest();
    }

    /// The broker refused it; it stays unconfirmed.
    pub fn nack(&mut self, seq: u64) {
        self.nacked.insert(seq);
    }

    /// No queue would have it; the broker confirms it all the same.
    pub fn give_back(&mut self, seq: u64) {
        self.returned.insert(seq);
    }

    /// What was sent and is not confirmed, in order.
    pub fn unconfirmed(&self) -> Vec<u64> {
        self.unconfirmed.keys().copied().collect()
    }

    /// How many are sent and not confirmed.
    pub fn in_flight(&self) -> usize {
        self.unconfirmed.len()
    }

    /// Is it meant to publish?
    pub fn publishing(&self) -> bool {
        self.publishing
    }

    /// Publishes from now on.
    pub fn start(&mut self) {
        self.publishing = true;
    }

    /// Publishes nothing new from now on; what is unconfirmed is still pursued.
    pub fn stop(&mut self) {
        self.publishing = false;
        self.rest();
    }

    /// Notes how many messages are due and not sent.
    pub fn owe(&mut self, behind: u64) {
        self.behind = behind;
    }

    /// How many messages are due and not sent.
    pub fn behind(&self) -> u64 {
        self.behind
    }

    /// The time between confirms.
    pub fn gap(&self) -> Gap {
        self.gap
    }

    /// Forgets the longest time between confirms.
    pub fn reset_gap(&mut self, now: u64) {
        self.gap.reset(now);
    }

    /// The ledger for others to read.
    pub fn ledger(&self, now: u64) -> Published {
        Published {
            id: self.id.clone(),
            vhost: self.vhost.clone(),
            queues: self.queues.clone(),
            attempted: self.attempted,
            confirmed: self.confirmed.clone(),
            unconfirmed: self.unconfirmed.keys().copied().collect(),
            resent: self.resent.clone(),
            nacked: self.nacked.clone(),
            returned: self.returned.clone(),
            longest_publish_gap_ms: self.gap.longest_until(now),
        }
    }

    /// With nothing to send and nothing to wait for, time is no gap.
    fn rest(&mut self) {
        if !self.publishing && self.unconfirmed.is_empty() {
            self.gap.pause();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book() -> PublisherBook {
        PublisherBook::new("p".to_owned(), "/".to_owned(), vec!["q".to_owned()])
    }

    #[test]
    fn a_resend_is_marked_and_keeps_its_time() {
        let mut book = book();
        for sent in [10, 20, 30] {
            book.next(sent);
        }
        book.confirm(2, 1);
        assert_eq!(book.unconfirmed(), [1, 3]);
        assert_eq!((book.again(1), book.again(2), book.again(3)), (Some(10), None, Some(30)));
        book.confirm(1, 2);
        book.confirm(3, 3);
        let ledger = book.ledger(3);
        assert_eq!((ledger.attempted, ledger.confirmed.len(), ledger.unconfirmed.len()), (3, 3, 0));
        assert_eq!((1..=3).map(|seq| ledger.resent.count(seq)).collect::<Vec<_>>(), [1, 0, 1]);
    }

    #[test]
    fn a_stop_ends_the_gap_when_all_is_confirmed() {
        let mut book = book();
        book.next(0);
        book.next(0);
        book.confirm(1, 100);
        book.stop();
        assert_eq!((book.next(0), book.in_flight()), (None, 1));
        book.confirm(2, 180);
        assert_eq!(book.ledger(9000).longest_publish_gap_ms, 80);
        book.start();
        assert_eq!(book.next(0), Some(3));
    }
}
