//! What is done on a broker: one file per group of effects. All are idempotent and can be cut anywhere.

mod carry;
mod clean;
mod close;
mod epoch;
mod fence;
mod place;
mod rehearsal;

pub use carry::carry;
pub use clean::{clean, delete_user, delete_vhost, remove_epoch_users};
pub use close::close;
pub use epoch::ensure_epoch_user;
pub use fence::{fence, unfence};
pub use place::{Room, make_place};
pub use rehearsal::rehearse_fence;

use crate::body::{Memory, Scene};
use crate::error::ActError;
use decide::fact::Fact;
use decide::side::Side;

/// Calls at once for many users or connections. 16: 48 closes a second disturb nobody, and one round trip
/// covers them.
const AT_ONCE: usize = 16;

/// Names what was attempted and where.
pub fn failed(attempt: &'static str, side: Side) -> impl FnOnce(rabbit::Error) -> ActError {
    move |source| ActError::Broker { attempt, side, source: Box::new(source) }
}

/// Enables all stable feature flags. Cannot be undone by anybody.
pub async fn enable_feature_flags(
    _scene: &Scene<'_>,
    memory: &mut Memory,
    side: Side,
) -> Result<(), ActError> {
    let link = memory.link(side);
    let enabled = link.ask_long(|client| async move { client.enable_stable_feature_flags().await });
    let enabled = enabled.await.map_err(failed("enable feature flags", side))?;
    memory.read_at.remove(&Fact::Broker(side));
    tracing::info!(%side, flags = enabled.join(", "), "feature flags enabled");
    Ok(())
}

/// Spreads queue leaders over the members. They go on moving after the answer.
pub async fn rebalance_leaders(_scene: &Scene<'_>, memory: &mut Memory, side: Side) -> Result<(), ActError> {
    let link = memory.link(side);
    let moved = link.ask(|client| async move { client.rebalance_leaders().await });
    moved.await.map_err(failed("rebalance leaders", side))
}
