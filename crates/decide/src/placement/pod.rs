//! Which nodes a pod may run on, its volume aside: selector, affinity, taints, cordons, its siblings.

use super::selector::{Selected, select};
use super::view::{NodeView, ReplicaView, Source, Taint, Toleration, VolumeView};

/// The taint that a cordon stands for.
const CORDON: &str = "node.kubernetes.io/unschedulable";

/// Says why a replica cannot run on a node now, if so. `Err` means it cannot be said.
pub(super) fn refusal(replica: &ReplicaView, node: &NodeView) -> Result<Option<String>, String> {
    let by_rules = rules_refusal(replica, node)?;
    Ok(by_rules.or_else(|| state_refusal(replica, node)))
}

/// Says why a replica could never run on a node, whatever the node's state, if so.
pub(super) fn rules_refusal(replica: &ReplicaView, node: &NodeView) -> Result<Option<String>, String> {
    let selector = replica.node_selector.iter().find(|(key, value)| node.labels.get(*key) != Some(*value));
    if let Some((key, value)) = selector {
        return Ok(Some(format!("the pod's nodeSelector wants {key}={value}")));
    }
    match replica.affinity.as_deref().map(|terms| select(terms, node)) {
        None | Some(Selected::Yes) => {}
        Some(Selected::No(why)) => return Ok(Some(format!("the pod's node affinity: {why}"))),
        Some(Selected::Malformed(why)) => return Err(format!("the pod's node affinity: {why}")),
    }
    let taint = node.taints.iter().find(|taint| repels(taint) && !tolerated(replica, taint));
    Ok(taint.map(|taint| format!("the pod does not tolerate {}={}:{}", taint.key, taint.value, taint.effect)))
}

/// Says whether a sibling keeps the replica off a node by required anti-affinity.
pub(super) fn is_taken(
    replica: &ReplicaView,
    node: &NodeView,
    siblings: &[ReplicaView],
    nodes: &[NodeView],
) -> bool {
    let others = siblings.iter().filter(|sibling| sibling.ordinal != replica.ordinal);
    let hosts = others.filter_map(|sibling| sibling.node.as_ref());
    let hosts: Vec<&NodeView> =
        hosts.filter_map(|name| nodes.iter().find(|host| host.name == *name)).collect();
    replica.apart_by.iter().any(|key| {
        let own = node.labels.get(key);
        own.is_some() && hosts.iter().any(|host| host.labels.get(key) == own)
    })
}

/// Says whether a node has no room for one more volume of a driver; the node it is on already has it.
pub(super) fn is_full(replica: &ReplicaView, volume: Option<&VolumeView>, node: &NodeView) -> bool {
    let Some(Source::Csi(driver)) = volume.map(|volume| &volume.source) else {
        return false;
    };
    replica.node.as_ref() != Some(&node.name) && node.free_attachments.get(driver) == Some(&0)
}

fn state_refusal(replica: &ReplicaView, node: &NodeView) -> Option<String> {
    let cordon = Taint { key: CORDON.to_owned(), value: String::new(), effect: "NoSchedule".to_owned() };
    if !node.ready {
        return Some("the node is not ready".to_owned());
    }
    (node.unschedulable && !tolerated(replica, &cordon)).then(|| "the node is cordoned".to_owned())
}

/// `PreferNoSchedule` only ranks; an effect we do not know is taken to repel.
fn repels(taint: &Taint) -> bool {
    taint.effect != "PreferNoSchedule"
}

fn tolerated(replica: &ReplicaView, taint: &Taint) -> bool {
    replica.tolerations.iter().any(|toleration| tolerates(toleration, taint))
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let Toleration { key, operator, value, effect } = toleration;
    let same_effect = effect.is_empty() || *effect == taint.effect;
    let same_key = if key.is_empty() { operator == "Exists" } else { *key == taint.key };
    let same_value = match operator.as_str() {
        "Exists" => true,
        "" | "Equal" => *value == taint.value,
        _ => false,
    };
    same_effect && same_key && same_value
}
