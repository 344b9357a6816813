//! Green's StorageClass and the Kubernetes nodes.

use super::{Answer, call, get_stateful_set, reading};
use crate::body::Scene;
use decide::placement::{BindingMode, NodeView, StorageClassView, Taint, Topology};
use decide::side::Side;
use decide::world::Reading;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use std::collections::BTreeMap;

/// Nodes read with one call. 500 is kubectl's page.
const PAGE: u32 = 500;

/// Reads green's StorageClass: the template's, or the one of an existing green's claims; `None` where there
/// is no such class, or an existing green names none.
pub async fn storage_class(scene: &Scene<'_>) -> Reading<Option<StorageClassView>> {
    reading(read_class(scene).await)
}

async fn read_class(scene: &Scene<'_>) -> Answer<Option<StorageClassView>> {
    let name = match scene.plan.template() {
        Some(template) => Some(template.storage.class_name.clone()),
        None => class_of_green(scene).await?,
    };
    let Some(name) = name else { return Ok(None) };
    let api: Api<StorageClass> = Api::all(scene.body.client.clone());
    let found = call(&format!("get storageclass {name}"), api.get_opt(&name)).await?;
    Ok(found.as_ref().map(class))
}

async fn class_of_green(scene: &Scene<'_>) -> Answer<Option<String>> {
    let set = get_stateful_set(scene, Side::Green).await?;
    let templates = set.and_then(|set| set.spec).and_then(|spec| spec.volume_claim_templates);
    Ok(templates.into_iter().flatten().find_map(|claim| claim.spec?.storage_class_name))
}

fn class(class: &StorageClass) -> StorageClassView {
    let waits = class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer");
    let terms = class.allowed_topologies.iter().flatten();
    StorageClassView {
        name: class.name_any(),
        binding_mode: if waits { BindingMode::WaitForFirstConsumer } else { BindingMode::Immediate },
        allowed_topologies: terms
            .map(|term| {
                let expressions = term.match_label_expressions.iter().flatten();
                expressions.map(|e| Topology { key: e.key.clone(), values: e.values.clone() }).collect()
            })
            .collect(),
        provisioner: class.provisioner.clone(),
        allow_expansion: class.allow_volume_expansion.unwrap_or(false),
        // Kubernetes' default.
        reclaim_policy: class.reclaim_policy.clone().unwrap_or_else(|| "Delete".to_owned()),
    }
}

/// Reads all nodes, in pages.
pub async fn nodes(scene: &Scene<'_>) -> Reading<Vec<NodeView>> {
    reading(read_nodes(scene).await)
}

async fn read_nodes(scene: &Scene<'_>) -> Answer<Vec<NodeView>> {
    let api: Api<Node> = Api::all(scene.body.client.clone());
    let mut views = Vec::new();
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = call("list nodes", api.list(&params)).await?;
        views.extend(page.items.iter().map(node));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(views),
        }
    }
}

fn node(node: &Node) -> NodeView {
    let spec = node.spec.clone().unwrap_or_default();
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let taint = |taint: k8s_openapi::api::core::v1::Taint| Taint {
        key: taint.key,
        value: taint.value.unwrap_or_default(),
        effect: taint.effect,
    };
    NodeView {
        name: node.name_any(),
        labels: node.labels().clone(),
        taints: spec.taints.unwrap_or_default().into_iter().map(taint).collect(),
        unschedulable: spec.unschedulable.unwrap_or(false),
        ready: conditions.into_iter().any(|c| c.type_ == "Ready" && c.status == "True"),
        // Attach limits are not read: no entry means that no limit is known.
        free_attachments: BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_class_without_a_mode_binds_at_once() {
        let read = |value| class(&serde_json::from_value::<StorageClass>(value).unwrap());
        let bare = read(json!({ "metadata": { "name": "a" }, "provisioner": "p" }));
        assert_eq!(bare.binding_mode, BindingMode::Immediate);
        assert_eq!(bare.reclaim_policy, "Delete");
        let zonal = read(json!({ "metadata": { "name": "b" }, "provisioner": "p",
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [{ "matchLabelExpressions": [{ "key": "zone", "values": ["a"] }] }] }));
        assert_eq!(zonal.binding_mode, BindingMode::WaitForFirstConsumer);
        let want = vec![vec![Topology { key: "zone".to_owned(), values: vec!["a".to_owned()] }]];
        assert_eq!(zonal.allowed_topologies, want);
    }

    #[test]
    fn a_node_without_a_ready_condition_is_not_ready() {
        let read = |value| node(&serde_json::from_value::<Node>(value).unwrap());
        assert!(!read(json!({ "metadata": { "name": "n" } })).ready);
        let ready = read(json!({ "metadata": { "name": "n" },
            "spec": { "unschedulable": true, "taints": [{ "key": "k", "effect": "NoSchedule" }] },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] } }));
        assert!(ready.ready && ready.unschedulable);
        assert_eq!(ready.taints.first().map(|t| t.effect.as_str()), Some("NoSchedule"));
    }
}
