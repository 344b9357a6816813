//! Status written by a newer operator: nothing is touched.

use crate::context::Context;
use crate::step::{Reason, Step};
use api::RabbitMQMigrationStatus;
use api::status::PROTOCOL;

/// Stops where the stored form is newer than ours.
pub fn decide(context: &Context<'_>, _: &mut RabbitMQMigrationStatus) -> Option<Step> {
    (context.status.protocol > PROTOCOL).then(|| {
        Step::stop(
            Reason::NewerStatus,
            format!(
                "status has protocol {}, this operator knows {PROTOCOL}: install an operator at least as new as \
                 the one that wrote it",
                context.status.protocol
            ),
        )
    })
}
