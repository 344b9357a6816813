//! Deleted: the route is brought to a stable side, what we made and what holds no data is removed.

use crate::context::Context;
use crate::phases::{cleanup, switching};
use crate::step::{Reason, Step};
use crate::world::Reading;
use api::{Phase, RabbitMQMigrationStatus};

/// Cleans up a deleted migration. Within a switch the phase first reaches a stable side.
pub fn decide(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus) -> Option<Step> {
    if !context.plan.orders.deleted {
        return None;
    }
    let scope = match context.phase() {
        Phase::Switching | Phase::RollingBack => return None,
        // What is on green must not be left behind where clients are led to blue. Once the record is gone the
        // rest is, too.
        Phase::Soaking
            if matches!(context.world.record, Reading::Seen(Some(_)))
                && switching::reopens(context, draft) =>
        {
            return Some(Step::Go(Phase::Switching));
        }
        phase if phase.is_before_switch() => cleanup::Scope::Undo,
        _ => cleanup::Scope::Leave,
    };
    let step = cleanup::step(context, draft, scope);
    Some(step.unwrap_or_else(|| Step::stop(Reason::CleaningUp, "nothing of ours is left")))
}
