//! Green's replicas with the claims and volumes that hold their data, trimmed for placement.

use super::data_volume::{broker_container, data_mount};
use super::pods::list_pods;
use super::{Answer, api, call, get_stateful_set, reading};
use crate::body::Scene;
use decide::placement::{Operator, Phase, ReplicaView, Requirement, Source, Term, Toleration, VolumeView};
use decide::side::Side;
use decide::world::Reading;
use futures::future::try_join_all;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{
    NodeSelectorRequirement, NodeSelectorTerm, PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec,
    Pod, PodSpec,
};
use kube::{Api, ResourceExt};

/// Reads green's replicas and their volumes. A StatefulSet that does not exist has neither.
pub async fn volumes(scene: &Scene<'_>) -> Reading<(Vec<ReplicaView>, Vec<VolumeView>)> {
    reading(read(scene).await)
}

async fn read(scene: &Scene<'_>) -> Answer<(Vec<ReplicaView>, Vec<VolumeView>)> {
    let Some(set) = get_stateful_set(scene, Side::Green).await? else { return Ok((Vec::new(), Vec::new())) };
    let pods = list_pods(scene, &set).await?;
    let replicas = replicas(&set, &pods);
    let claims: Vec<String> = replicas.iter().filter_map(|replica| replica.claim.clone()).collect();
    let volumes = try_join_all(claims.iter().map(|claim| read_volume(scene, claim))).await?;
    Ok((replicas, volumes))
}

/// One view per wanted replica: as its pod runs, or as the template says where there is no pod yet.
fn replicas(set: &StatefulSet, pods: &[Pod]) -> Vec<ReplicaView> {
    let spec = set.spec.clone().unwrap_or_default();
    let first = spec.ordinals.as_ref().and_then(|ordinals| ordinals.start).unwrap_or_default();
    let count = spec.replicas.unwrap_or(1);
    let template = spec.template.spec.clone().unwrap_or_default();
    let ordinals = (first..first.saturating_add(count)).filter_map(|ordinal| u32::try_from(ordinal).ok());
    ordinals
        .map(|ordinal| {
            let name = format!("{}-{ordinal}", set.name_any());
            let pod = pods.iter().find(|pod| pod.name_any() == name).and_then(|pod| pod.spec.as_ref());
            let pod_spec = pod.unwrap_or(&template);
            let claim = claim_of(pod_spec).or_else(|| claim_by_template(set, &template, &name));
            replica(ordinal, name, pod_spec, claim)
        })
        .collect()
}

fn replica(ordinal: u32, pod: String, spec: &PodSpec, claim: Option<String>) -> ReplicaView {
    let affinity = spec.affinity.clone().unwrap_or_default();
    let node = affinity.node_affinity.and_then(|a| a.required_during_scheduling_ignored_during_execution);
    let apart =
        affinity.pod_anti_affinity.and_then(|a| a.required_during_scheduling_ignored_during_execution);
    ReplicaView {
        ordinal,
        pod,
        node: spec.node_name.clone(),
        node_selector: spec.node_selector.clone().unwrap_or_default(),
        affinity: node.map(|selector| selector.node_selector_terms.iter().map(term).collect()),
        tolerations: spec.tolerations.iter().flatten().map(toleration).collect(),
        apart_by: apart.into_iter().flatten().map(|term| term.topology_key).collect(),
        claim,
    }
}

/// The claim that a pod mounts as its data.
fn claim_of(pod: &PodSpec) -> Option<String> {
    let mount = data_mount(broker_container(pod)?)?;
    let volume = pod.volumes.iter().flatten().find(|volume| volume.name == mount.name)?;
    volume.persistent_volume_claim.as_ref().map(|claim| claim.claim_name.clone())
}

/// The claim that the StatefulSet will make for `pod`: template, then pod.
fn claim_by_template(set: &StatefulSet, template: &PodSpec, pod: &str) -> Option<String> {
    let mount = data_mount(broker_container(template)?)?;
    let claims = set.spec.as_ref()?.volume_claim_templates.as_ref()?;
    let claim = claims.iter().find(|claim| claim.metadata.name.as_deref() == Some(mount.name.as_str()))?;
    Some(format!("{}-{pod}", claim.name_any()))
}

/// A claim and the volume it is bound to.
async fn read_volume(scene: &Scene<'_>, name: &str) -> Answer<VolumeView> {
    let claims = api::<PersistentVolumeClaim>(scene);
    let claim = call(&format!("get persistentvolumeclaim {name}"), claims.get_opt(name)).await?;
    let Some(claim) = claim else {
        // The StatefulSet has not made it yet.
        return Ok(VolumeView { claim: name.to_owned(), phase: Phase::Pending, ..VolumeView::default() });
    };
    let bound = claim.spec.as_ref().and_then(|spec| spec.volume_name.clone()).filter(|name| !name.is_empty());
    let Some(bound) = bound else { return Ok(view(name, &claim, None)) };
    let volumes: Api<PersistentVolume> = Api::all(scene.body.client.clone());
    let volume = call(&format!("get persistentvolume {bound}"), volumes.get_opt(&bound)).await?;
    Ok(view(name, &claim, volume.as_ref()))
}

fn view(name: &str, claim: &PersistentVolumeClaim, volume: Option<&PersistentVolume>) -> VolumeView {
    let spec = volume.and_then(|volume| volume.spec.clone()).unwrap_or_default();
    let required = spec.node_affinity.as_ref().and_then(|affinity| affinity.required.as_ref());
    let class = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.clone());
    VolumeView {
        claim: name.to_owned(),
        volume: claim.spec.as_ref().and_then(|spec| spec.volume_name.clone()).filter(|name| !name.is_empty()),
        phase: phase(claim, volume),
        node_affinity: required.map(|selector| selector.node_selector_terms.iter().map(term).collect()),
        labels: volume.map(|volume| volume.labels().clone()).unwrap_or_default(),
        storage_class: spec.storage_class_name.clone().or(class),
        source: source(&spec),
    }
}

/// Where both stand: what is wrong with the volume outweighs what the claim says.
fn phase(claim: &PersistentVolumeClaim, volume: Option<&PersistentVolume>) -> Phase {
    let of_volume =
        volume.and_then(|volume| volume.status.as_ref()).and_then(|status| status.phase.as_deref());
    let of_claim = claim.status.as_ref().and_then(|status| status.phase.as_deref());
    match (of_volume, of_claim) {
        (Some("Released"), _) => Phase::Released,
        (Some("Failed"), _) => Phase::Failed,
        (_, Some("Pending")) => Phase::Pending,
        (Some(_), Some("Bound")) => Phase::Bound,
        // Also bound to a volume that is not there.
        (_, Some("Lost")) | (None, Some("Bound")) => Phase::Lost,
        _ => Phase::Unknown,
    }
}

fn source(spec: &PersistentVolumeSpec) -> Source {
    if let Some(csi) = &spec.csi {
        return Source::Csi(csi.driver.clone());
    }
    let kinds = [
        (spec.aws_elastic_block_store.is_some(), Source::AwsElasticBlockStore),
        (spec.azure_disk.is_some(), Source::AzureDisk),
        (spec.gce_persistent_disk.is_some(), Source::GcePersistentDisk),
        (spec.cinder.is_some(), Source::Cinder),
        (spec.local.is_some() || spec.host_path.is_some(), Source::Local),
    ];
    kinds.into_iter().find_map(|(is, kind)| is.then_some(kind)).unwrap_or(Source::Other)
}

fn term(term: &NodeSelectorTerm) -> Term {
    Term {
        expressions: term.match_expressions.iter().flatten().map(requirement).collect(),
        fields: term.match_fields.iter().flatten().map(requirement).collect(),
    }
}

fn requirement(requirement: &NodeSelectorRequirement) -> Requirement {
    Requirement {
        key: requirement.key.clone(),
        operator: operator(&requirement.operator),
        values: requirement.values.clone().unwrap_or_default(),
    }
}

fn operator(word: &str) -> Operator {
    match word {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        "Gt" => Operator::Gt,
        "Lt" => Operator::Lt,
        other => Operator::Other(other.to_owned()),
    }
}

fn toleration(toleration: &k8s_openapi::api::core::v1::Toleration) -> Toleration {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    Toleration {
        key: text(&toleration.key),
        operator: text(&toleration.operator),
        value: text(&toleration.value),
        effect: text(&toleration.effect),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set() -> StatefulSet {
        serde_json::from_value(json!({
            "metadata": { "name": "g" },
            "spec": {
                "replicas": 2, "selector": {}, "serviceName": "h",
                "volumeClaimTemplates": [{ "metadata": { "name": "data" } }],
                "template": { "spec": {
                    "nodeSelector": { "pool": "mq" },
                    "containers": [{ "name": "rabbitmq",
                        "volumeMounts": [{ "name": "data", "mountPath": "/var/lib/rabbitmq/mnesia" }] }],
                }},
            },
        }))
        .unwrap()
    }

    #[test]
    fn a_replica_without_a_pod_is_as_the_template_says() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": { "name": "g-0" },
            "spec": {
                "nodeName": "n", "tolerations": [{ "operator": "Exists" }],
                "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [
                    { "topologyKey": "kubernetes.io/hostname" },
                ]}},
                "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "data-g-0" } }],
                "containers": [{ "name": "rabbitmq",
                    "volumeMounts": [{ "name": "data", "mountPath": "/var/lib/rabbitmq/mnesia" }] }],
            },
        }))
        .unwrap();
        let replicas = replicas(&set(), &[pod]);
        let claims: Vec<_> = replicas.iter().map(|replica| replica.claim.as_deref()).collect();
        assert_eq!(claims, [Some("data-g-0"), Some("data-g-1")]);
        let [first, second] = replicas.as_slice() else { panic!("two replicas") };
        assert_eq!((first.node.as_deref(), first.apart_by.len()), (Some("n"), 1));
        assert_eq!((second.node.as_deref(), second.node_selector.len()), (None, 1));
    }

    #[test]
    fn a_claim_bound_to_nothing_is_lost() {
        let claim = |phase| -> PersistentVolumeClaim {
            serde_json::from_value(json!({ "status": { "phase": phase } })).unwrap()
        };
        let volume = |phase| -> PersistentVolume {
            serde_json::from_value(json!({ "status": { "phase": phase } })).unwrap()
        };
        let cases = vec![
            (claim("Bound"), None, Phase::Lost),
            (claim("Bound"), Some(volume("Bound")), Phase::Bound),
            (claim("Bound"), Some(volume("Failed")), Phase::Failed),
            (claim("Pending"), None, Phase::Pending),
            (claim("Huh"), None, Phase::Unknown),
        ];
        for (claim, volume, want) in cases {
            assert_eq!(phase(&claim, volume.as_ref()), want);
        }
    }
}
