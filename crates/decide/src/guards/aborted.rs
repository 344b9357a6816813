//! Aborted: before the switch everything we made is undone; during and after it traffic goes back.

use crate::context::{Context, ORDER_LENGTH};
use crate::phases::{cleanup, switching};
use crate::side::Heading;
use crate::step::Step;
use api::status::HandledCommand;
use api::{Phase, RabbitMQMigrationStatus, Time};

/// Carries out a new abort.
pub fn decide(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus) -> Option<Step> {
    let abort = context.plan.orders.abort.as_ref();
    if !context.is_new_order(api::ABORT, abort) {
        return None;
    }
    match context.phase() {
        phase if phase.is_before_switch() => Some(undo(context, draft)),
        Phase::Switching | Phase::Soaking => Some(switching::enter(context, draft, Heading::BACK)),
        Phase::RollingBack => None,
        _ => {
            handled(context, draft);
            None
        }
    }
}

fn undo(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus) -> Step {
    cleanup::step(context, draft, cleanup::Scope::Undo).unwrap_or_else(|| {
        handled(context, draft);
        Step::Go(Phase::RolledBack)
    })
}

/// Notes that the abort was carried out.
pub fn handled(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus) {
    if let Some(value) = &context.plan.orders.abort {
        note(context, draft, api::ABORT, value);
    }
}

/// Notes that a command was carried out.
pub fn note(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus, annotation: &str, value: &str) {
    draft.handled_commands.retain(|c| c.annotation != annotation);
    draft.handled_commands.push(HandledCommand {
        annotation: annotation.to_owned(),
        value: value.chars().take(ORDER_LENGTH).collect(),
        at: Some(Time(context.now)),
    });
}
