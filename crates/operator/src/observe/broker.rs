//! What a broker tells: one file per group of facts. Each fails alone, into its reading.

mod alike;
mod bindings;
mod connections;
mod definitions;
mod depths;
mod epoch;
mod members;
mod queues;
mod traffic;

pub use bindings::bindings;
pub use connections::connections;
pub use definitions::definitions;
pub use depths::{depths, emptiness};
pub use epoch::{epoch, leftovers, rehearsal, users};
pub use members::broker;
pub use queues::queues;
pub use traffic::traffic;

use crate::act::canary::CanaryState;
use crate::body::{Memory, Scene};
use decide::world::Reading;

/// A broker's answer as a reading.
fn reading<T>(answer: rabbit::Result<T>) -> Reading<T> {
    answer.map_or_else(|error| Reading::Failed(error.report()), Reading::Seen)
}

/// Whether a user is one whom nobody shall fence, move or list: all of ours but this migration's canary, which
/// lives like everybody else.
fn is_hidden(scene: &Scene<'_>, user: &str) -> bool {
    decide::names::Names::is_ours(user) && user != scene.plan.names.canary_user()
}

/// Whether traffic is being moved, or is about to be: the canary runs already. Then statistics of connections
/// are worth their price to the broker.
fn is_moving(scene: &Scene<'_>, memory: &Memory) -> bool {
    let phase = scene.status.phase.unwrap_or_default();
    let entering = memory.canary.as_ref().is_some_and(CanaryState::is_running) && phase.is_before_switch();
    phase.is_switch() || entering
}
