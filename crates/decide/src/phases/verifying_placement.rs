//! VerifyingPlacement: where green's volumes let it run, and whether quorum survives each zone.

use crate::conditions::{Truth, set};
use crate::context::{Context, cannot_see};
use crate::fact::{Fact, Want, every, fresh};
use crate::placement::{Placement, Safety, placement};
use crate::side::Side;
use crate::step::{Reason, Step};
use api::conditions::PLACEMENT_SAFE;
use api::status::{PlacementStatus, ReplicaPlacement, ZoneLoss};
use api::{Phase, RabbitMQMigrationStatus};

/// The check that a waiver names.
pub const CHECK: &str = "placement-safe";

/// Nodes before volumes: a node that is gone is seen before the volume that needs it.
pub fn wants() -> Vec<Want> {
    vec![
        fresh(Fact::StatefulSet(Side::Green)),
        fresh(Fact::Pods(Side::Green)),
        every(2, Fact::Nodes),
        every(2, Fact::StorageClass),
        fresh(Fact::Volumes),
    ]
}

/// Judges the placement. Unknown is never safe.
pub fn decide(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus) -> Step {
    let (Some(nodes), Some((replicas, volumes))) = (context.world.nodes.seen(), context.world.volumes.seen())
    else {
        let (nodes, volumes) = (context.world.nodes.why_not(), context.world.volumes.why_not());
        let detail = format!("nodes or volumes cannot be read: {nodes}{volumes}");
        set(draft, context, PLACEMENT_SAFE, Truth::Unknown, Reason::PlacementUnknown.as_str(), &detail);
        return waived(context).unwrap_or_else(|| cannot_see(detail));
    };
    let classes: Vec<_> = context.world.storage_class.seen().cloned().flatten().into_iter().collect();
    let answer = placement(nodes, volumes, replicas, &classes);
    draft.placement = Some(status(&answer));
    let remedy = format!("add nodes in the zones that miss them, or waive {CHECK} with a reason");
    match &answer.verdict {
        Safety::Safe => {
            set(draft, context, PLACEMENT_SAFE, Truth::True, "Safe", &answer.summary);
            Step::Go(Phase::SyncingTopology)
        }
        Safety::Unsafe(why) => {
            let detail = format!("{}. {remedy}", why.join("; "));
            set(draft, context, PLACEMENT_SAFE, Truth::False, Reason::PlacementUnsafe.as_str(), &detail);
            waived(context).unwrap_or_else(|| Step::wait(Reason::PlacementUnsafe, detail))
        }
        Safety::Unknown(why) => {
            let detail = format!("{}. {remedy}", why.join("; "));
            set(draft, context, PLACEMENT_SAFE, Truth::Unknown, Reason::PlacementUnknown.as_str(), &detail);
            waived(context).unwrap_or_else(|| Step::wait(Reason::PlacementUnknown, detail))
        }
    }
}

fn waived(context: &Context<'_>) -> Option<Step> {
    context.plan.waives(CHECK).then_some(Step::Go(Phase::SyncingTopology))
}

fn status(answer: &Placement) -> PlacementStatus {
    let replicas = answer.replicas.iter().map(|r| ReplicaPlacement {
        pod: format!("{}", r.ordinal),
        node: r.node.clone().unwrap_or_default(),
        zone: r.zone.clone().unwrap_or_default(),
        volume: r.volume.clone().unwrap_or_default(),
        volume_zones: r.allowed_zones.clone(),
        eligible_nodes: i32::try_from(r.eligible_nodes.len()).unwrap_or(i32::MAX),
    });
    let zones = answer.zone_loss.iter().map(|z| ZoneLoss {
        zone: z.zone.clone(),
        survivors: format!("{} of {}", z.survivors, z.of),
        quorum: z.quorum,
    });
    let verdict = match answer.verdict {
        Safety::Safe => "Safe",
        Safety::Unsafe(_) => "Unsafe",
        Safety::Unknown(_) => "Unknown",
    };
    PlacementStatus {
        verdict: verdict.to_owned(),
        summary: answer.summary.clone(),
        replicas: replicas.collect(),
        zones: zones.collect(),
    }
}
