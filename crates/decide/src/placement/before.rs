//! Placement before anything is installed: no volume exists yet, so the class is asked.

use super::answer::{Findings, Placement, ReplicaPlacement};
use super::keys::{Zone, names_zones, zone_of};
use super::loss::majority;
use super::pod::refusal;
use super::view::{BindingMode, NodeView, ReplicaView, StorageClassView, Topology};

/// What provisions nothing: somebody makes the volumes by hand.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// Judges whether replicas with volumes of this class can be spread so that any one zone may fail.
pub fn before_install(
    class: Option<&StorageClassView>,
    nodes: &[NodeView],
    replicas: &[ReplicaView],
) -> Placement {
    let placed: Vec<ReplicaPlacement> =
        replicas.iter().map(|replica| prospect(replica, class, nodes)).collect();
    let mut findings = class.map_or_else(no_class, class_findings);
    match class {
        Some(class) if !findings_are_fatal(&findings) => {
            findings.problems.extend(empty_zones(class, nodes, &placed));
            spread(&mut findings, nodes, &placed);
        }
        Some(_) | None => {}
    }
    Placement::of(placed, Vec::new(), findings)
}

fn findings_are_fatal(findings: &Findings) -> bool {
    !findings.problems.is_empty()
}

fn prospect(replica: &ReplicaView, class: Option<&StorageClassView>, nodes: &[NodeView]) -> ReplicaPlacement {
    let mut answer = ReplicaPlacement { ordinal: replica.ordinal, ..ReplicaPlacement::default() };
    for node in nodes.iter().filter(|node| class.is_none_or(|class| allows(class, node))) {
        answer.fitting_nodes.push(node.name.clone());
        match refusal(replica, node) {
            Ok(None) => answer.eligible_nodes.push(node.name.clone()),
            Ok(Some(_)) => {}
            Err(why) => answer.unknowns.push(why),
        }
    }
    answer.allowed_zones = zones(nodes, &answer.eligible_nodes);
    if answer.eligible_nodes.is_empty() && answer.unknowns.is_empty() {
        answer.problems.push("no node can host it".to_owned());
    }
    if class.is_some_and(|class| class.reclaim_policy == "Delete") {
        answer.notes.push("deleting the claim deletes the data (reclaim policy Delete)".to_owned());
    }
    if class.is_some_and(|class| !class.allow_expansion) {
        answer.notes.push("the volume cannot grow (its class has no allowVolumeExpansion)".to_owned());
    }
    answer
}

fn allows(class: &StorageClassView, node: &NodeView) -> bool {
    let holds = |one: &Topology| node.labels.get(&one.key).is_some_and(|value| one.values.contains(value));
    class.allowed_topologies.is_empty() || class.allowed_topologies.iter().any(|term| term.iter().all(holds))
}

fn no_class() -> Findings {
    Findings { unknowns: vec!["the storage class was not found".to_owned()], ..Findings::default() }
}

fn class_findings(class: &StorageClassView) -> Findings {
    let mut findings = Findings::default();
    let name = &class.name;
    if class.provisioner == NO_PROVISIONER {
        findings
            .unknowns
            .push(format!("volumes of class {name} are made by hand, so where they are is not known"));
    }
    match class.binding_mode {
        BindingMode::WaitForFirstConsumer => {}
        BindingMode::Immediate => findings.unknowns.push(format!(
            "class {name} binds at once, so a volume's zone is chosen before its pod is placed; take one with \
             WaitForFirstConsumer"
        )),
    }
    findings
}

/// Zones that the class allows and where no node can host anything.
fn empty_zones(class: &StorageClassView, nodes: &[NodeView], placed: &[ReplicaPlacement]) -> Vec<String> {
    let terms = class.allowed_topologies.iter().flatten();
    let wanted = terms.filter(|topology| names_zones(&topology.key));
    let hosts: Vec<&NodeView> = nodes
        .iter()
        .filter(|node| placed.iter().any(|replica| replica.eligible_nodes.contains(&node.name)))
        .collect();
    let is_empty = |key: &str, zone: &String| !hosts.iter().any(|node| node.labels.get(key) == Some(zone));
    let empty = wanted.flat_map(|topology| {
        topology.values.iter().filter(|zone| is_empty(&topology.key, zone)).map(|zone| {
            format!("class {} allows zone {zone:?}, where no node can host a replica", class.name)
        })
    });
    empty.collect()
}

/// Only the best possible spread is judged here; where the pods really land is judged after binding.
fn spread(findings: &mut Findings, nodes: &[NodeView], placed: &[ReplicaPlacement]) {
    let all: Vec<String> = placed.iter().flat_map(|replica| replica.eligible_nodes.iter().cloned()).collect();
    let zones = zones(nodes, &all);
    let members = placed.len();
    let fullest = members.div_ceil(zones.len().max(1));
    if all.is_empty() || members == 0 {
        findings.unknowns.push("there is nothing to place".to_owned());
    } else if nodes.iter().filter(|node| all.contains(&node.name)).any(|node| !is_zoned(node)) {
        findings
            .unknowns
            .push("some nodes carry no zone, so nobody can say what the loss of one would do".to_owned());
    } else if members - fullest < majority(members) {
        findings.problems.push(format!(
            "not zone-fault tolerant: {members} replicas over {} zones ({}), one zone holds {fullest} at best and \
             quorum needs {}",
            zones.len(),
            zones.join(", "),
            majority(members)
        ));
    }
}

fn is_zoned(node: &NodeView) -> bool {
    match zone_of(node) {
        Zone::Named(_) => true,
        Zone::FaultDomain(_) | Zone::None => false,
    }
}

fn zones(nodes: &[NodeView], names: &[String]) -> Vec<String> {
    let among = nodes.iter().filter(|node| names.contains(&node.name));
    let mut zones: Vec<String> = among.map(|node| zone_of(node).shown()).collect();
    zones.sort();
    zones.dedup();
    zones
}
