//! The consuming half of a connection: records each delivery, works, acks. I/O.

use std::time::Duration;

use futures::StreamExt;
use lapin::message::Delivery;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions, BasicRejectOptions};
use lapin::types::{FieldTable, ShortString};
use lapin::{Channel, Consumer};

use crate::consumer_book::{ConsumerBook, Unproven};
use crate::hub::{Clock, Shared, wall_micros};
use crate::message::decode;
use crate::reason::Down;
use crate::runs::Flags;

/// A consumer; it outlives its connections.
#[derive(Debug)]
pub struct Consume {
    /// Its memory, shared with the other consumers of this queue in this process.
    pub book: Shared<ConsumerBook>,
    /// The time.
    pub clock: Clock,
    /// The queue.
    pub queue: ShortString,
    /// The consumer tag.
    pub tag: ShortString,
    /// How many deliveries may be unacked.
    pub prefetch: u16,
    /// How long the work on a message takes.
    pub work: Duration,
    /// Refuses every message for good whose number can be divided by this.
    pub reject_every: Option<u64>,
}

impl Consume {
    /// Consumes until the connection is over; `cluster` is the index of the cluster at its other end.
    pub async fn run(&self, channel: &Channel, cluster: u32, down: &Down) -> lapin::Result<()> {
        channel.basic_qos(self.prefetch, BasicQosOptions::default()).await?;
        let options = BasicConsumeOptions::default();
        let consumer = channel
            .basic_consume(self.queue.clone(), self.tag.clone(), options, FieldTable::default())
            .await?;
        let mut unproven = Unproven::new(self.prefetch);
        let outcome = self.pump(consumer, cluster, down, &mut unproven).await;
        self.book.with(|book| book.closed(unproven));
        outcome
    }

    async fn pump(
        &self,
        mut consumer: Consumer,
        cluster: u32,
        down: &Down,
        unproven: &mut Unproven,
    ) -> lapin::Result<()> {
        loop {
            tokio::select! {
                biased;
                () = down.wait() => return Ok(()),
                delivery = consumer.next() => {
                    let Some(delivery) = delivery else {
                        down.fail("cancelled".to_owned());
                        return Ok(());
                    };
                    self.handle(delivery?, cluster, unproven).await?;
                }
            }
        }
    }

    async fn handle(&self, delivery: Delivery, cluster: u32, unproven: &mut Unproven) -> lapin::Result<()> {
        let rejected = self.record(&delivery, cluster, unproven);
        if !self.work.is_zero() {
            tokio::time::sleep(self.work).await;
        }
        // False means that the connection ended meanwhile; the next turn of the loop hears why.
        let _ = if rejected {
            delivery.reject(BasicRejectOptions { requeue: false }).await?
        } else {
            delivery.ack(BasicAckOptions::default()).await?
        };
        Ok(())
    }

    /// Books a delivery; true when it is to be refused.
    fn record(&self, delivery: &Delivery, cluster: u32, unproven: &mut Unproven) -> bool {
        let Some(stamp) = decode(&delivery.data) else {
            self.book.with(ConsumerBook::malformed);
            return false;
        };
        let rejected = self.reject_every.is_some_and(|every| stamp.seq.is_multiple_of(every));
        let flags = Flags::new(cluster).with_redelivered(delivery.redelivered).with_rejected(rejected);
        let now = self.clock.now();
        let took = wall_micros().saturating_sub(stamp.sent_micros) / 1000;
        self.book.with(|book| {
            book.arrived(stamp.publisher, stamp.seq, flags, now);
            if !delivery.redelivered {
                book.took(took);
            }
        });
        unproven.arrived(stamp.publisher, stamp.seq);
        rejected
    }
}
