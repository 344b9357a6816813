//! The pods of a side: those whose owner is its StatefulSet, by uid, never by name.

use super::{Answer, api, call, get_stateful_set, reading};
use crate::body::{Memory, Scene};
use decide::side::Side;
use decide::world::{PodView, Reading};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodStatus};
use kube::ResourceExt;
use kube::api::ListParams;
use kube::core::Selector;

/// Waiting reasons of a pod that starts as it should.
const NORMAL: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// Reads the pods of a side and tells its link; a StatefulSet that does not exist has none.
pub async fn pods(scene: &Scene<'_>, memory: &mut Memory, side: Side) -> Reading<Vec<PodView>> {
    let answer = read_pods(scene, side).await;
    if let Ok(pods) = &answer {
        memory.link(side).set_pods(pods);
    }
    reading(answer)
}

/// The pods of a side, sorted by name.
pub(super) async fn read_pods(scene: &Scene<'_>, side: Side) -> Answer<Vec<PodView>> {
    let Some(set) = get_stateful_set(scene, side).await? else { return Ok(Vec::new()) };
    let mut pods: Vec<PodView> = list_pods(scene, &set).await?.iter().map(view).collect();
    pods.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(pods)
}

/// The pods that `set` controls.
pub(super) async fn list_pods(scene: &Scene<'_>, set: &StatefulSet) -> Answer<Vec<Pod>> {
    let name = set.name_any();
    let attempt = format!("list pods of {name}");
    let selector = set.spec.as_ref().map(|spec| spec.selector.clone()).unwrap_or_default();
    let selector = Selector::try_from(selector).map_err(|e| format!("{attempt}: {e}"))?;
    let params = ListParams::default().labels_from(&selector);
    let listed = call(&attempt, api::<Pod>(scene).list(&params)).await?;
    let uid = set.uid().unwrap_or_default();
    Ok(listed.items.into_iter().filter(|pod| is_controlled_by(pod, &uid)).collect())
}

fn is_controlled_by(pod: &Pod, uid: &str) -> bool {
    pod.owner_references().iter().any(|owner| owner.controller == Some(true) && owner.uid == uid)
}

fn view(pod: &Pod) -> PodView {
    let status = pod.status.clone().unwrap_or_default();
    PodView {
        name: pod.name_any(),
        uid: pod.uid().unwrap_or_default(),
        ip: status.pod_ip.clone().filter(|ip| !ip.is_empty()),
        node: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
        ready: pod.metadata.deletion_timestamp.is_none() && is_condition(&status, "Ready", "True"),
        trouble: trouble(&status),
    }
}

fn is_condition(status: &PodStatus, kind: &str, value: &str) -> bool {
    status.conditions.iter().flatten().any(|c| c.type_ == kind && c.status == value)
}

/// Why a pod waits: it fits on no node, or a container cannot start.
fn trouble(status: &PodStatus) -> Option<String> {
    let scheduling =
        status.conditions.iter().flatten().find(|c| c.type_ == "PodScheduled" && c.status == "False");
    if let Some(condition) = scheduling {
        let reason = condition.reason.as_deref().unwrap_or("not scheduled");
        return Some(told(reason, condition.message.as_deref()));
    }
    let inits = status.init_container_statuses.iter().flatten();
    inits.chain(status.container_statuses.iter().flatten()).find_map(waiting)
}

fn waiting(status: &ContainerStatus) -> Option<String> {
    let waiting = status.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.as_deref()?;
    (!NORMAL.contains(&reason))
        .then(|| told(&format!("{} {reason}", status.name), waiting.message.as_deref()))
}

fn told(reason: &str, message: Option<&str>) -> String {
    match message.map(str::trim) {
        Some(message) if !message.is_empty() => format!("{reason}: {message}"),
        Some(_) | None => reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(status: &Value) -> Pod {
        let metadata = json!({ "name": "g-0", "uid": "p", "ownerReferences": [
            { "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "g", "uid": "s", "controller": true },
        ]});
        serde_json::from_value(json!({ "metadata": metadata, "status": status })).unwrap()
    }

    #[test]
    fn a_pod_belongs_to_the_owner_with_that_uid() {
        let pod = pod(&json!({}));
        assert!(is_controlled_by(&pod, "s"));
        assert!(!is_controlled_by(&pod, "another set of the same name"));
    }

    #[test]
    fn trouble_names_the_reason() {
        let unschedulable = json!({ "conditions": [{ "type": "PodScheduled", "status": "False",
            "reason": "Unschedulable", "message": "0/3 nodes are available" }] });
        let pull = json!({ "containerStatuses": [{ "name": "rabbitmq", "image": "", "imageID": "",
            "ready": false, "restartCount": 0,
            "state": { "waiting": { "reason": "ImagePullBackOff", "message": "Back-off" } } }] });
        let starting = json!({ "containerStatuses": [{ "name": "rabbitmq", "image": "", "imageID": "",
            "ready": false, "restartCount": 0, "state": { "waiting": { "reason": "ContainerCreating" } } }] });
        let cases = [
            (unschedulable, Some("Unschedulable: 0/3 nodes are available")),
            (pull, Some("rabbitmq ImagePullBackOff: Back-off")),
            (starting, None),
        ];
        for (status, want) in cases {
            assert_eq!(view(&pod(&status)).trouble.as_deref(), want);
        }
    }
}
