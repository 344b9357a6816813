//! Paused: measure and report, change nothing. Inside a switch it takes effect when nobody is refused.

use crate::context::Context;
use crate::phases::switching;
use crate::step::{Reason, Step};
use api::{Phase, RabbitMQMigrationStatus};

/// Waits while paused, except where stopping would leave clients refused.
pub fn decide(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus) -> Option<Step> {
    let phase = context.phase();
    if !context.plan.orders.pause || phase.is_switch() || phase.is_terminal() {
        return None;
    }
    let contested = phase == Phase::Soaking && switching::reopens(context, draft);
    (!contested).then(|| {
        Step::wait(
            Reason::Paused,
            "paused by spec.paused or the annotation rabbitmq-migration.io/pause; remove it to go on",
        )
    })
}
