//! Where the tasks of one process keep their books, and what is told of them. No I/O but the clock.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::consumer_book::ConsumerBook;
use crate::document::{Document, Stats};
use crate::publisher_book::PublisherBook;
use crate::sessions::Sessions;

/// As many sessions as `/stats` lists; `/ledger` has all that are kept.
const RECENT: usize = 50;

/// A value behind a lock that is held for the length of one closure.
#[derive(Debug, Default)]
pub struct Shared<T>(Arc<Mutex<T>>);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Shared<T> {
    /// Shares a value.
    pub fn new(value: T) -> Self {
        Self(Arc::new(Mutex::new(value)))
    }

    /// Reads or changes it.
    pub fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The time since the client's start, and when that was.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Instant,
    wall_ms: u64,
}

impl Clock {
    /// Starts now.
    pub fn start() -> Self {
        Self { start: Instant::now(), wall_ms: wall_micros() / 1000 }
    }

    /// Milliseconds since the start, by the monotonic clock.
    pub fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The start, in milliseconds since the Unix epoch.
    pub fn started_at(&self) -> u64 {
        self.wall_ms
    }
}

/// Microseconds since the Unix epoch.
pub fn wall_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// All books of one process.
#[derive(Debug, Clone)]
pub struct Hub {
    /// The client's id.
    pub client: String,
    /// How many connections it has.
    pub connections: usize,
    /// The time.
    pub clock: Clock,
    /// One book per publisher.
    pub publishers: Vec<Shared<PublisherBook>>,
    /// One book per queue that it consumes.
    pub consumers: Vec<Shared<ConsumerBook>>,
    /// The connections.
    pub sessions: Shared<Sessions>,
}

impl Hub {
    /// Everything.
    pub fn document(&self) -> Document {
        let now = self.clock.now();
        let (clusters, sessions) =
            self.sessions.with(|sessions| (sessions.clusters().to_vec(), sessions.latest(usize::MAX)));
        Document {
            client: self.client.clone(),
            started_at_ms: self.clock.started_at(),
            taken_at_ms: self.clock.started_at().saturating_add(now),
            clusters,
            publishers: self.publishers.iter().map(|book| book.with(|book| book.ledger(now))).collect(),
            consumers: self.consumers.iter().map(|book| book.with(|book| book.ledger())).collect(),
            sessions,
        }
    }

    /// The numbers.
    pub fn stats(&self) -> Stats {
        let now = self.clock.now();
        let mut stats = self.sessions.with(|sessions| Stats {
            client: self.client.clone(),
            now_ms: now,
            reconnects: sessions.reconnects(),
            errors: sessions.errors().clone(),
            connected_to: sessions.connected_to(self.connections),
            sessions: sessions.latest(RECENT),
            ..Stats::default()
        });
        for book in &self.publishers {
            book.with(|book| add_publisher(&mut stats, book, now));
        }
        for book in &self.consumers {
            book.with(|book| add_consumer(&mut stats, book, now));
        }
        stats
    }

    /// Lets all publishers publish.
    pub fn start(&self) {
        self.publishers.iter().for_each(|book| book.with(PublisherBook::start));
    }

    /// Lets no publisher publish anything new.
    pub fn stop(&self) {
        self.publishers.iter().for_each(|book| book.with(PublisherBook::stop));
    }

    /// Is nothing sent that is not confirmed?
    pub fn is_settled(&self) -> bool {
        self.publishers.iter().all(|book| book.with(|book| book.in_flight() == 0))
    }

    /// Forgets the longest gaps.
    pub fn reset_gaps(&self) {
        let now = self.clock.now();
        self.publishers.iter().for_each(|book| book.with(|book| book.reset_gap(now)));
        self.consumers.iter().for_each(|book| book.with(|book| book.reset_gap(now)));
    }
}

fn add_publisher(stats: &mut Stats, book: &PublisherBook, now: u64) {
    let ledger = book.ledger(now);
    stats.publishing |= book.publishing();
    stats.attempted += ledger.attempted;
    stats.confirmed += ledger.confirmed.len();
    stats.in_flight += ledger.unconfirmed.len();
    stats.behind += book.behind();
    stats.resent += ledger.resent.len();
    stats.nacked += ledger.nacked.len();
    stats.returned += ledger.returned.len();
    stats.last_confirm_age_ms = stats.last_confirm_age_ms.max(book.gap().age(now));
    stats.longest_publish_gap_ms = stats.longest_publish_gap_ms.max(ledger.longest_publish_gap_ms);
}

fn add_consumer(stats: &mut Stats, book: &ConsumerBook, now: u64) {
    let counts = book.counts();
    stats.delivered += counts.delivered;
    stats.rejected += counts.rejected;
    stats.redelivered += counts.redelivered;
    stats.worst_latency_ms = stats.worst_latency_ms.max(counts.worst_latency_ms);
    stats.last_delivery_age_ms = stats.last_delivery_age_ms.max(book.gap().age(now));
    stats.longest_delivery_gap_ms = stats.longest_delivery_gap_ms.max(book.gap().longest());
}
