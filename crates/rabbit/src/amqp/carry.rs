//! Carrying messages of one queue to the queue of the same name on another broker.

mod properties;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use futures::StreamExt;
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicGetOptions, BasicPublishOptions,
    BasicQosOptions, ConfirmSelectOptions,
};
use lapin::types::{FieldTable, ShortString};
use lapin::{BasicProperties, Channel, Confirmation, Consumer, PublisherConfirm};

use self::properties::{rename_cc, without_user_id};
use super::depth::{FIRST_DELIVERY, LOCKED, Probe};
use super::session::{Session, cause_of, short, within};
use crate::error::{Cause, Error, Result};

/// How long a consumer may be silent before the queue is asked by basic.get whether it is empty. 20 ms:
/// deliveries of a local broker are 1 ms apart, and asking costs two round trips.
const SILENCE: Duration = Duration::from_millis(20);

/// Most acks that a cut could undo. 500: one more round trip per 500 messages is not felt.
const MOST_UNPROVEN: u64 = 500;

/// How far and how a queue is carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CarryOptions {
    /// Most messages moved.
    pub limit: u64,
    /// When to stop taking new ones.
    pub deadline: Instant,
    /// Most messages in flight: on the way, taken but not yet acked.
    pub window: u16,
    /// What happens to the `user_id` property.
    pub user_id: UserId,
}

impl CarryOptions {
    /// Everything there is, within a time limit, 200 in flight, user ids cleared.
    pub fn everything_within(limit: Duration) -> Self {
        Self { limit: u64::MAX, deadline: Instant::now() + limit, window: 200, user_id: UserId::Clear }
    }
}

/// The broker refuses a `user_id` that is not the publisher's own, unless he has the tag `impersonator`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserId {
    /// Take it off, as federation does.
    Clear,
    /// Keep it; our user on the target needs the tag `impersonator`.
    Keep,
}

/// What was carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Carried {
    /// Messages confirmed by the target and acked on the source.
    pub moved: u64,
    /// Why it stopped.
    pub end: CarryEnd,
    /// Messages whose `user_id` was taken off.
    pub user_ids_cleared: u64,
    /// Messages whose `CC` header was renamed, because the target would route by it a second time.
    pub ccs_renamed: u64,
}

/// Why carrying stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CarryEnd {
    /// The source's leader said that nothing is ready (basic.get). Unacked messages of others are not counted.
    Empty,
    /// The limit was reached.
    Limit,
    /// Time was up.
    Deadline,
}

/// Moves messages of `queue` from one broker to the queue of the same name on the other.
///
/// Needs read permission on the source and write permission on the target's default exchange. Changes both.
/// Guarantees: at least once; order kept (one consumer, one publisher channel); a message is acked on the
/// source only after the target confirmed it and did not return it. Properties and headers stay, but
/// `user_id` ([`UserId`]) and `CC` (renamed `x-original-cc`); exchange and routing key become `""` and the
/// queue's name; a TTL starts again. Refused (405) by queues with an exclusive consumer or another active
/// single one, and (540) by streams. Other consumers of the source share its messages with us.
///
/// An error or a cut leaves: what was not acked is ready again on the source, and what of it the target
/// already has exists on both: `in_doubt` of [`Error::Carry`], at most `window` + 500 and one batch of acks.
pub async fn carry(from: &Session, to: &Session, queue: &str, options: CarryOptions) -> Result<Carried> {
    let failed = |cause| Error::Carry { queue: queue.to_owned(), moved: 0, in_doubt: 0, cause };
    let mut run = Run::open(from, to, queue, options).await.map_err(failed)?;
    let outcome = run.until_end().await;
    let settled = match outcome {
        Ok(end) => run.settle_all().await.map(|()| end),
        Err(cause) => Err(cause),
    };
    let closed = run.close().await;
    match settled.and_then(|end| closed.map(|()| end)) {
        Ok(end) => Ok(Carried { end, ..run.carried }),
        Err(cause) => Err(Error::Carry {
            queue: queue.to_owned(),
            moved: run.carried.moved - run.unproven,
            in_doubt: count(run.in_flight.len()).saturating_add(run.unproven),
            cause,
        }),
    }
}

/// One run: a channel on each side and what is on its way.
struct Run {
    from: Session,
    source: Channel,
    target: Channel,
    queue: ShortString,
    options: CarryOptions,
    timeout: Duration,
    /// Source tag and confirm, oldest first.
    in_flight: VecDeque<(u64, PublisherConfirm)>,
    taken: u64,
    /// Acked on the source since it last answered: a cut can undo them.
    unproven: u64,
    /// The source refuses basic.get (quorum queue with single active consumer).
    single: bool,
    carried: Carried,
}

impl Run {
    async fn open(from: &Session, to: &Session, queue: &str, options: CarryOptions) -> Result<Self, Cause> {
        let timeout = from.timeout().max(to.timeout());
        let source = source_channel(from, options.window, timeout).await?;
        let target = within(timeout, to.connection().create_channel()).await?;
        within(timeout, target.confirm_select(ConfirmSelectOptions::default())).await?;
        let carried = Carried { moved: 0, end: CarryEnd::Empty, user_ids_cleared: 0, ccs_renamed: 0 };
        Ok(Self {
            from: from.clone(),
            source,
            target,
            queue: short(queue)?,
            options,
            timeout,
            in_flight: VecDeque::new(),
            taken: 0,
            unproven: 0,
            single: false,
            carried,
        })
    }

    /// Rounds of asking the leader whether it is empty and of consuming until silence.
    async fn until_end(&mut self) -> Result<CarryEnd, Cause> {
        loop {
            if let Some(end) = self.stop_reason() {
                return Ok(end);
            }
            let before = self.taken;
            // Nothing else is on its way here, so the message got cannot overtake one.
            self.settle_all().await?;
            if !self.single && self.is_empty().await? {
                return Ok(CarryEnd::Empty);
            }
            if self.stop_reason().is_none() {
                self.consume_until_silence().await?;
            }
            // A probe gives its message back, maybe behind the next: only one that should find none.
            if self.single && self.taken == before && self.is_empty_to_a_consumer().await? {
                return Ok(CarryEnd::Empty);
            }
        }
    }

    /// Asks by basic.get; a message got is passed on at once. Finds out whether basic.get is refused.
    async fn is_empty(&mut self) -> Result<bool, Cause> {
        let get = self.source.basic_get(self.queue.clone(), BasicGetOptions::default());
        match within(self.timeout, get).await {
            Ok(None) => Ok(true),
            Ok(Some(message)) => {
                self.unproven = 0;
                self.pass_on(message.delivery).await?;
                Ok(false)
            }
            Err(Cause::Amqp { code: LOCKED, .. }) => {
                self.single = true;
                self.source = source_channel(&self.from, self.options.window, self.timeout).await?;
                Ok(false)
            }
            Err(cause) => Err(cause),
        }
    }

    async fn is_empty_to_a_consumer(&self) -> Result<bool, Cause> {
        let probe = self.from.get_probe_empty(self.queue.as_str()).await;
        match probe.map_err(|error| error.cause().clone())? {
            Probe::Empty => Ok(true),
            Probe::Message { .. } => Ok(false),
            Probe::Taken => {
                Err(Cause::Amqp { code: LOCKED, text: "another consumer is the active one".into() })
            }
            Probe::NoAnswer => Err(Cause::Timeout(self.timeout)),
        }
    }

    fn stop_reason(&self) -> Option<CarryEnd> {
        if self.taken >= self.options.limit {
            return Some(CarryEnd::Limit);
        }
        (Instant::now() >= self.options.deadline).then_some(CarryEnd::Deadline)
    }

    async fn consume_until_silence(&mut self) -> Result<(), Cause> {
        let start = self.source.basic_consume(
            self.queue.clone(),
            ShortString::default(),
            BasicConsumeOptions::default(),
            FieldTable::default(),
        );
        let mut consumer = within(self.timeout, start).await?;
        self.unproven = 0;
        let silence = if self.single { FIRST_DELIVERY } else { SILENCE };
        while self.stop_reason().is_none() {
            match tokio::time::timeout(silence, consumer.next()).await {
                Ok(Some(Ok(delivery))) => self.pass_on(delivery).await?,
                Ok(Some(Err(error))) => return Err(cause_of(&error)),
                Ok(None) => return Err(Cause::Unreachable("the source cancelled our consumer".into())),
                // Silent, or it waits for acks that wait for confirms.
                Err(_) if self.in_flight.is_empty() => break,
                Err(_) => self.settle_all().await?,
            }
        }
        self.drain(consumer).await
    }

    /// Cancels the consumer and passes on what is already here, so that nothing overtakes it.
    async fn drain(&mut self, mut consumer: Consumer) -> Result<(), Cause> {
        let cancel = self.source.basic_cancel(consumer.tag(), BasicCancelOptions::default());
        within(self.timeout, cancel).await?;
        self.unproven = 0;
        while self.taken < self.options.limit {
            match tokio::time::timeout(self.timeout, consumer.next()).await {
                Ok(Some(Ok(delivery))) => self.pass_on(delivery).await?,
                Ok(Some(Err(error))) => return Err(cause_of(&error)),
                Ok(None) => break,
                Err(_) => return Err(Cause::Timeout(self.timeout)),
            }
        }
        Ok(())
    }

    /// Publishes one message; keeps at most `window` in flight.
    async fn pass_on(&mut self, delivery: Delivery) -> Result<(), Cause> {
        let Delivery { delivery_tag, properties, data, .. } = delivery;
        let properties = self.adapt(properties);
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        let publish =
            self.target.basic_publish(ShortString::default(), self.queue.clone(), options, &data, properties);
        let confirm = within(self.timeout, publish).await?;
        self.in_flight.push_back((delivery_tag, confirm));
        self.taken = self.taken.saturating_add(1);
        if self.in_flight.len() >= usize::from(self.options.window) {
            // Half a window at a time: acks go out in batches, the pipe never runs dry.
            self.settle(self.in_flight.len() / 2 + 1).await?;
        }
        Ok(())
    }

    fn adapt(&mut self, properties: BasicProperties) -> BasicProperties {
        let mut properties = properties;
        if self.options.user_id == UserId::Clear && properties.user_id().is_some() {
            properties = without_user_id(&properties);
            self.carried.user_ids_cleared += 1;
        }
        if let Some(headers) = properties.headers().as_ref().and_then(rename_cc) {
            properties = properties.with_headers(headers);
            self.carried.ccs_renamed += 1;
        }
        properties
    }

    async fn settle_all(&mut self) -> Result<(), Cause> {
        self.settle(self.in_flight.len()).await
    }

    /// Waits for the oldest confirms and acks their messages on the source.
    async fn settle(&mut self, oldest: usize) -> Result<(), Cause> {
        let mut last = None;
        let mut outcome = Ok(());
        for done in 0..oldest {
            let Some((tag, confirm)) = self.in_flight.front_mut() else { break };
            match within(self.timeout, confirm).await.and_then(accepted) {
                Ok(()) => last = Some((*tag, done + 1)),
                Err(cause) => {
                    outcome = Err(cause);
                    break;
                }
            }
            self.in_flight.pop_front();
        }
        // Messages are taken in order by one channel, so one ack covers all up to the last confirmed.
        if let Some((tag, settled)) = last {
            self.carried.moved += count(settled);
            self.unproven += count(settled);
            let ack = self.source.basic_ack(tag, BasicAckOptions { multiple: true });
            within(self.timeout, ack).await?;
        }
        if self.unproven >= MOST_UNPROVEN {
            self.prove().await?;
        }
        outcome
    }

    /// An ack has no answer; a call that has one, made after it on the same channel, proves it was taken.
    async fn prove(&mut self) -> Result<(), Cause> {
        let window = self.options.window.max(1);
        within(self.timeout, self.source.basic_qos(window, BasicQosOptions::default())).await?;
        self.unproven = 0;
        Ok(())
    }

    /// Closing gives back what is unacked, and proves the last acks.
    async fn close(&mut self) -> Result<(), Cause> {
        if self.target.status().connected() {
            // Nothing hangs on the target's channel any more.
            let _ = within(self.timeout, self.target.close(200, "carried".into())).await;
        }
        within(self.timeout, self.source.close(200, "carried".into())).await?;
        self.unproven = 0;
        Ok(())
    }
}

/// A channel of our own: what is unacked on it goes back when it closes.
async fn source_channel(from: &Session, window: u16, timeout: Duration) -> Result<Channel, Cause> {
    let channel = within(timeout, from.connection().create_channel()).await?;
    within(timeout, channel.basic_qos(window.max(1), BasicQosOptions::default())).await?;
    Ok(channel)
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// Only a positive confirm without a return means that the queue has it.
fn accepted(confirmation: Confirmation) -> Result<(), Cause> {
    match confirmation {
        Confirmation::Ack(None) => Ok(()),
        Confirmation::Ack(Some(back)) | Confirmation::Nack(Some(back)) => {
            Err(Cause::Returned { code: back.reply_code, text: back.reply_text.to_string() })
        }
        Confirmation::Nack(None) => Err(Cause::Nacked),
        Confirmation::NotRequested => Err(Cause::Malformed("channel without confirms".into())),
    }
}
