//! The publishing half: one number per tick, confirms, resends after a close.

use std::collections::{BTreeSet, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::ShortString;
use lapin::{BasicProperties, Channel, Confirmation};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use super::super::session::{Session, cause_of, short, within};
use super::{Shared, Stage, ended, reached};
use crate::error::Cause;

/// Numbers published and not yet confirmed, across connections.
#[derive(Default)]
struct Open {
    numbers: BTreeSet<u64>,
    /// Those that the queue refused: published again, one per tick.
    refused: VecDeque<u64>,
}

type Confirm = Pin<Box<dyn Future<Output = (u64, lapin::Result<Confirmation>)> + Send>>;

/// Runs until the stage is no longer [`Stage::Run`]; reconnects for ever.
pub(super) async fn run(shared: Arc<Shared>, mut stage: watch::Receiver<Stage>) {
    let mut open = Open::default();
    loop {
        if let Some(session) = shared.connect("publisher", |book| &mut book.publisher).await {
            match publish(&shared, &session, &mut open, &mut stage).await {
                Ok(()) => return session.close().await,
                Err(cause) => shared.book().publisher.closed(&cause),
            }
        }
        // What is unconfirmed must be published again before we may stop, unless told to hang up.
        let until = if open.numbers.is_empty() { Stage::Settle } else { Stage::End };
        if !shared.pause(&mut stage, until).await {
            return;
        }
    }
}

/// One connection's life: resend, then tick; `Ok` when stopped and all confirmed.
async fn publish(
    shared: &Shared,
    session: &Session,
    open: &mut Open,
    stage: &mut watch::Receiver<Stage>,
) -> Result<(), Cause> {
    let timeout = shared.config.timeout;
    let channel = session.channel().await?;
    within(timeout, channel.confirm_select(ConfirmSelectOptions::default())).await?;
    let sender = Sender { shared, channel, queue: short(&shared.config.queue)? };
    let mut confirms = FuturesUnordered::new();
    open.refused.clear();
    for number in open.numbers.iter().copied() {
        shared.book().ledger.resend(number);
        let confirm = sender.send(number).await?;
        confirms.push(confirm);
    }
    let mut ticks = tokio::time::interval(shared.config.interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Since when the broker owes us a confirm.
    let mut owed = Instant::now();
    loop {
        let running = *stage.borrow() == Stage::Run && !ended(stage);
        if !running && confirms.is_empty() && open.refused.is_empty() {
            return Ok(());
        }
        tokio::select! {
            biased;
            Some((number, answer)) = confirms.next(), if !confirms.is_empty() => {
                settle(shared, open, number, answer)?;
                owed = Instant::now();
            }
            _ = ticks.tick(), if running || !open.refused.is_empty() => {
                if confirms.is_empty() {
                    owed = Instant::now();
                }
                let number = open.next(shared);
                let confirm = sender.send(number).await?;
        confirms.push(confirm);
            }
            () = reached(stage, Stage::Settle), if running => {}
            () = tokio::time::sleep_until((owed + timeout).into()), if !confirms.is_empty() => return Err(Cause::Timeout(timeout)),
        }
    }
}

impl Open {
    /// A refused number again, or a new one.
    fn next(&mut self, shared: &Shared) -> u64 {
        let ledger = &mut shared.book().ledger;
        if let Some(number) = self.refused.pop_front() {
            ledger.resend(number);
            return number;
        }
        let number = ledger.attempt();
        self.numbers.insert(number);
        number
    }
}

struct Sender<'a> {
    shared: &'a Shared,
    channel: Channel,
    queue: ShortString,
}

impl Sender<'_> {
    /// Hands one message to the socket; the returned future waits for its confirm. Awaited one by one, so
    /// that numbers leave in order.
    async fn send(&self, number: u64) -> Result<Confirm, Cause> {
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        let persistent = BasicProperties::default().with_delivery_mode(2);
        let payload = format!("{} {number}", self.shared.config.run);
        let publish = self.channel.basic_publish(
            ShortString::default(),
            self.queue.clone(),
            options,
            payload.as_bytes(),
            persistent,
        );
        let confirm = within(self.shared.config.timeout, publish).await?;
        Ok(Box::pin(async move { (number, confirm.await) }))
    }
}

/// Books one confirm. What the queue refused is published again, as an honest client does; a return is final:
/// there is no queue.
fn settle(
    shared: &Shared,
    open: &mut Open,
    number: u64,
    answer: lapin::Result<Confirmation>,
) -> Result<(), Cause> {
    let answer = answer.map_err(|error| cause_of(&error))?;
    if answer == Confirmation::Nack(None) {
        shared.book().ledger.nacked();
        open.refused.push_back(number);
        return Ok(());
    }
    open.numbers.remove(&number);
    let mut book = shared.book();
    match answer {
        Confirmation::Ack(None) => {
            book.ledger.confirm(number);
            book.publisher.progress(Instant::now());
        }
        Confirmation::Ack(Some(_)) | Confirmation::Nack(_) => book.ledger.returned(),
        Confirmation::NotRequested => return Err(Cause::Malformed("channel without confirms".into())),
    }
    Ok(())
}
