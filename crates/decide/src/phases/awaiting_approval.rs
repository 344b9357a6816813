//! AwaitingApproval: waits for an approval that names the plan digest; the gate goes on judging.

use crate::context::Context;
use crate::fact::Want;
use crate::phases::{probing, switching, syncing_topology};
use crate::plan::Plan;
use crate::side::Heading;
use crate::step::{Reason, Step};
use api::RabbitMQMigrationStatus;
use api::status::PlanStatus;

/// As in Probing: the gate goes on judging.
pub fn wants(plan: &Plan, status: &RabbitMQMigrationStatus) -> Vec<Want> {
    probing::wants(plan, status)
}

/// Enters the switch once the plan is approved by its digest and the gate still passes.
pub fn decide(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus) -> Step {
    if let Some(step) =
        syncing_topology::own_epoch(context).or_else(|| syncing_topology::follow(context, draft))
    {
        return step;
    }
    let digest = note_plan(context, draft);
    if let Err(step) = probing::gate(context, draft) {
        return step;
    }
    match &context.plan.orders.approve {
        Some(approved) if *approved == digest => {
            if let Some(plan) = &mut draft.plan {
                plan.approved = Some(digest);
            }
            switching::enter(context, draft, Heading::FORWARD)
        }
        Some(other) => Step::wait(
            Reason::AwaitingApproval,
            format!(
                "the approval names plan {other}, the plan is now {digest}: read status.plan and approve that one"
            ),
        ),
        None => Step::wait(
            Reason::AwaitingApproval,
            format!(
                "read status.plan, then: kubectl annotate rabbitmqmigration {} -n {} {}={digest}",
                context.plan.name,
                context.plan.namespace,
                api::APPROVE
            ),
        ),
    }
}

/// Writes the plan and its digest to status.
pub fn note_plan(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus) -> String {
    let versions = context.versions();
    let rewrites = context.world.definitions.seen().map(|d| d.rewrites.clone()).unwrap_or_default();
    let digest = context.plan.digest(&versions, &rewrites);
    let counts = context.world.definitions.seen().map(|d| d.counts.clone()).unwrap_or_default();
    let mut summary = vec![
        format!(
            "move Services {} from {} to {}",
            context.plan.services.join(", "),
            context.plan.blue.stateful_set_name,
            context.plan.green.stateful_set_name
        ),
        format!("bring {counts}, {} rewrites", rewrites.len()),
        format!(
            "strategy Handover, ordering {:?}, within {} s, then {:?}",
            context.plan.cutover.ordering,
            context.plan.cutover.timeout_seconds,
            context.plan.cutover.on_timeout
        ),
        format!(
            "soak {} s, then {:?} blue",
            context.plan.soak.duration_seconds, context.plan.retirement.policy
        ),
    ];
    summary.extend(context.plan.waivers.iter().map(|w| format!("waived {}: {}", w.check, w.reason)));
    let approved = draft.plan.as_ref().and_then(|p| p.approved.clone());
    draft.plan = Some(PlanStatus { digest: digest.clone(), approved, versions, summary });
    digest
}
