//! Deleted: the route is brought to a stable side, what we made and what holds no data is removed.

use crate::context::Context;
use crate::phases::cleanup;
use crate::step::{Reason, Step};
use api::{Phase, RabbitMQMigrationStatus};

/// Cleans up a deleted migration. Within a switch the phase first reaches a stable side.
pub fn decide(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus) -> Option<Step> {
    if !context.plan.orders.deleted {
        return None;
    }
    let scope = match context.phase() {
        Phase::Switching | Phase::RollingBack => return None,
        phase if phase.is_before_switch() => cleanup::Scope::Undo,
        _ => cleanup::Scope::Leave,
    };
    let step = cleanup::step(context, draft, scope);
    Some(step.unwrap_or_else(|| Step::stop(Reason::CleaningUp, "nothing of ours is left")))
}
