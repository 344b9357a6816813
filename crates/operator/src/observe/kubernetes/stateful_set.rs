//! A side's StatefulSet, trimmed to what the brain asks: who made it, how it stores data, what its probes
//! run.

use super::data_volume::{broker_container, is_persistent};
use super::probe_commands::probe_commands;
use super::{get_stateful_set, reading};
use crate::body::Scene;
use ::api::LABEL_MIGRATION;
use decide::side::Side;
use decide::world::{Reading, StatefulSetView};
use k8s_openapi::api::apps::v1::StatefulSet;
use std::collections::BTreeMap;

/// Annotation with the digest of the template that green was made from.
pub const TEMPLATE_DIGEST: &str = "rabbitmq-migration.io/template-digest";

/// Reads the StatefulSet of a side; one that does not exist is an answer.
pub async fn stateful_set(scene: &Scene<'_>, side: Side) -> Reading<StatefulSetView> {
    let answer = get_stateful_set(scene, side).await;
    reading(answer.map(|found| found.map_or_else(StatefulSetView::default, |set| view(&set))))
}

fn view(set: &StatefulSet) -> StatefulSetView {
    let spec = set.spec.clone().unwrap_or_default();
    let label = |key: &str| set.metadata.labels.as_ref()?.get(key).cloned();
    let annotation = |key: &str| set.metadata.annotations.as_ref()?.get(key).cloned();
    let pod = spec.template.spec.clone().unwrap_or_default();
    StatefulSetView {
        exists: true,
        made_by: label(LABEL_MIGRATION),
        template_digest: annotation(TEMPLATE_DIGEST),
        // Kubernetes' default for an absent number of replicas is 1.
        replicas: i64::from(spec.replicas.unwrap_or(1)),
        ready: i64::from(set.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or_default()),
        pod_labels: spec.template.metadata.clone().and_then(|m| m.labels).unwrap_or_default(),
        persistent: is_persistent(&spec),
        image: broker_container(&pod).and_then(|c| c.image.clone()).unwrap_or_default(),
        ports: ports(&pod),
        probe_commands: pod.containers.iter().flat_map(probe_commands).collect(),
    }
}

fn ports(pod: &k8s_openapi::api::core::v1::PodSpec) -> BTreeMap<String, i32> {
    pod.containers
        .iter()
        .flat_map(|container| container.ports.iter().flatten())
        .filter_map(|port| Some((port.name.clone()?, port.container_port)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_we_made_is_recognized_by_label_and_annotation() {
        let set: StatefulSet = serde_json::from_value(serde_json::json!({
            "metadata": {
                "labels": { LABEL_MIGRATION: "uid-1" },
                "annotations": { TEMPLATE_DIGEST: "d1" },
            },
            "spec": {
                "replicas": 3, "selector": {}, "serviceName": "h",
                "template": {
                    "metadata": { "labels": { "a": "b" } },
                    "spec": { "containers": [
                        { "name": "exporter", "image": "e", "ports": [{"name": "metrics", "containerPort": 9419}] },
                        { "name": "rabbitmq", "image": "r", "ports": [{"name": "amqp", "containerPort": 5672}] },
                    ]},
                },
            },
            "status": { "replicas": 3, "readyReplicas": 2 },
        }))
        .unwrap();
        let view = view(&set);
        assert_eq!(view.made_by.as_deref(), Some("uid-1"));
        assert_eq!(view.template_digest.as_deref(), Some("d1"));
        assert_eq!((view.replicas, view.ready, view.image.as_str()), (3, 2, "r"));
        assert_eq!(view.ports.get("amqp"), Some(&5672));
        assert_eq!(view.ports.len(), 2);
    }
}
