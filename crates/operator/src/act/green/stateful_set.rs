//! Green's StatefulSet (DESIGN.md §4, "Green's pods").

use super::blueprint::Blueprint;
use super::container::{broker, cookie};
use crate::observe::kubernetes::TEMPLATE_DIGEST;
use serde_json::{Value, json};

/// User and group of the broker in the official image.
const RABBITMQ: i32 = 999;
/// Seconds a pod may take to stop: twice the wait for a quorum.
const GRACE: i32 = 600;
/// Annotation of the pods that changes with the configuration: files mounted singly never change in a pod.
const CONFIG_DIGEST: &str = "rabbitmq-migration.io/config-digest";
/// The zone of a Kubernetes node.
const ZONE: &str = "topology.kubernetes.io/zone";
/// A Kubernetes node.
const NODE: &str = "kubernetes.io/hostname";

/// The StatefulSet. Its selector is one label of ours, so that no other selector of the namespace meets it by
/// chance; claims are kept whatever happens to it.
pub(super) fn stateful_set(green: &Blueprint<'_>) -> Value {
    let mut metadata = green.metadata(green.name);
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.insert(TEMPLATE_DIGEST.to_owned(), json!(green.digest));
    }
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata,
        "spec": {
            "replicas": green.template.replicas,
            "serviceName": green.headless,
            "podManagementPolicy": "Parallel",
            "updateStrategy": { "type": "RollingUpdate" },
            "persistentVolumeClaimRetentionPolicy": { "whenDeleted": "Retain", "whenScaled": "Retain" },
            "selector": { "matchLabels": green.selector() },
            "template": {
                "metadata": {
                    "labels": green.pod_labels,
                    "annotations": { CONFIG_DIGEST: green.config_digest() },
                },
                "spec": pod(green),
            },
            "volumeClaimTemplates": [claim(green)],
        },
    })
}

fn pod(green: &Blueprint<'_>) -> Value {
    let pull_secrets: Vec<Value> =
        green.template.image_pull_secrets.iter().map(|name| json!({ "name": name })).collect();
    let mut pod = json!({
        "serviceAccountName": green.name,
        // Links would give a Service named rabbitmq the variable RABBITMQ_PORT, which the broker would read.
        "enableServiceLinks": false,
        "terminationGracePeriodSeconds": GRACE,
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": RABBITMQ,
            "runAsGroup": RABBITMQ,
            "fsGroup": RABBITMQ,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": { "type": "RuntimeDefault" },
        },
        "topologySpreadConstraints": [spread(green, ZONE, "DoNotSchedule"), spread(green, NODE, "ScheduleAnyway")],
        "initContainers": [cookie(green)],
        "containers": [broker(green)],
        "volumes": [
            { "name": "home", "emptyDir": {} },
            { "name": "config", "configMap": { "name": green.config() } },
        ],
    });
    if let Some(fields) = pod.as_object_mut() {
        if !pull_secrets.is_empty() {
            fields.insert("imagePullSecrets".to_owned(), json!(pull_secrets));
        }
        if !green.template.node_selector.is_empty() {
            fields.insert("nodeSelector".to_owned(), json!(green.template.node_selector));
        }
    }
    pod
}

/// Spreads the members. Taints count: a zone whose nodes all refuse the pod is no place to wait for.
fn spread(green: &Blueprint<'_>, key: &str, otherwise: &str) -> Value {
    json!({
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": otherwise,
        "nodeTaintsPolicy": "Honor",
        "labelSelector": { "matchLabels": green.selector() },
    })
}

fn claim(green: &Blueprint<'_>) -> Value {
    let labels = green.metadata("data").get("labels").cloned();
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": { "name": "data", "labels": labels },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": green.template.storage.class_name,
            "resources": { "requests": { "storage": green.template.storage.size } },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::blueprint::tests::{is_exactly, plan, service};
    use super::*;
    use k8s_openapi::api::apps::v1::StatefulSet;
    use std::collections::BTreeMap;

    #[test]
    fn the_object_is_well_formed_and_restricted() {
        let plan = plan();
        let green = Blueprint::new(&plan, &[service()], &BTreeMap::new()).unwrap();
        let set = stateful_set(&green);
        is_exactly::<StatefulSet>(&set);
        let pod = set.pointer("/spec/template/spec").unwrap();
        assert_eq!(pod.pointer("/securityContext/runAsNonRoot"), Some(&json!(true)));
        let containers = ["/initContainers/0", "/containers/0"].map(|path| pod.pointer(path).unwrap());
        for container in containers {
            assert_eq!(container.pointer("/securityContext/capabilities/drop/0"), Some(&json!("ALL")));
        }
    }

    #[test]
    fn a_variable_of_the_template_replaces_ours() {
        let plan = plan();
        let green = Blueprint::new(&plan, &[service()], &BTreeMap::new()).unwrap();
        let set = stateful_set(&green);
        let env = set.pointer("/spec/template/spec/containers/0/env").and_then(Value::as_array).unwrap();
        let homes: Vec<_> = env.iter().filter(|var| var["name"] == "HOME").collect();
        assert_eq!(homes, [&json!({ "name": "HOME", "value": "/elsewhere" })]);
        let at = |name: &str| env.iter().position(|var| var["name"] == name);
        assert!(at("POD_NAME") < at("RABBITMQ_NODENAME"), "what is referred to comes first");
    }
}
