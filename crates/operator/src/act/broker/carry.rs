//! Carries what is left in queues to the other side.

use super::failed;
use crate::body::{Memory, Scene};
use crate::error::ActError;
use decide::effect::QueueRef;
use decide::side::Side;
use rabbit::Error;
use rabbit::amqp::{Carried, CarryOptions, UserId};
use std::time::{Duration, Instant};

/// How long one effect carries: a slice of the sprint. What is left then is carried by the next pass.
const SLICE: Duration = Duration::from_secs(5);
/// Messages on their way at once; after a cut as many may be on both sides.
const WINDOW: u16 = 200;

/// Moves all messages of these queues, one queue after the other, until time is up. At least once and in
/// order; a cut leaves at most a window of messages on both sides.
pub async fn carry(
    _scene: &Scene<'_>,
    memory: &mut Memory,
    from: Side,
    queues: &[QueueRef],
) -> Result<(), ActError> {
    let deadline = Instant::now() + SLICE;
    for queue in queues {
        if Instant::now() >= deadline {
            break;
        }
        let outcome = carry_one(memory, from, queue, deadline).await;
        let moved = match &outcome {
            Ok(carried) => carried.moved,
            Err(Error::Carry { moved, .. }) => *moved,
            Err(_) => 0,
        };
        memory.world.progress.carried = memory.world.progress.carried.saturating_add(moved);
        if outcome.is_err() {
            for side in Side::BOTH {
                memory.link(side).sessions.drop_if_broken(&queue.vhost);
            }
        }
        let carried = outcome.map_err(failed("carry messages", from))?;
        tracing::info!(vhost = queue.vhost, queue = queue.name, moved, end = ?carried.end, "carried");
    }
    Ok(())
}

async fn carry_one(
    memory: &mut Memory,
    from: Side,
    queue: &QueueRef,
    deadline: Instant,
) -> rabbit::Result<Carried> {
    let source = memory.link(from).session(&queue.vhost).await?;
    let target = memory.link(from.other()).session(&queue.vhost).await?;
    let options = CarryOptions { limit: u64::MAX, deadline, window: WINDOW, user_id: UserId::Clear };
    rabbit::amqp::carry(&source, &target, &queue.name, options).await
}
