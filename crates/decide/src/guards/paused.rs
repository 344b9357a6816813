//! Paused: measure and report, change nothing. Inside a switch it takes effect when nobody is refused.

use crate::context::Context;
use crate::step::{Reason, Step};
use api::RabbitMQMigrationStatus;

/// Waits while paused, except where stopping would leave clients refused.
pub fn decide(context: &Context<'_>, _: &mut RabbitMQMigrationStatus) -> Option<Step> {
    let phase = context.phase();
    (context.plan.orders.pause && !phase.is_switch() && !phase.is_terminal()).then(|| {
        Step::wait(
            Reason::Paused,
            "paused by spec.paused or the annotation rabbitmq-migration.io/pause; remove it to go on",
        )
    })
}
