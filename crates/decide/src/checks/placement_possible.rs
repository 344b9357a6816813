//! Green's volumes can be had in zones that have nodes for green's pods.

use crate::checks::{Check, Finding, Severity};
use crate::placement::{ReplicaView, Safety, before_install};
use crate::plan::Plan;
use crate::world::Reading;
use crate::world::World;

/// The check.
pub const CHECK: Check = Check { id: "placement-possible", run };

fn run(plan: &Plan, world: &World) -> Vec<Finding> {
    let Some(template) = plan.template() else { return Vec::new() };
    let Some(Some(class)) = world.storage_class.seen() else { return Vec::new() };
    let nodes = match &world.nodes {
        Reading::Seen(nodes) => nodes,
        unknown => return vec![Finding::unknown(format!("nodes: {}", unknown.why_not()))],
    };
    let replicas = u32::try_from(template.replicas).unwrap_or(0);
    let wanted: Vec<ReplicaView> = (0..replicas)
        .map(|ordinal| ReplicaView {
            ordinal,
            pod: format!("{}-{ordinal}", plan.green.stateful_set_name),
            node_selector: template.node_selector.clone(),
            ..ReplicaView::default()
        })
        .collect();
    let remedy =
        "choose a StorageClass whose zones have nodes, or more zones; placement is checked again once bound";
    match before_install(Some(class), nodes, &wanted).verdict {
        Safety::Safe => Vec::new(),
        Safety::Unsafe(why) => vec![Finding::new(Severity::Block, why.join("; "), remedy)],
        // Before the pods are placed nobody can know their zones; the volumes themselves are judged later.
        Safety::Unknown(why) => {
            vec![Finding::new(Severity::Info, why.join("; "), "it is checked once bound")]
        }
    }
}
