//! How many messages a queue has ready: passive declare, and basic.get where that proves nothing.

use std::time::{Duration, Instant};

use futures::StreamExt;
use lapin::Channel;
use lapin::options::{
    BasicCancelOptions, BasicConsumeOptions, BasicGetOptions, BasicQosOptions, QueueDeclareOptions,
};
use lapin::types::FieldTable;

use super::session::{Session, cause_of, short, within};
use crate::error::{Cause, Error, Result};

/// Passive declares in flight on one session. 8: a declare takes 0.5 ms, so the wire is the limit.
const PARALLEL: usize = 8;

/// Reply code of a queue that may not be got from: exclusive, or a quorum queue with single active consumer.
pub(super) const LOCKED: u16 = 405;

/// How long a consumer waits for its first message. 200 ms: the leader has answered already, the message
/// follows at once; a busy machine takes some milliseconds.
pub(super) const FIRST_DELIVERY: Duration = Duration::from_millis(200);

/// What a passive declare says: exact, but **0 and 0 is also what a quorum queue says whose leader does not
/// answer**. Never counts unacked messages or pollers, nor what a shovel holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth {
    /// Messages that can be delivered.
    pub ready: u32,
    /// Consumers; a local query at the recorded leader.
    pub consumers: u32,
}

/// What a basic.get says; the leader has to process it, so an empty answer is proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// The leader answered that nothing is ready.
    Empty,
    /// A message was got and given back; so many more were ready behind it.
    Message {
        /// Ready messages behind the one got.
        behind: u32,
    },
    /// A single active consumer is being served, so nobody else can tell: ask after it has gone.
    Taken,
    /// Nobody answered in time: unknown.
    NoAnswer,
}

impl Session {
    /// Measures one queue by passive declare, on a channel of its own since a 404 closes it. Needs access to
    /// the vhost (3.x and 4.x ask no permission for a passive declare); changes nothing.
    pub async fn depth(&self, queue: &str) -> Result<Depth> {
        self.passive_declare(queue).await.map_err(|cause| Error::Queue {
            attempt: "measure",
            queue: queue.to_owned(),
            cause,
        })
    }

    /// Measures many queues at once; answers in the order asked, each failing alone.
    pub async fn depths(&self, queues: &[String]) -> Vec<Result<Depth>> {
        futures::stream::iter(queues).map(|queue| self.depth(queue)).buffered(PARALLEL).collect().await
    }

    async fn passive_declare(&self, queue: &str) -> Result<Depth, Cause> {
        let options = QueueDeclareOptions::default().passive();
        let channel = self.channel().await?;
        let declare = channel.queue_declare(short(queue)?, options, FieldTable::default());
        let answer = within(self.timeout(), declare).await?;
        let depth = Depth { ready: answer.message_count(), consumers: answer.consumer_count() };
        self.put_back(channel);
        Ok(depth)
    }

    /// Gets one message and gives it back. Needs read permission. A message got this way keeps its place, but
    /// comes back redelivered, and on a quorum queue counts one delivery towards its limit; a cut gives it
    /// back too. Not for streams.
    ///
    /// Quorum queues with a single active consumer refuse basic.get: there a consumer of our own is attached
    /// for a moment, and *empty* means that the leader took it, there was no other, and it got nothing.
    pub async fn get_probe_empty(&self, queue: &str) -> Result<Probe> {
        let probe = match self.get_and_return(queue).await {
            Err(Cause::Amqp { code: LOCKED, .. }) => self.consume_and_return(queue).await,
            other => other,
        };
        match probe {
            Ok(probe) => Ok(probe),
            Err(Cause::Timeout(_)) => Ok(Probe::NoAnswer),
            Err(cause) => Err(Error::Queue { attempt: "get from", queue: queue.to_owned(), cause }),
        }
    }

    async fn get_and_return(&self, queue: &str) -> Result<Probe, Cause> {
        let channel = self.channel().await?;
        let get = channel.basic_get(short(queue)?, BasicGetOptions::default());
        let Some(message) = within(self.timeout(), get).await? else {
            self.put_back(channel);
            return Ok(Probe::Empty);
        };
        self.give_back(&channel, queue, message.message_count).await?;
        Ok(Probe::Message { behind: message.message_count })
    }

    async fn consume_and_return(&self, queue: &str) -> Result<Probe, Cause> {
        // Such a queue counts its active consumer only: once ours is attached nobody can tell whose it is.
        if self.passive_declare(queue).await?.consumers > 0 {
            return Ok(Probe::Taken);
        }
        let channel = self.channel().await?;
        within(self.timeout(), channel.basic_qos(1, BasicQosOptions::default())).await?;
        let options = BasicConsumeOptions::default();
        let consume = channel.basic_consume(short(queue)?, "".into(), options, FieldTable::default());
        let mut consumer = within(self.timeout(), consume).await?;
        let first = tokio::time::timeout(FIRST_DELIVERY, consumer.next()).await;
        let depth = self.passive_declare(queue).await?;
        // Cancelled first, so that nobody counts our consumer any more.
        within(self.timeout(), channel.basic_cancel(consumer.tag(), BasicCancelOptions::default())).await?;
        self.give_back(&channel, queue, depth.ready).await?;
        Ok(match (first, depth) {
            (Ok(Some(Ok(_))), Depth { ready, .. }) => Probe::Message { behind: ready },
            (Ok(Some(Err(error))), _) => return Err(cause_of(&error)),
            (Err(_), Depth { ready: 0, consumers: 1.. }) => Probe::Empty,
            _ => Probe::NoAnswer,
        })
    }

    /// Gives unacked messages back to their place, by closing their channel: a nack would send them to the end
    /// of a quorum queue (3.10.8). Waits a little until they are ready again, so that the next reader does not
    /// overtake them.
    async fn give_back(&self, channel: &Channel, queue: &str, behind: u32) -> Result<(), Cause> {
        within(self.timeout(), channel.close(200, "probed".into())).await?;
        let given_up = Instant::now() + FIRST_DELIVERY;
        while self.passive_declare(queue).await?.ready <= behind && Instant::now() < given_up {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }
}
