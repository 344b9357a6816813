//! What the consumers of one queue remember of what they got. Pure: time comes in.

use std::collections::{BTreeMap, VecDeque};

use crate::document::{Consumed, QueueId};
use crate::gap::Gap;
use crate::ranges::Layers;
use crate::runs::{Flags, Runs};

/// All deliveries of one queue to this process.
#[derive(Debug)]
pub struct ConsumerBook {
    queue: QueueId,
    consumers: usize,
    dead_letters: Option<String>,
    arrivals: BTreeMap<String, Runs>,
    unsettled: BTreeMap<String, Layers>,
    malformed: u64,
    counts: Counts,
    gap: Gap,
}

/// Running totals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Deliveries.
    pub delivered: u64,
    /// Deliveries refused for good.
    pub rejected: u64,
    /// Deliveries marked as redelivered.
    pub redelivered: u64,
    /// The longest way of a message that was not redelivered.
    pub worst_latency_ms: u64,
}

impl ConsumerBook {
    /// The empty book of so many consumers.
    pub fn new(queue: QueueId, consumers: usize, dead_letters: Option<String>) -> Self {
        Self {
            queue,
            consumers,
            dead_letters,
            arrivals: BTreeMap::new(),
            unsettled: BTreeMap::new(),
            malformed: 0,
            counts: Counts::default(),
            gap: Gap::default(),
        }
    }

    /// A message came.
    pub fn arrived(&mut self, publisher: &str, seq: u64, flags: Flags, now: u64) {
        let runs = match self.arrivals.get_mut(publisher) {
            Some(runs) => runs,
            None => self.arrivals.entry(publisher.to_owned()).or_default(),
        };
        runs.push(seq, flags, now);
        self.gap.mark(now);
        self.counts.delivered += 1;
        self.counts.rejected += u64::from(flags.rejected());
        self.counts.redelivered += u64::from(flags.redelivered());
    }

    /// How long that message was on its way.
    pub fn took(&mut self, millis: u64) {
        self.counts.worst_latency_ms = self.counts.worst_latency_ms.max(millis);
    }

    /// Something came that no client of ours wrote.
    pub fn malformed(&mut self) {
        self.malformed += 1;
    }

    /// A connection closed: these deliveries may rightly come again.
    pub fn closed(&mut self, unproven: Unproven) {
        for (publisher, seq) in unproven.recent {
            self.unsettled.entry(publisher).or_default().insert(seq);
        }
    }

    /// Running totals.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The time between deliveries.
    pub fn gap(&self) -> Gap {
        self.gap
    }

    /// Forgets the longest time between deliveries and the longest way.
    pub fn reset_gap(&mut self, now: u64) {
        self.gap.reset(now);
        self.counts.worst_latency_ms = 0;
    }

    /// The ledger for others to read.
    pub fn ledger(&self) -> Consumed {
        Consumed {
            vhost: self.queue.vhost.clone(),
            queue: self.queue.queue.clone(),
            consumers: self.consumers,
            dead_letters: self.dead_letters.clone(),
            arrivals: self.arrivals.clone(),
            unsettled: self.unsettled.clone(),
            malformed: self.malformed,
            longest_delivery_gap_ms: self.gap.longest(),
        }
    }
}

/// The deliveries of one connection that the broker may still count as unacked.
///
/// AMQP confirms no ack. But with a prefetch of `P` and acks in order, delivery `n` proves that the broker has
/// read the acks up to `n - P`; so these are the last `P` deliveries, whether acked or not, and never more.
#[derive(Debug)]
pub struct Unproven {
    prefetch: usize,
    recent: VecDeque<(String, u64)>,
}

impl Unproven {
    /// For a connection with this prefetch.
    pub fn new(prefetch: u16) -> Self {
        Self { prefetch: usize::from(prefetch), recent: VecDeque::new() }
    }

    /// A message came.
    pub fn arrived(&mut self, publisher: &str, seq: u64) {
        if self.recent.len() >= self.prefetch {
            self.recent.pop_front();
        }
        self.recent.push_back((publisher.to_owned(), seq));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_prefetch_may_come_again() {
        let mut book = ConsumerBook::new(QueueId::new("/", "q"), 1, None);
        let mut unproven = Unproven::new(2);
        for seq in 1..=5 {
            book.arrived("p", seq, Flags::default(), seq * 10);
            unproven.arrived("p", seq);
        }
        book.closed(unproven);
        let ledger = book.ledger();
        let unsettled = &ledger.unsettled["p"];
        assert_eq!((1..=5).map(|seq| unsettled.count(seq)).collect::<Vec<_>>(), [0, 0, 0, 1, 1]);
        assert_eq!((ledger.arrivals["p"].len(), ledger.longest_delivery_gap_ms), (5, 10));
    }

    #[test]
    fn counts_what_was_special() {
        let mut book = ConsumerBook::new(QueueId::new("/", "q"), 1, Some("q.dead".to_owned()));
        book.arrived("p", 1, Flags::new(0).with_rejected(true), 0);
        book.arrived("p", 1, Flags::new(1).with_rejected(true).with_redelivered(true), 9);
        book.took(4);
        book.took(3);
        assert_eq!(book.counts(), Counts { delivered: 2, rejected: 2, redelivered: 1, worst_latency_ms: 4 });
    }
}
