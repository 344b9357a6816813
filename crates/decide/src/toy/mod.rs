//! A toy world with honest physics on a virtual clock: two brokers, clients, Services, an operator's body.
//!
//! Product code, reviewed as such: law tests are only as good as the physics here. What it holds to, each fact
//! measured on real brokers:
//! - a limit of 0 refuses new connections; open ones go on; it works at once;
//! - a close ends a connection, what it had unacked is ready again, and its client comes back after a delay
//!   through the Service, to whichever side the selector leads, as seen from his zone;
//! - a close by name does nothing to a connection younger than a second, and little before the fourth;
//! - statistics know a connection after some seconds; totals of a quorum queue lag by up to a tick;
//! - a passive declare is exact where the queue's leader answers, else it says 0 and 0, or nothing;
//! - what is published and not yet confirmed when a connection goes is sent again.
//!
//! Assumes nothing of the brain. Keeps the truth of every message, so that laws can judge.

mod act;
mod body;
mod broker;
mod chance;
mod clients;
mod observe;
mod plan;
mod probe;
mod settings;
mod truth;

pub use act::Fate;
pub use body::{Body, Boundary, Faults, Foreign, Honest, Order, Pass};
pub use broker::{Broker, QUEUES, Queue, queue_ref};
pub use chance::Chance;
pub use clients::{Client, Kind};
pub use observe::every_fact;
pub use plan::plan;
pub use settings::{GateMood, Settings};
pub use truth::{Closing, Message, Refusal, Taken, Truth};

use crate::side::{Pair, Side};
use jiff::Timestamp;
use std::collections::BTreeMap;

/// The field manager of what people write.
pub(crate) const PERSON: &str = "kubectl";

/// Milliseconds since the world began.
pub type Millis = i64;

/// When the world began: any instant will do.
const EPOCH_MILLIS: i64 = 1_767_225_600_000;

/// Something that will happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A client publishes on a connection, if that is still open.
    Publish { client: usize, connection: u64 },
    /// The broker confirms a message on a connection.
    Confirm { client: usize, connection: u64, message: usize },
    /// A consumer is done with a delivery.
    Done { side: Side, connection: u64, copy: u64 },
    /// A client tries to connect.
    Connect(usize),
    /// A client hangs up by itself.
    HangUp { client: usize, connection: u64 },
    /// A message's time in the delay queue is over.
    Expire { side: Side, copy: u64 },
    /// A silent leader speaks again.
    Wake { side: Side, queue: usize },
    /// Totals of a side's queues are collected.
    Collect(Side),
    /// Somebody makes a user, and a client that uses it.
    NewUser,
}

/// The world.
#[derive(Clone, Debug)]
pub struct Toy {
    /// How it was made.
    pub settings: Settings,
    /// Now.
    pub now: Millis,
    /// The brokers.
    pub brokers: Pair<Broker>,
    /// The clients.
    pub clients: Vec<Client>,
    /// The moved Services: the history of their selectors' sides, oldest first; `None` selects nobody.
    pub services: Vec<Vec<(Millis, Option<Side>)>>,
    /// Who owns each Service's selector.
    pub managers: Vec<String>,
    /// Other migrations of the namespace.
    pub others: Vec<crate::world::OtherMigration>,
    /// The stored SwitchRecord.
    pub record: Option<crate::record::SwitchRecord>,
    /// What is true, whatever anybody sees.
    pub truth: Truth,
    /// What the operator's process holds in memory: gone with it.
    pub process: Process,
    /// What the probe stored, which outlives the process.
    pub evidence: probe::Store,
    /// Chance of the world itself.
    pub chance: Chance,
    events: BTreeMap<(Millis, u64), Event>,
    serial: u64,
}

/// What the operator's process holds in memory.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Which leadership this is.
    pub epoch: u32,
    /// Whether the rehearsal was done, and refused.
    pub rehearsal: Option<bool>,
    /// Digest of the definitions that were imported.
    pub imported: Option<String>,
    /// Why the last import failed.
    pub import_error: Option<String>,
    /// Since when the probe runs.
    pub probe_since: Option<Millis>,
    /// The canary's clients, while it runs: publisher and consumer.
    pub canary: Vec<usize>,
    /// Sides on which our epoch's password is known.
    pub established: Pair<bool>,
    /// What the body counted.
    pub progress: crate::world::Progress,
}

impl Toy {
    /// A world as its settings say, just before the migration is made.
    pub fn new(settings: Settings) -> Self {
        let mut toy = Self {
            now: 0,
            brokers: Pair { blue: Broker::running(3), green: Broker::absent() },
            clients: Vec::new(),
            services: vec![vec![(-60_000, Some(Side::Blue))]; settings.services.max(1)],
            managers: vec!["helm".to_owned(); settings.services.max(1)],
            others: Vec::new(),
            record: None,
            truth: Truth::default(),
            process: Process { epoch: 1, ..Process::default() },
            evidence: probe::Store::default(),
            chance: Chance::new(settings.seed),
            events: BTreeMap::new(),
            serial: 0,
            settings,
        };
        toy.brokers.blue.define(&toy.settings);
        toy.populate();
        toy.at(5000, Event::Collect(Side::Blue));
        toy.at(5000, Event::Collect(Side::Green));
        if toy.settings.new_user_at > 0 {
            let at = toy.settings.new_user_at;
            toy.at(at, Event::NewUser);
        }
        toy
    }

    /// Now, as a timestamp.
    pub fn timestamp(&self) -> Timestamp {
        stamp(self.now)
    }

    /// Lets time pass; what is due happens in order.
    pub fn advance(&mut self, millis: Millis) {
        let until = self.now.saturating_add(millis.max(0));
        while let Some((at, serial)) = self.events.keys().next().copied()
            && at <= until
        {
            self.now = self.now.max(at);
            if let Some(event) = self.events.remove(&(at, serial)) {
                self.happen(&event);
            }
        }
        self.now = until;
    }

    /// The side that a Service's selector leads to, in truth.
    pub fn selected(&self, service: usize) -> Option<Side> {
        self.services.get(service).and_then(|history| history.last()).and_then(|(_, side)| *side)
    }

    /// The side that a Service leads to as seen from a zone: kube-proxy follows late.
    pub fn route(&self, service: usize, zone: usize) -> Option<Side> {
        let lag = self.settings.zone_lag.get(zone).copied().unwrap_or(0);
        let history = self.services.get(service)?;
        let seen = history.iter().rev().find(|(at, _)| at.saturating_add(lag) <= self.now);
        seen.or_else(|| history.first()).and_then(|(_, side)| *side)
    }

    /// Somebody else writes a Service's selector: an older manifest is applied, or a controller corrects it.
    pub fn take(&mut self, service: usize, side: Side, by: &str) {
        let at = self.now;
        let found = self.services.get_mut(service).zip(self.managers.get_mut(service));
        let Some((history, manager)) = found else { return };
        history.push((at, Some(side)));
        by.clone_into(manager);
        self.truth.taken.push(Taken { at, service });
    }

    /// A person lets every Service lead to `side`.
    pub fn settle(&mut self, side: Side) {
        for (history, manager) in self.services.iter_mut().zip(&mut self.managers) {
            if history.last().is_none_or(|(_, leads)| *leads != Some(side)) {
                history.push((self.now, Some(side)));
                PERSON.clone_into(manager);
            }
        }
    }

    /// Somebody takes a binding of the main queue away from a side, or brings it back.
    pub fn bind(&mut self, side: Side, bound: bool) {
        self.truth.unbound = true;
        if let Some(queue) = self.brokers.of_mut(side).queues.get_mut(broker::ORDERS) {
            queue.bound = bound;
        }
        if bound {
            self.truth.dropping_since = None;
        }
    }

    /// When somebody else wrote the selector that a Service has at `at`; `None` where he did not.
    pub fn taken_at(&self, service: usize, at: Millis) -> Option<Millis> {
        let (written, _) = self.services.get(service)?.iter().rev().find(|(since, _)| *since <= at)?;
        self.truth.taken.iter().any(|t| t.service == service && t.at == *written).then_some(*written)
    }

    /// The operator's process dies and another begins: its memory is lost, its connections close.
    pub fn restart_operator(&mut self) {
        for canary in self.process.canary.clone() {
            self.retire_client(canary);
        }
        let epoch = self.process.epoch.saturating_add(1);
        self.process = Process { epoch, ..Process::default() };
    }

    pub(crate) fn at(&mut self, at: Millis, event: Event) {
        self.serial = self.serial.saturating_add(1);
        self.events.insert((at.max(self.now), self.serial), event);
    }

    pub(crate) const fn next_serial(&mut self) -> u64 {
        self.serial = self.serial.saturating_add(1);
        self.serial
    }

    fn happen(&mut self, event: &Event) {
        match *event {
            Event::Publish { client, connection } => self.publish_next(client, connection),
            Event::Confirm { client, connection, message } => self.confirm(client, connection, message),
            Event::Done { side, connection, copy } => self.done(side, connection, copy),
            Event::Connect(client) => self.connect(client),
            Event::HangUp { client, connection } => self.hang_up(client, connection),
            Event::Expire { side, copy } => self.expire(side, copy),
            Event::Wake { side, queue } => self.pump(side, queue),
            Event::Collect(side) => {
                self.brokers.of_mut(side).collect();
                self.at(self.now.saturating_add(5000), Event::Collect(side));
            }
            Event::NewUser => self.new_user(),
        }
    }
}

/// A time of the world as a timestamp.
pub fn stamp(millis: Millis) -> Timestamp {
    Timestamp::from_millisecond(EPOCH_MILLIS.saturating_add(millis)).unwrap_or_default()
}
