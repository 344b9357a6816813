//! What a client answers over HTTP: `/ledger` and `/stats`. Pure; the checker of the suite reads the same types.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ranges::{Layers, Ranges};
use crate::runs::Runs;

/// A queue, named so that two vhosts cannot be confused.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QueueId {
    /// The vhost.
    pub vhost: String,
    /// The queue's name.
    pub queue: String,
}

impl QueueId {
    /// Names a queue.
    pub fn new(vhost: impl Into<String>, queue: impl Into<String>) -> Self {
        Self { vhost: vhost.into(), queue: queue.into() }
    }
}

impl std::fmt::Display for QueueId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { vhost, queue } = self;
        write!(f, "{vhost} {queue}")
    }
}

/// Everything one client process knows: the answer to `GET /ledger`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// The client's id.
    pub client: String,
    /// When the process began, in milliseconds since the Unix epoch; all other times count from here.
    pub started_at_ms: u64,
    /// When this document was made.
    pub taken_at_ms: u64,
    /// The names of the clusters that were met; flags of deliveries point into this list.
    pub clusters: Vec<String>,
    /// Its publishers, one per connection.
    pub publishers: Vec<Published>,
    /// Its consumers, one ledger per queue.
    pub consumers: Vec<Consumed>,
    /// Every connection that was opened, the latest ones when there were very many.
    pub sessions: Vec<Session>,
}

/// The ledger of one publisher.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// The publisher's id, unlike any other, also after a restart.
    pub id: String,
    /// The vhost it publishes in.
    pub vhost: String,
    /// The queues that each of its messages has to reach.
    pub queues: Vec<String>,
    /// All of `1..=attempted` were sent at least once.
    pub attempted: u64,
    /// What the broker confirmed, returned messages included.
    pub confirmed: Ranges,
    /// What was sent and is not confirmed yet.
    pub unconfirmed: Ranges,
    /// What was sent again, and how often: unconfirmed when its connection closed, or refused by `basic.nack`.
    pub resent: Layers,
    /// What the broker refused by `basic.nack`.
    pub nacked: Ranges,
    /// What came back by `basic.return`: no queue would have it.
    pub returned: Ranges,
    /// The longest time between two confirms, one still awaited included.
    pub longest_publish_gap_ms: u64,
}

/// The ledger of the consumers of one queue in one process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Consumed {
    /// The vhost.
    pub vhost: String,
    /// The queue.
    pub queue: String,
    /// How many consumers wrote this ledger; the order of arrivals means something with one.
    pub consumers: usize,
    /// Where messages go that it refuses for good.
    pub dead_letters: Option<String>,
    /// The deliveries of each publisher's messages, in order.
    pub arrivals: BTreeMap<String, Runs>,
    /// Deliveries that the broker may rightly make again, and how often: when a connection closed they were
    /// not acked, or nothing proved yet that the broker had read the ack.
    pub unsettled: BTreeMap<String, Layers>,
    /// Messages that no client of ours wrote.
    pub malformed: u64,
    /// The longest time between two deliveries.
    pub longest_delivery_gap_ms: u64,
}

/// One connection, from open to close.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Which of the process's connections, from 1.
    pub connection: usize,
    /// The index of the cluster in the document's list.
    pub cluster: u32,
    /// RabbitMQ's version.
    pub version: String,
    /// When it was open, in milliseconds since the client's start.
    pub opened_ms: u64,
    /// When it closed, if it did.
    pub closed_ms: Option<u64>,
    /// Why it closed: an AMQP code (`320`) or a word (`reset`, `heartbeat`, `stopped`).
    pub reason: Option<String>,
}

/// A few numbers, cheap to ask for often: the answer to `GET /stats`. Ages and gaps are the worst of its parts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// The client's id.
    pub client: String,
    /// Milliseconds since the client's start.
    pub now_ms: u64,
    /// Is it (still) meant to publish?
    pub publishing: bool,
    /// Messages sent at least once.
    pub attempted: u64,
    /// Messages confirmed.
    pub confirmed: u64,
    /// Messages sent and not confirmed.
    pub in_flight: u64,
    /// Messages that are due and wait for the window or a connection.
    pub behind: u64,
    /// Times that a message was sent again.
    pub resent: u64,
    /// Messages refused by `basic.nack`.
    pub nacked: u64,
    /// Messages that came back unroutable.
    pub returned: u64,
    /// Deliveries.
    pub delivered: u64,
    /// Deliveries refused for good.
    pub rejected: u64,
    /// Deliveries that the broker marked as redelivered.
    pub redelivered: u64,
    /// Time since the last confirm.
    pub last_confirm_age_ms: Option<u64>,
    /// Time since the last delivery.
    pub last_delivery_age_ms: Option<u64>,
    /// The longest time between two confirms since the start or `/reset-gaps`, one still awaited included.
    pub longest_publish_gap_ms: u64,
    /// The longest time between two deliveries since the start or `/reset-gaps`.
    pub longest_delivery_gap_ms: u64,
    /// The longest time from first send to first delivery, by the clocks of both clients.
    pub worst_latency_ms: u64,
    /// How often a connection was opened again.
    pub reconnects: u64,
    /// Failed attempts to connect and closes, by AMQP code or word.
    pub errors: BTreeMap<String, u64>,
    /// The cluster that each connection is on now; `None` while it is closed.
    pub connected_to: Vec<Option<String>>,
    /// The latest connections, the newest last.
    pub sessions: Vec<Session>,
}
