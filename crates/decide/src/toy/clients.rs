//! Clients: they publish and consume while connected, come back when closed, and send again what was not
//! confirmed.

use super::broker::{CANARY, Connection, DEAD, DELAY, JOBS, ORDERS, RESULTS};
use super::{Event, Message, Millis, Refusal, Toy};
use crate::side::Side;
use std::collections::BTreeMap;

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It publishes to a queue.
    Publisher(usize),
    /// It connects, publishes one message to a queue, waits for the confirm and hangs up.
    Visitor(usize),
    /// It consumes a queue.
    Consumer(usize),
    /// It consumes jobs and publishes results, on one connection.
    Worker,
    /// It owns an exclusive queue and hears what is broadcast.
    Subscriber,
    /// The publishing half of our canary.
    CanaryPublisher,
    /// The consuming half of our canary.
    CanaryConsumer,
}

/// A client.
#[derive(Clone, Debug)]
pub struct Client {
    /// What it does.
    pub kind: Kind,
    /// Its user.
    pub user: String,
    /// The Service that it uses.
    pub service: usize,
    /// Whether it goes straight to blue.
    pub straight: bool,
    /// The zone that it runs in.
    pub zone: usize,
    /// How long it waits before it connects again.
    pub delay: Millis,
    /// Where it is connected.
    pub online: Option<(Side, u64)>,
    /// What it published and was not told about.
    pub unconfirmed: Vec<usize>,
    /// How many messages it published to each queue.
    pub numbers: BTreeMap<usize, u64>,
    /// The highest number of its messages that was delivered first, by queue.
    pub seen: BTreeMap<usize, u64>,
    /// Between two publishes.
    pub interval: Millis,
    /// Whether it is gone for good.
    pub gone: bool,
}

impl Client {
    const fn publishes_to(&self) -> Option<usize> {
        match self.kind {
            Kind::Publisher(queue) | Kind::Visitor(queue) => Some(queue),
            Kind::CanaryPublisher => Some(CANARY),
            Kind::Consumer(_) | Kind::Worker | Kind::Subscriber | Kind::CanaryConsumer => None,
        }
    }

    const fn consumes(&self) -> Option<usize> {
        match self.kind {
            Kind::Consumer(queue) => Some(queue),
            Kind::Worker => Some(JOBS),
            Kind::CanaryConsumer => Some(CANARY),
            Kind::Publisher(_) | Kind::Visitor(_) | Kind::Subscriber | Kind::CanaryPublisher => None,
        }
    }
}

impl Toy {
    /// The clients of a world, connecting at once.
    pub(crate) fn populate(&mut self) {
        let (consumers, workers) = (self.settings.consumers, self.settings.workers);
        let mut kinds = vec![
            (Kind::Publisher(ORDERS), "shop"),
            (Kind::Publisher(ORDERS), "shop"),
            (Kind::Publisher(JOBS), "billing"),
            (Kind::Visitor(ORDERS), "shop"),
            (Kind::Consumer(RESULTS), "billing"),
            (Kind::Subscriber, "shop"),
        ];
        kinds.extend((0..consumers).map(|_| (Kind::Consumer(ORDERS), "shop")));
        kinds.extend((0..workers).map(|_| (Kind::Worker, "billing")));
        for (kind, user) in kinds {
            self.add_client(kind, user);
        }
        if self.settings.straight {
            let straight = self.add_client(Kind::Publisher(ORDERS), "admin");
            if let Some(client) = self.clients.get_mut(straight) {
                client.straight = true;
            }
        }
        for number in 0..self.settings.backlog {
            let number = u64::try_from(number).unwrap_or(u64::MAX);
            let message = self.write_message(0, ORDERS, number);
            if let Some(told) = self.truth.messages.get_mut(message) {
                told.confirmed = true;
            }
            self.enqueue(Side::Blue, ORDERS, message);
        }
        if let Some(first) = self.clients.first_mut() {
            first.numbers.insert(ORDERS, u64::try_from(self.settings.backlog).unwrap_or(u64::MAX));
        }
    }

    /// A new client that connects at once.
    pub(crate) fn add_client(&mut self, kind: Kind, user: &str) -> usize {
        let index = self.clients.len();
        let services = u64::try_from(self.services.len()).unwrap_or(1);
        let interval = match kind {
            Kind::CanaryPublisher => 200,
            Kind::Visitor(_) => self.chance.between(1500, 4000),
            _ => self.chance.between(150, 900),
        };
        self.clients.push(Client {
            kind,
            user: user.to_owned(),
            service: usize::try_from(self.chance.below(services)).unwrap_or(0),
            straight: false,
            zone: usize::try_from(self.chance.below(3)).unwrap_or(0),
            delay: self.chance.between(20, 400),
            online: None,
            unconfirmed: Vec::new(),
            numbers: BTreeMap::new(),
            seen: BTreeMap::new(),
            interval,
            gone: false,
        });
        let soon = self.now.saturating_add(self.chance.between(0, 50));
        self.at(soon, Event::Connect(index));
        index
    }

    /// A client goes for good.
    pub(crate) fn retire_client(&mut self, index: usize) {
        let Some(client) = self.clients.get_mut(index) else { return };
        client.gone = true;
        // What the operator's own canary did not hear of is nobody's promise.
        let unconfirmed = std::mem::take(&mut client.unconfirmed);
        if let Some((side, connection)) = client.online.take() {
            self.end_connection(side, connection);
        }
        for message in unconfirmed {
            if let Some(told) = self.truth.messages.get_mut(message) {
                told.explained = true;
            }
        }
    }

    /// Somebody makes a user on the side that serves, and a client of his.
    pub(crate) fn new_user(&mut self) {
        let Some(side) = self.selected(0) else { return };
        self.brokers.of_mut(side).users.insert("v-token".to_owned(), None);
        self.truth.user_made = Some((self.now, side));
        self.add_client(Kind::Publisher(ORDERS), "v-token");
    }

    /// Tries to connect: through the Service to whichever side it leads to, or straight to blue.
    pub(crate) fn connect(&mut self, index: usize) {
        let Some(client) = self.clients.get(index).filter(|c| !c.gone && c.online.is_none()) else { return };
        let (straight, service, zone, delay) = (client.straight, client.service, client.zone, client.delay);
        let (user, kind) = (client.user.clone(), client.kind);
        let side = if straight { Some(Side::Blue) } else { self.route(service, zone) };
        let again = self.now.saturating_add(delay);
        let Some(side) = side.filter(|side| self.brokers.of(*side).is_up(self.now)) else {
            self.at(again, Event::Connect(index));
            return;
        };
        if !self.lets_in(side, &user) {
            let selected = if straight { None } else { self.selected(service) };
            self.truth.refusals.push(Refusal { at: self.now, client: index, side, selected, straight });
            self.at(again, Event::Connect(index));
            return;
        }
        let id = self.next_serial();
        let connection = Connection {
            client: index,
            opened: self.now,
            published: 0,
            unacked: BTreeMap::new(),
            busy_until: self.now,
        };
        self.brokers.of_mut(side).connections.insert(id, connection);
        if let Some(client) = self.clients.get_mut(index) {
            client.online = Some((side, id));
        }
        self.begin(index, side, id, kind);
    }

    /// A connected client begins: it sends again what was not confirmed, and consumes.
    fn begin(&mut self, index: usize, side: Side, id: u64, kind: Kind) {
        let unconfirmed = self.clients.get(index).map(|c| c.unconfirmed.clone()).unwrap_or_default();
        for message in unconfirmed {
            if let Some(told) = self.truth.messages.get_mut(message) {
                told.explained = true;
            }
            self.send(index, side, id, message);
        }
        let queue = self.clients.get(index).and_then(Client::consumes);
        if let Some(queue) = queue
            && let Some(found) = self.brokers.of_mut(side).queues.get_mut(queue)
        {
            found.consumers.push_back(id);
            self.pump(side, queue);
        }
        // Programs of publishers are restarted now and then.
        if matches!(kind, Kind::Publisher(_)) && self.chance.one_in(2) {
            let at = self.now.saturating_add(self.chance.between(3000, 40_000));
            self.at(at, Event::HangUp { client: index, connection: id });
        }
        if self.clients.get(index).and_then(Client::publishes_to).is_some() {
            let soon = if matches!(kind, Kind::Visitor(_)) { 5 } else { self.chance.between(5, 100) };
            self.at(self.now.saturating_add(soon), Event::Publish { client: index, connection: id });
        }
    }

    fn lets_in(&self, side: Side, user: &str) -> bool {
        match self.brokers.of(side).users.get(user) {
            Some(None) => true,
            Some(Some(limit)) => {
                let of_user = |c: &&Connection| self.clients.get(c.client).is_some_and(|o| o.user == user);
                let open = self.brokers.of(side).connections.values().filter(of_user).count();
                i64::try_from(open).is_ok_and(|open| open < *limit)
            }
            None => false,
        }
    }

    /// A client's next message, if that connection is still open; on another one it begins anew.
    pub(crate) fn publish_next(&mut self, index: usize, connection: u64) {
        let Some(client) = self.clients.get_mut(index).filter(|c| !c.gone) else { return };
        let (Some((side, id)), Some(queue)) = (client.online, client.publishes_to()) else { return };
        if id != connection {
            return;
        }
        let (kind, interval) = (client.kind, client.interval);
        let bursts =
            matches!(kind, Kind::Publisher(ORDERS)) && self.settings.burst > 0 && self.chance.one_in(15);
        for _ in 0..if bursts { self.settings.burst } else { 1 } {
            self.publish_one(index, queue, side, id);
        }
        if queue == ORDERS {
            self.broadcast(side);
        }
        // A reply to somebody who is gone.
        if self.settings.replies && self.chance.one_in(4) {
            let broker = self.brokers.of_mut(side);
            broker.unroutable = broker.unroutable.saturating_add(1);
        }
        if !matches!(kind, Kind::Visitor(_)) {
            let next = self.now.saturating_add(self.chance.between(interval / 2, interval));
            self.at(next, Event::Publish { client: index, connection });
        }
    }

    fn publish_one(&mut self, index: usize, queue: usize, side: Side, id: u64) {
        let Some(client) = self.clients.get_mut(index) else { return };
        let number = client.numbers.entry(queue).or_default();
        let this = *number;
        *number = number.saturating_add(1);
        let message = self.write_message(index, queue, this);
        if let Some(client) = self.clients.get_mut(index) {
            client.unconfirmed.push(message);
        }
        self.send(index, side, id, message);
    }

    fn write_message(&mut self, publisher: usize, queue: usize, number: u64) -> usize {
        let (confirmed, explained, acked, delivered) = (false, false, 0, 0);
        self.truth.messages.push(Message {
            publisher,
            queue,
            number,
            confirmed,
            explained,
            acked,
            delivered,
        });
        self.truth.messages.len().saturating_sub(1)
    }

    fn send(&mut self, index: usize, side: Side, id: u64, message: usize) {
        let queue = self.truth.messages.get(message).map_or(ORDERS, |m| m.queue);
        let silent = self.brokers.of(side).queues.get(queue).map_or(0, |q| q.silent_until);
        let broker = self.brokers.of_mut(side);
        broker.received = broker.received.saturating_add(1);
        if let Some(connection) = broker.connections.get_mut(&id) {
            connection.published = connection.published.saturating_add(1);
        }
        // A broker confirms what it could not route, too.
        let bound = self.brokers.of(side).queues.get(queue).is_some_and(|queue| queue.bound);
        if !bound || !self.enqueue(side, queue, message) {
            self.note_drop(side, message);
            self.truth.unroutable = self.truth.unroutable.saturating_add(1);
            let broker = self.brokers.of_mut(side);
            broker.unroutable = broker.unroutable.saturating_add(1);
        }
        let at = self.now.max(silent).saturating_add(self.chance.between(2, 20));
        self.at(at, Event::Confirm { client: index, connection: id, message });
    }

    /// Subscribers that sit on the other side miss what is broadcast on this one.
    fn broadcast(&mut self, side: Side) {
        let elsewhere = self
            .clients
            .iter()
            .filter(|c| c.kind == Kind::Subscriber && c.online.is_some_and(|(there, _)| there != side));
        let missed = u64::try_from(elsewhere.count()).unwrap_or(u64::MAX);
        self.truth.missed = self.truth.missed.saturating_add(missed);
    }

    /// A confirm comes, unless the connection is gone.
    pub(crate) fn confirm(&mut self, index: usize, connection: u64, message: usize) {
        let Some(client) = self.clients.get_mut(index) else { return };
        if client.online.map(|(_, id)| id) != Some(connection) {
            return;
        }
        client.unconfirmed.retain(|m| *m != message);
        let leaves = matches!(client.kind, Kind::Visitor(_)) && client.unconfirmed.is_empty();
        if let Some(told) = self.truth.messages.get_mut(message) {
            told.confirmed = true;
        }
        if leaves {
            let soon = self.now.saturating_add(self.chance.between(0, 30));
            self.at(soon, Event::HangUp { client: index, connection });
        }
    }

    /// A client hangs up by itself; a visitor comes again after his interval.
    pub(crate) fn hang_up(&mut self, index: usize, connection: u64) {
        let Some(client) = self.clients.get_mut(index) else { return };
        let Some((side, id)) = client.online.filter(|(_, id)| *id == connection) else { return };
        client.online = None;
        let again = self.now.saturating_add(client.interval);
        self.end_connection(side, id);
        self.at(again, Event::Connect(index));
    }

    /// The operator closes a connection: its client comes back after its delay.
    pub(crate) fn close_connection(&mut self, side: Side, id: u64) {
        let Some(connection) = self.brokers.of(side).connections.get(&id) else { return };
        let index = connection.client;
        self.end_connection(side, id);
        self.truth.closed = self.truth.closed.saturating_add(1);
        let Some(client) = self.clients.get_mut(index) else { return };
        client.online = None;
        let again = self.now.saturating_add(client.delay);
        self.at(again, Event::Connect(index));
    }

    /// A consumer is done with a delivery: it acks or rejects it; a worker publishes a result first.
    pub(crate) fn done(&mut self, side: Side, connection: u64, copy: u64) {
        let Some(open) = self.brokers.of_mut(side).connections.get_mut(&connection) else { return };
        let Some((queue, copy)) = open.unacked.remove(&copy) else { return };
        let index = open.client;
        if queue == ORDERS && self.chance.one_in(40) {
            self.enqueue(side, DEAD, copy.message);
        } else if let Some(told) = self.truth.messages.get_mut(copy.message) {
            told.acked = told.acked.saturating_add(1);
        }
        if queue == JOBS {
            self.finish_job(index, side, connection);
        }
        self.pump(side, queue);
    }

    fn finish_job(&mut self, index: usize, side: Side, connection: u64) {
        let again = self.settings.returns && self.chance.one_in(12);
        let queue = if again { DELAY } else { RESULTS };
        let Some(client) = self.clients.get_mut(index) else { return };
        let number = client.numbers.entry(queue).or_default();
        let this = *number;
        *number = number.saturating_add(1);
        let message = self.write_message(index, queue, this);
        if let Some(told) = self.truth.messages.get_mut(message) {
            told.confirmed = true;
        }
        let broker = self.brokers.of_mut(side);
        broker.received = broker.received.saturating_add(1);
        if let Some(open) = broker.connections.get_mut(&connection) {
            open.published = open.published.saturating_add(1);
        }
        self.enqueue(side, queue, message);
    }

    /// How long one message keeps a consumer busy.
    pub(crate) fn work_time(&mut self) -> Millis {
        let work = self.settings.work;
        self.chance.between(work / 2, work)
    }
}
