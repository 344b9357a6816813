//! The ends: nothing moves any more without a person. A retry starts again from Preflight.

use crate::context::Context;
use crate::fact::{Fact, Want, every};
use crate::guards::{self, aborted};
use crate::phases::cleanup::{self, Scope};
use crate::phases::switching::note_serving;
use crate::step::{Reason, Step};
use api::spec::Outcome;
use api::{Phase, RabbitMQMigrationStatus};

/// The route, so that status tells who serves; where traffic went back also what of ours is left.
pub fn wants(phase: Phase) -> Vec<Want> {
    if phase == Phase::RolledBack { guards::undo_wants() } else { vec![every(30, Fact::Services)] }
}

/// Stops, or starts again on a new retry order.
pub fn decide(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus) -> Step {
    note_serving(context, draft);
    let phase = context.phase();
    // Going back ends with what we made on the brokers undone. Only here: the switch needs it to the last.
    if phase == Phase::RolledBack
        && let Some(step) = cleanup::step(context, draft, Scope::Leave)
    {
        return step;
    }
    draft.manual_exit.clear();
    if let Some(retry) = &context.plan.orders.retry
        && phase != Phase::Completed
        && context.is_new_order(api::RETRY, Some(retry))
    {
        aborted::note(context, draft, api::RETRY, retry);
        draft.findings.clear();
        (draft.gate, draft.ledger, draft.switching, draft.topology) = (None, None, None, None);
        return Step::Go(Phase::Preflight);
    }
    let again = "set the annotation rabbitmq-migration.io/retry to a new value to start again";
    match phase {
        Phase::Completed => Step::stop(Reason::Completed, "green serves; the migration is complete"),
        Phase::RolledBack if context.plan.outcome == Outcome::RolledBack => {
            Step::stop(Reason::RolledBackAsAsked, "blue serves, as spec.desiredOutcome asks")
        }
        Phase::RolledBack if context.plan.orders.abort.is_some() => {
            Step::stop(Reason::Aborted, format!("blue serves; the migration was aborted; {again}"))
        }
        _ => Step::stop(Reason::RolledBackOnFailure, format!("blue serves; {again}")),
    }
}
