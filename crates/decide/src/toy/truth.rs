//! What is true, whatever anybody sees: every message, every refusal, every close.

use super::broker::{CANARY, DEAD};
use super::observe::connection_number;
use super::{Kind, Millis, Toy};
use crate::side::Side;
use std::collections::BTreeSet;

/// A message, whatever copies of it there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The client that published it.
    pub publisher: usize,
    /// The queue it was published to.
    pub queue: usize,
    /// Its number among those of this publisher to this queue.
    pub number: u64,
    /// Whether the publisher knows that the broker has it.
    pub confirmed: bool,
    /// Whether a delivery may be repeated for a reason that the promise names: it was unconfirmed or unacked
    /// at a close, or on its way when a carry was cut.
    pub explained: bool,
    /// How often a consumer acked it.
    pub acked: u32,
    /// How often it was delivered.
    pub delivered: u32,
}

/// A client that was refused by a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// When.
    pub at: Millis,
    /// Who.
    pub client: usize,
    /// On which side.
    pub side: Side,
    /// Where his Service's selector led at that time.
    pub selected: Option<Side>,
    /// Whether he goes past the Services.
    pub straight: bool,
}

/// A Service that somebody else took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// When.
    pub at: Millis,
    /// Which.
    pub service: usize,
}

/// What is true of a side at the moment in which connections are closed there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closing {
    /// Consumers of applications among those that are closed.
    pub consumers: usize,
    /// Messages ready in queues that somebody consumes: what nobody consumes is carried.
    pub ready: usize,
    /// Publishers of applications that are connected there.
    pub publishers: usize,
}

/// The truth.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    /// All messages.
    pub messages: Vec<Message>,
    /// All refusals.
    pub refusals: Vec<Refusal>,
    /// When somebody else took a Service.
    pub taken: Vec<Taken>,
    /// Connections that the operator closed.
    pub closed: u64,
    /// Messages that came out of their publisher's order at their first delivery.
    pub reordered: u64,
    /// Messages that nobody may publish any more since no queue was there.
    pub unroutable: u64,
    /// When somebody made a user, and where.
    pub user_made: Option<(Millis, Side)>,
    /// Whether somebody took a binding away: nobody but he loses what is dropped then.
    pub unbound: bool,
    /// Those messages.
    pub dropped: BTreeSet<usize>,
    /// Since when green drops messages for want of a binding that blue has.
    pub dropping_since: Option<Millis>,
    /// Messages that the operator carried.
    pub carried: u64,
    /// Broadcasts published on one side while a subscriber sat on the other.
    pub missed: u64,
    /// When a green that had served was removed.
    pub removed_serving_green: bool,
    /// Messages that were on blue when it was scaled to zero.
    pub scaled_with: Option<usize>,
}

impl Toy {
    /// Confirmed messages of applications that were never acked and of which no copy is left anywhere.
    pub fn lost(&self) -> Vec<usize> {
        let alive = self.alive(None);
        let lost = self.unacked_messages().filter(|id| !alive.contains(id));
        lost.filter(|id| !self.truth.dropped.contains(id)).collect()
    }

    /// Notes that a message was dropped on a side for want of a binding that somebody took away.
    pub(crate) fn note_drop(&mut self, side: Side, message: usize) {
        if self.truth.unbound {
            self.truth.dropped.insert(message);
            if side == Side::Green {
                self.truth.dropping_since.get_or_insert(self.now);
            }
        }
    }

    /// Confirmed messages that were never acked and whose only copies are on `side`. Who goes straight to blue
    /// after the switch has been named and let go: his later messages are where he wants them.
    pub fn stranded(&self, side: Side) -> Vec<usize> {
        let (there, elsewhere) = (self.alive(Some(side)), self.alive(Some(side.other())));
        let stranded = self.unacked_messages().filter(|id| there.contains(id) && !elsewhere.contains(id));
        stranded.filter(|id| !self.is_straight(*id)).collect()
    }

    /// Messages delivered twice for no reason that the promise names.
    pub fn unexplained(&self) -> Vec<usize> {
        let twice = self.truth.messages.iter().enumerate().filter(|(_, m)| m.acked > 1 && !m.explained);
        twice.map(|(id, _)| id).collect()
    }

    /// What is true now that these connections are to be closed.
    pub fn closing(&self, side: Side, names: &[String]) -> Closing {
        let broker = self.brokers.of(side);
        let kind = |client: usize| self.clients.get(client).map(|client| client.kind);
        let consumes = |kind: Option<Kind>| matches!(kind, Some(Kind::Consumer(_) | Kind::Worker));
        let publishes = |kind: Option<Kind>| matches!(kind, Some(Kind::Publisher(_) | Kind::Visitor(_)));
        let closed = names.iter().filter_map(|name| connection_number(name));
        let closed = closed.filter_map(|id| broker.connections.get(&id));
        let busy = broker.queues.iter().take(DEAD).filter(|queue| !queue.consumers.is_empty());
        Closing {
            consumers: closed.filter(|c| consumes(kind(c.client))).count(),
            ready: busy.map(|queue| queue.ready.len()).sum(),
            publishers: broker.connections.values().filter(|c| publishes(kind(c.client))).count(),
        }
    }

    /// Messages that lie on a side.
    pub fn held(&self, side: Side) -> usize {
        self.alive(Some(side)).len()
    }

    fn is_straight(&self, message: usize) -> bool {
        let publisher = self.truth.messages.get(message).map(|told| told.publisher);
        publisher.and_then(|index| self.clients.get(index)).is_some_and(|client| client.straight)
    }

    fn unacked_messages(&self) -> impl Iterator<Item = usize> {
        let open = self
            .truth
            .messages
            .iter()
            .enumerate()
            .filter(|(_, m)| m.confirmed && m.acked == 0 && m.queue != CANARY);
        open.map(|(id, _)| id)
    }

    fn alive(&self, side: Option<Side>) -> BTreeSet<usize> {
        let sides = Side::BOTH.into_iter().filter(|s| side.is_none_or(|wanted| wanted == *s));
        sides.flat_map(|side| self.brokers.of(side).held()).collect()
    }
}
