//! The publishing half of a connection: confirms, a window, resends in order. I/O.

use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::ShortString;
use lapin::{BasicProperties, Channel, Confirmation};

use crate::hub::{Clock, Shared, wall_micros};
use crate::message::{Stamp, decode, encode};
use crate::publisher_book::PublisherBook;
use crate::reason::Down;
use crate::schedule::Schedule;

/// A refused message is sent again after this pause, so that a full queue is not hammered.
const NACK_PAUSE: Duration = Duration::from_millis(20);

/// How often a stopped publisher looks whether it may go on.
const STOPPED_PAUSE: Duration = Duration::from_millis(20);

/// After a close all outstanding confirms fail at once; one that does not is treated as failed.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Mandatory: what no queue takes comes back.
const OPTIONS: BasicPublishOptions = BasicPublishOptions { mandatory: true, immediate: false };

/// A publisher; it outlives its connections.
#[derive(Debug)]
pub struct Publish {
    /// Its memory.
    pub book: Shared<PublisherBook>,
    /// The time.
    pub clock: Clock,
    /// The exchange.
    pub exchange: ShortString,
    /// The routing key.
    pub routing_key: ShortString,
    /// How many messages may be unconfirmed.
    pub window: usize,
    /// Size of a message in bytes.
    pub size: usize,
    /// When messages are due.
    pub schedule: Schedule,
}

/// What became of a message.
enum Settled {
    Answered(u64, lapin::Result<Answer>),
    Retry(u64),
}

/// What the broker says to a message.
struct Answer {
    accepted: bool,
    /// A message that came back. lapin hands it out with the next answer, whosever that is.
    returned: Option<u64>,
}

impl From<Confirmation> for Answer {
    fn from(confirmation: Confirmation) -> Self {
        let accepted = !confirmation.is_nack();
        let returned = confirmation.take_message();
        Self { accepted, returned: returned.and_then(|message| Some(decode(&message.data)?.seq)) }
    }
}

/// A channel and the messages that are on their way through it.
struct Wire<'a> {
    channel: &'a Channel,
    flight: FuturesUnordered<BoxFuture<'static, Settled>>,
}

impl Publish {
    /// Publishes until the connection is over. First of all, in order, what was unconfirmed before.
    pub async fn run(&mut self, channel: &Channel, down: &Down) -> lapin::Result<()> {
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        let mut wire = Wire { channel, flight: FuturesUnordered::new() };
        let outcome = self.pump(&mut wire, down).await;
        // The others must not wait for the drain to hear of it.
        down.report(outcome.clone());
        self.drain(wire).await;
        outcome
    }

    async fn pump(&mut self, wire: &mut Wire<'_>, down: &Down) -> lapin::Result<()> {
        for seq in self.book.with(|book| book.unconfirmed()) {
            self.send_again(seq, wire).await?;
        }
        loop {
            let room = self.book.with(|book| book.in_flight()) < self.window;
            let wake = self.wake(Instant::now());
            tokio::select! {
                biased;
                () = down.wait() => return Ok(()),
                Some(settled) = wire.flight.next(), if !wire.flight.is_empty() => {
                    self.settle(settled, wire).await?;
                }
                () = tokio::time::sleep_until(wake.into()), if room => self.send_new(wire).await?,
            }
        }
    }

    /// When there is something to do next, if the window allows.
    fn wake(&mut self, now: Instant) -> Instant {
        let publishing = self.book.with(|book| book.publishing());
        if !publishing {
            self.schedule.forgive(now + STOPPED_PAUSE);
        }
        let behind = self.schedule.behind(now);
        self.book.with(|book| book.owe(behind));
        self.schedule.next()
    }

    async fn send_new(&mut self, wire: &mut Wire<'_>) -> lapin::Result<()> {
        let sent_micros = wall_micros();
        let Some(seq) = self.book.with(|book| book.next(sent_micros)) else { return Ok(()) };
        self.schedule.advance();
        self.send(seq, sent_micros, wire).await
    }

    async fn send_again(&self, seq: u64, wire: &mut Wire<'_>) -> lapin::Result<()> {
        let Some(sent_micros) = self.book.with(|book| book.again(seq)) else { return Ok(()) };
        self.send(seq, sent_micros, wire).await
    }

    async fn send(&self, seq: u64, sent_micros: u64, wire: &mut Wire<'_>) -> lapin::Result<()> {
        let body = self.book.with(|book| encode(Stamp { publisher: book.id(), seq, sent_micros }, self.size));
        let properties = BasicProperties::default().with_delivery_mode(2);
        let confirm = wire
            .channel
            .basic_publish(self.exchange.clone(), self.routing_key.clone(), OPTIONS, &body, properties)
            .await?;
        wire.flight.push(Box::pin(async move { Settled::Answered(seq, confirm.await.map(Answer::from)) }));
        Ok(())
    }

    async fn settle(&self, settled: Settled, wire: &mut Wire<'_>) -> lapin::Result<()> {
        match settled {
            Settled::Retry(seq) => self.send_again(seq, wire).await,
            Settled::Answered(seq, answer) => {
                if !self.book_answer(seq, &answer?) {
                    wire.flight.push(Box::pin(async move {
                        tokio::time::sleep(NACK_PAUSE).await;
                        Settled::Retry(seq)
                    }));
                }
                Ok(())
            }
        }
    }

    /// Books an answer; false when the message was refused.
    fn book_answer(&self, seq: u64, answer: &Answer) -> bool {
        let now = self.clock.now();
        self.book.with(|book| {
            answer.returned.into_iter().for_each(|returned| book.give_back(returned));
            if answer.accepted { book.confirm(seq, now) } else { book.nack(seq) }
        });
        answer.accepted
    }

    /// Answers that came before the close count; all else stays unconfirmed.
    async fn drain(&self, mut wire: Wire<'_>) {
        let draining = async {
            while let Some(settled) = wire.flight.next().await {
                if let Settled::Answered(seq, Ok(answer)) = settled {
                    self.book_answer(seq, &answer);
                }
            }
        };
        // What does not come in time is unconfirmed, hence sent again.
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, draining).await;
    }
}
