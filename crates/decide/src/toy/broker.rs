//! One broker: users with limits, queues, connections.

use super::{Event, Millis, Settings, Toy};
use crate::effect::QueueRef;
use crate::side::Side;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The main queue.
pub const ORDERS: usize = 0;
/// The queue of the workers.
pub const JOBS: usize = 1;
/// What the workers publish.
pub const RESULTS: usize = 2;
/// What consumers reject: nobody consumes it.
pub const DEAD: usize = 3;
/// A queue without consumers whose TTL returns messages to the workers.
pub const DELAY: usize = 4;
/// The canary's queue, in its own vhost.
pub const CANARY: usize = 5;

/// Names of all queues, by their numbers above.
pub const QUEUES: [&str; 6] = ["orders", "jobs", "results", "dead", "delay", "canary"];

/// How long a message stays in the delay queue.
pub const DELAY_MILLIS: Millis = 2000;
/// Unacked messages that a consumer may have.
const PREFETCH: usize = 5;

/// A copy of a message in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Which copy.
    pub id: u64,
    /// Which message.
    pub message: usize,
}

/// A queue.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// Whether it was declared.
    pub exists: bool,
    /// Whether publishes are routed to it.
    pub bound: bool,
    /// Messages ready, oldest first.
    pub ready: VecDeque<Copied>,
    /// Connections that consume it, in turn.
    pub consumers: VecDeque<u64>,
    /// Its leader does not answer until then.
    pub silent_until: Millis,
    /// Ready and unacked at the last tick: what a listing says.
    pub listed: Option<(u64, u64)>,
}

/// A connection.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The client.
    pub client: usize,
    /// Since when it is open.
    pub opened: Millis,
    /// Messages published on it.
    pub published: u64,
    /// What it was given and did not ack, with the queue.
    pub unacked: BTreeMap<u64, (usize, Copied)>,
    /// When it will be done with what it has.
    pub busy_until: Millis,
}

/// A broker.
#[derive(Clone, Debug, Default)]
pub struct Broker {
    /// Whether its StatefulSet exists.
    pub exists: bool,
    /// Replicas.
    pub replicas: i64,
    /// When each replica is ready, in order.
    pub ready_at: Vec<Millis>,
    /// Digest of the template that it was made from.
    pub template: Option<String>,
    /// Users and their limits.
    pub users: BTreeMap<String, Option<i64>>,
    /// Queues, by number.
    pub queues: Vec<Queue>,
    /// Open connections, by number.
    pub connections: BTreeMap<u64, Connection>,
    /// The operator's own users, by epoch.
    pub epochs: BTreeSet<u32>,
    /// What else of ours is here: vhosts and users.
    pub ours: BTreeSet<String>,
    /// Publishes received.
    pub received: u64,
    /// Publishes dropped since no queue was there.
    pub unroutable: u64,
    /// How often queues were counted in ticks.
    pub ticks: u64,
}

impl Broker {
    /// A broker that runs since long.
    pub fn running(replicas: i64) -> Self {
        let ready_at = (0..replicas).map(|_| 0).collect();
        Self {
            exists: true,
            replicas,
            ready_at,
            queues: vec![Queue::default(); QUEUES.len()],
            ..Self::default()
        }
    }

    /// No broker.
    pub fn absent() -> Self {
        Self { queues: vec![Queue::default(); QUEUES.len()], ..Self::default() }
    }

    /// Users and queues as the applications made them.
    pub fn define(&mut self, settings: &Settings) {
        let users = [("admin", None), ("shop", None), ("billing", Some(50)), ("gone", Some(0))];
        self.users = users.into_iter().map(|(name, limit)| (name.to_owned(), limit)).collect();
        for (index, queue) in self.queues.iter_mut().enumerate() {
            queue.exists = index < DELAY || (index == DELAY && settings.returns);
            queue.bound = queue.exists;
        }
    }

    /// Messages of which a copy is here.
    pub fn held(&self) -> BTreeSet<usize> {
        let ready = self.queues.iter().flat_map(|queue| queue.ready.iter().map(|copy| copy.message));
        let unacked =
            self.connections.values().flat_map(|c| c.unacked.values().map(|(_, copy)| copy.message));
        ready.chain(unacked).collect()
    }

    /// Whether all replicas are up.
    pub fn is_up(&self, now: Millis) -> bool {
        self.exists && self.replicas > 0 && self.ready(now) == self.replicas
    }

    /// Ready replicas.
    pub fn ready(&self, now: Millis) -> i64 {
        i64::try_from(self.ready_at.iter().filter(|at| **at <= now).count()).unwrap_or(0)
    }

    /// Takes the totals that listings will say until the next tick.
    pub fn collect(&mut self) {
        self.ticks = self.ticks.saturating_add(1);
        for index in 0..self.queues.len() {
            let unacked = self.unacked(index);
            if let Some(queue) = self.queues.get_mut(index) {
                let ready = u64::try_from(queue.ready.len()).unwrap_or(u64::MAX);
                queue.listed = queue.exists.then_some((ready, unacked));
            }
        }
    }

    /// Unacked messages of a queue.
    pub fn unacked(&self, queue: usize) -> u64 {
        let count = self
            .connections
            .values()
            .map(|c| c.unacked.values().filter(|(from, _)| *from == queue).count())
            .sum::<usize>();
        u64::try_from(count).unwrap_or(u64::MAX)
    }
}

/// A queue's full name; the canary lives in a vhost of its own.
pub fn queue_ref(toy_vhost: &str, index: usize) -> QueueRef {
    let vhost = if index == CANARY { toy_vhost } else { "/" };
    QueueRef { vhost: vhost.to_owned(), name: QUEUES.get(index).copied().unwrap_or("?").to_owned() }
}

impl Toy {
    /// Puts a new copy of a message into a queue; false where there is no such queue.
    pub(crate) fn enqueue(&mut self, side: Side, queue: usize, message: usize) -> bool {
        let id = self.next_serial();
        let now = self.now;
        let broker = self.brokers.of_mut(side);
        let Some(target) = broker.queues.get_mut(queue).filter(|q| q.exists) else {
            return false;
        };
        target.ready.push_back(Copied { id, message });
        if queue == DELAY {
            self.at(now.saturating_add(DELAY_MILLIS), Event::Expire { side, copy: id });
        }
        self.pump(side, queue);
        true
    }

    /// Gives ready messages to consumers that have room.
    pub(crate) fn pump(&mut self, side: Side, queue: usize) {
        while let Some((connection, copy)) = self.take_next(side, queue) {
            self.deliver(side, queue, connection, copy);
        }
    }

    fn take_next(&mut self, side: Side, queue: usize) -> Option<(u64, Copied)> {
        let now = self.now;
        let broker = self.brokers.of_mut(side);
        let source = broker.queues.get_mut(queue)?;
        if source.silent_until > now || source.ready.is_empty() {
            return None;
        }
        let connections = &broker.connections;
        let room = |id: &u64| connections.get(id).is_some_and(|c| c.unacked.len() < PREFETCH);
        let turn = source.consumers.iter().position(room)?;
        let connection = source.consumers.remove(turn)?;
        source.consumers.push_back(connection);
        source.ready.pop_front().map(|copy| (connection, copy))
    }

    fn deliver(&mut self, side: Side, queue: usize, connection: u64, copy: Copied) {
        self.note_delivery(queue, copy.message);
        let (now, work) = (self.now, self.work_time());
        let Some(open) = self.brokers.of_mut(side).connections.get_mut(&connection) else { return };
        open.busy_until = open.busy_until.max(now).saturating_add(work);
        let (at, id) = (open.busy_until, copy.id);
        open.unacked.insert(id, (queue, copy));
        self.at(at, Event::Done { side, connection, copy: id });
    }

    /// First deliveries must come in their publisher's order.
    fn note_delivery(&mut self, queue: usize, message: usize) {
        let Some(told) = self.truth.messages.get_mut(message) else { return };
        told.delivered = told.delivered.saturating_add(1);
        let (first, publisher, number) = (told.delivered == 1, told.publisher, told.number);
        if !first || told.queue != queue || queue == DELAY {
            return;
        }
        let Some(client) = self.clients.get_mut(publisher) else { return };
        let last = client.seen.entry(queue).or_default();
        if number < *last {
            self.truth.reordered = self.truth.reordered.saturating_add(1);
        }
        *last = (*last).max(number);
    }

    /// A message's time in the delay queue is over: it goes back to the workers.
    pub(crate) fn expire(&mut self, side: Side, copy: u64) {
        let Some(queue) = self.brokers.of_mut(side).queues.get_mut(DELAY) else { return };
        let Some(at) = queue.ready.iter().position(|c| c.id == copy) else { return };
        if let Some(copy) = queue.ready.remove(at) {
            self.enqueue(side, JOBS, copy.message);
        }
    }

    /// Ends a connection: what it had unacked is ready again, in front, in order.
    pub(crate) fn end_connection(&mut self, side: Side, connection: u64) {
        let Some(gone) = self.brokers.of_mut(side).connections.remove(&connection) else { return };
        let mut touched = BTreeSet::new();
        for queue in &mut self.brokers.of_mut(side).queues {
            queue.consumers.retain(|c| *c != connection);
        }
        for (_, (queue, copy)) in gone.unacked.into_iter().rev() {
            touched.insert(queue);
            if let Some(told) = self.truth.messages.get_mut(copy.message) {
                told.explained = true;
            }
            if let Some(queue) = self.brokers.of_mut(side).queues.get_mut(queue) {
                queue.ready.push_front(copy);
            }
        }
        for queue in touched {
            self.pump(side, queue);
        }
    }
}
