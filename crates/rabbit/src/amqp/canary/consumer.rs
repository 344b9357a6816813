//! The consuming half: reads numbers, acks each, reconnects.

use std::sync::Arc;
use std::time::Instant;

use futures::StreamExt;
use lapin::message::Delivery;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions};
use lapin::types::{FieldTable, ShortString};
use tokio::sync::watch;

use super::super::session::{Session, cause_of, short, within};
use super::{Shared, Stage, reached};
use crate::error::Cause;

/// Deliveries in flight. 100: two seconds of the default pace.
const PREFETCH: u16 = 100;

/// Runs until the stage is [`Stage::End`]; reconnects for ever.
pub(super) async fn run(shared: Arc<Shared>, mut stage: watch::Receiver<Stage>) {
    loop {
        if let Some(session) = shared.connect("consumer", |book| &mut book.consumer).await {
            match consume(&shared, &session, &mut stage).await {
                Ok(()) => return session.close().await,
                Err(cause) => shared.book().consumer.closed(&cause),
            }
        }
        if !shared.pause(&mut stage, Stage::End).await {
            return;
        }
    }
}

/// One connection's life; `Ok` when told to hang up.
async fn consume(
    shared: &Shared,
    session: &Session,
    stage: &mut watch::Receiver<Stage>,
) -> Result<(), Cause> {
    let timeout = shared.config.timeout;
    let channel = session.channel().await?;
    within(timeout, channel.basic_qos(PREFETCH, BasicQosOptions::default())).await?;
    let start = channel.basic_consume(
        short(&shared.config.queue)?,
        ShortString::default(),
        BasicConsumeOptions::default(),
        FieldTable::default(),
    );
    let mut deliveries = within(timeout, start).await?;
    loop {
        tokio::select! {
            () = reached(stage, Stage::End) => return Ok(()),
            delivery = deliveries.next() => match delivery {
                Some(Ok(delivery)) => {
                    book(shared, &delivery);
                    within(timeout, delivery.ack(BasicAckOptions::default())).await?;
                }
                Some(Err(error)) => return Err(cause_of(&error)),
                None => return Err(Cause::Unreachable("the broker cancelled the consumer".into())),
            },
        }
    }
}

/// Books a delivery before it is acked: what a cut leaves unacked comes again, flagged.
fn book(shared: &Shared, delivery: &Delivery) {
    let mut book = shared.book();
    match number(&delivery.data, &shared.config.run) {
        Some(number) => book.ledger.deliver(number, delivery.redelivered),
        None => book.ledger.foreign(),
    }
    book.consumer.progress(Instant::now());
}

/// The number of one of our messages: `<run> <number>`.
fn number(payload: &[u8], run: &str) -> Option<u64> {
    std::str::from_utf8(payload).ok()?.strip_prefix(run)?.strip_prefix(' ')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_numbers_count() {
        assert_eq!(number(b"run-1 17", "run-1"), Some(17));
        assert_eq!(number(b"run-12 17", "run-1"), None);
        assert_eq!(number(b"run-1 x", "run-1"), None);
        assert_eq!(number(b"\xff", "run-1"), None);
    }
}
