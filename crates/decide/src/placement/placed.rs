//! Placement after the pods exist: every replica, every zone, one verdict.

use super::answer::{Placement, ReplicaPlacement};
use super::keys::{Zone, zone_of};
use super::loss::{judged, zone_losses};
use super::pod::{is_full, is_taken, refusal, rules_refusal};
use super::view::{BindingMode, NodeView, Phase, ReplicaView, StorageClassView, VolumeView};
use super::volume::{Fit, fits, is_tied_to_machine, named_zones};

/// Judges where the replicas are, where else they could be, and what the loss of each zone would do.
/// Unknown is never safe.
pub fn placement(
    nodes: &[NodeView],
    volumes: &[VolumeView],
    replicas: &[ReplicaView],
    classes: &[StorageClassView],
) -> Placement {
    let mut placed: Vec<ReplicaPlacement> =
        replicas.iter().map(|replica| placed_replica(replica, nodes, volumes, replicas, classes)).collect();
    placed.sort_by_key(|replica| replica.ordinal);
    let zone_of_name =
        |name: &str| nodes.iter().find(|node| node.name == name).map(|node| zone_of(node).shown());
    let losses = zone_losses(&placed, zone_of_name);
    let findings = judged(&losses, &placed);
    Placement::of(placed, losses, findings)
}

fn placed_replica(
    replica: &ReplicaView,
    nodes: &[NodeView],
    volumes: &[VolumeView],
    siblings: &[ReplicaView],
    classes: &[StorageClassView],
) -> ReplicaPlacement {
    let claim = replica.claim.as_ref();
    let volume = claim.and_then(|claim| volumes.iter().find(|volume| volume.claim == *claim));
    let mut answer = ReplicaPlacement {
        ordinal: replica.ordinal,
        node: replica.node.clone(),
        volume: volume.and_then(|volume| volume.volume.clone()),
        ..ReplicaPlacement::default()
    };
    located(&mut answer, replica, nodes);
    match (claim, volume) {
        (None, _) => answer.problems.push("it has no volume, its data dies with the pod".to_owned()),
        (Some(claim), None) => answer.unknowns.push(format!("claim {claim} was not found")),
        (Some(_), Some(volume)) => claimed(&mut answer, volume, classes),
    }
    for node in nodes {
        considered(&mut answer, replica, volume, node, is_taken(replica, node, siblings, nodes));
    }
    zoned(&mut answer, volume, nodes);
    hosted(&mut answer, volume);
    answer
}

fn located(answer: &mut ReplicaPlacement, replica: &ReplicaView, nodes: &[NodeView]) {
    let Some(name) = &replica.node else {
        answer.unknowns.push("it runs on no node yet".to_owned());
        return;
    };
    let Some(node) = nodes.iter().find(|node| node.name == *name) else {
        answer.unknowns.push(format!("its node {name} was not found"));
        return;
    };
    let zone = zone_of(node);
    if let Zone::FaultDomain(domain) = &zone {
        answer.notes.push(format!("{name} says zone {domain}, which is an Azure fault domain, not a zone"));
    }
    answer.zone = Some(zone.shown());
}

fn claimed(answer: &mut ReplicaPlacement, volume: &VolumeView, classes: &[StorageClassView]) {
    let class =
        volume.storage_class.as_ref().and_then(|name| classes.iter().find(|class| class.name == *name));
    let claim = &volume.claim;
    match volume.phase {
        Phase::Bound if volume.volume.is_some() => {}
        Phase::Bound => answer.unknowns.push(format!("claim {claim} is bound, its volume was not read")),
        Phase::Pending => answer.unknowns.push(match class.map(|class| class.binding_mode) {
            Some(BindingMode::WaitForFirstConsumer) => {
                format!("claim {claim} gets its volume once the pod is placed")
            }
            Some(BindingMode::Immediate) => format!("claim {claim} still waits for its volume"),
            None => format!("claim {claim} waits for a volume, and its class was not found"),
        }),
        Phase::Lost => answer.problems.push(format!("claim {claim} has lost its volume")),
        Phase::Released => answer.problems.push(format!("the volume of claim {claim} was released")),
        Phase::Failed => answer.problems.push(format!("the volume of claim {claim} failed")),
        Phase::Unknown => answer.unknowns.push(format!("the phase of claim {claim} was not read")),
    }
    if class.is_some_and(|class| class.reclaim_policy == "Delete") {
        answer.notes.push("deleting the claim deletes the data (reclaim policy Delete)".to_owned());
    }
    if class.is_some_and(|class| !class.allow_expansion) {
        answer.notes.push("the volume cannot grow (its class has no allowVolumeExpansion)".to_owned());
    }
    if is_tied_to_machine(volume) {
        answer.notes.push("the volume is tied to one machine, whose loss loses the data".to_owned());
    }
}

fn considered(
    answer: &mut ReplicaPlacement,
    replica: &ReplicaView,
    volume: Option<&VolumeView>,
    node: &NodeView,
    taken: bool,
) {
    let fit = volume.map_or(Fit::Yes, |volume| fits(volume, node));
    let runs_here = replica.node.as_ref() == Some(&node.name);
    if fit.matches_labels() {
        answer.fitting_nodes.push(node.name.clone());
    }
    match fit {
        Fit::Yes => {}
        Fit::DependsOnTranslation(why) => {
            answer.uncertain_nodes.push(node.name.clone());
            if runs_here {
                answer.unknowns.push(format!("whether its volume fits {} {why}", node.name));
            }
            return;
        }
        Fit::No(why) => {
            if runs_here {
                answer.problems.push(format!("its volume does not fit {}: {why}", node.name));
            }
            return;
        }
        Fit::Unknown(why) => {
            once(&mut answer.unknowns, format!("whether its volume fits: {why}"));
            return;
        }
    }
    match refusal(replica, node) {
        Err(why) => once(&mut answer.unknowns, why),
        Ok(None) if !taken && !is_full(replica, volume, node) => {
            answer.eligible_nodes.push(node.name.clone());
        }
        Ok(Some(why)) if runs_here => runs_refused(answer, replica, node, &why),
        Ok(_) => {}
    }
}

/// A hundred nodes with one answer are one answer.
fn once(list: &mut Vec<String>, text: String) {
    if !list.contains(&text) {
        list.push(text);
    }
}

/// A running pod may stay where it could not start: no problem today, one at the next restart.
fn runs_refused(answer: &mut ReplicaPlacement, replica: &ReplicaView, node: &NodeView, why: &str) {
    let text = format!("it could not start again on {}: {why}", node.name);
    match rules_refusal(replica, node) {
        Ok(Some(_)) | Err(_) => answer.problems.push(text),
        Ok(None) => answer.notes.push(text),
    }
}

fn zoned(answer: &mut ReplicaPlacement, volume: Option<&VolumeView>, nodes: &[NodeView]) {
    let named = volume.map(named_zones).unwrap_or_default();
    if !named.is_empty() {
        answer.allowed_zones = named;
        return;
    }
    let fitting = nodes.iter().filter(|node| answer.fitting_nodes.contains(&node.name));
    let mut zones: Vec<String> = fitting.map(|node| zone_of(node).shown()).collect();
    zones.sort();
    zones.dedup();
    answer.allowed_zones = zones;
}

fn hosted(answer: &mut ReplicaPlacement, volume: Option<&VolumeView>) {
    let zones = answer.allowed_zones.join(", ");
    let uncertain = answer.uncertain_nodes.join(", ");
    if !uncertain.is_empty() {
        let text = format!("on {uncertain} its volume depends on translation to CSI");
        let list = if answer.eligible_nodes.is_empty() { &mut answer.unknowns } else { &mut answer.notes };
        list.push(text);
    }
    let is_elsewhere = |node: &String| Some(node) != answer.node.as_ref();
    if answer.eligible_nodes.is_empty() && answer.unknowns.is_empty() {
        answer.problems.push(format!("no node can host it now (its volume allows: {zones})"));
    } else if !answer.eligible_nodes.iter().any(is_elsewhere) && volume.is_some() {
        answer.notes.push(format!("no second node can host it (its volume allows: {zones})"));
    }
}
