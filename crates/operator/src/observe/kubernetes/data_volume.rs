//! Where a broker keeps its data: on a claim, on something that dies with the pod, or nobody can tell.

use k8s_openapi::api::apps::v1::StatefulSetSpec;
use k8s_openapi::api::core::v1::{Container, PodSpec, Volume, VolumeMount};

/// Data directories of the common images: the official one, Bitnami's present and former one.
const DIRECTORIES: [&str; 3] =
    ["/var/lib/rabbitmq/mnesia", "/opt/bitnami/rabbitmq/.rabbitmq/mnesia", "/bitnami/rabbitmq/mnesia"];
/// Variables that move the data directory: RabbitMQ's own two and Bitnami's.
const VARIABLES: [&str; 3] = ["RABBITMQ_MNESIA_DIR", "RABBITMQ_MNESIA_BASE", "RABBITMQ_DATA_DIR"];
/// AMQP's port: who declares it is the broker.
const AMQP: i32 = 5672;

/// The broker's container: the one that declares the AMQP port, else the one named after RabbitMQ, else the
/// first.
pub fn broker_container(pod: &PodSpec) -> Option<&Container> {
    let declares = |c: &&Container| c.ports.iter().flatten().any(|port| port.container_port == AMQP);
    pod.containers
        .iter()
        .find(declares)
        .or_else(|| pod.containers.iter().find(|c| c.name.contains("rabbit")))
        .or_else(|| pod.containers.first())
}

/// Whether the data directory is on a claim; `None` where the volumes do not tell.
pub fn is_persistent(spec: &StatefulSetSpec) -> Option<bool> {
    let pod = spec.template.spec.as_ref()?;
    let container = broker_container(pod)?;
    let Some(mount) = data_mount(container) else {
        // Nothing is mounted there. With a claim elsewhere the image may keep its data on that.
        let elsewhere =
            container.volume_mounts.iter().flatten().any(|m| is_claim(spec, pod, &m.name) == Some(true));
        return if elsewhere { None } else { Some(false) };
    };
    is_claim(spec, pod, &mount.name)
}

/// The mount that holds the data directory.
pub fn data_mount(container: &Container) -> Option<&VolumeMount> {
    let set = container.env.iter().flatten().filter(|var| VARIABLES.contains(&var.name.as_str()));
    let set: Vec<&str> = set.filter_map(|var| var.value.as_deref()).collect();
    let directories: &[&str] = if set.is_empty() { &DIRECTORIES } else { &set };
    container
        .volume_mounts
        .iter()
        .flatten()
        .filter(|mount| directories.iter().any(|directory| holds(&mount.mount_path, directory)))
        .max_by_key(|mount| mount.mount_path.trim_end_matches('/').len())
}

/// True where `directory` is `mount` or lies below it.
fn holds(mount: &str, directory: &str) -> bool {
    let mount = mount.trim_end_matches('/');
    directory.strip_prefix(mount).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether the volume `name` is a claim; `None` for kinds that may or may not outlive the pod.
fn is_claim(spec: &StatefulSetSpec, pod: &PodSpec, name: &str) -> Option<bool> {
    let templates = spec.volume_claim_templates.iter().flatten();
    if templates.into_iter().any(|claim| claim.metadata.name.as_deref() == Some(name)) {
        return Some(true);
    }
    let volume = pod.volumes.iter().flatten().find(|volume| volume.name == name)?;
    outlives_pod(volume)
}

fn outlives_pod(volume: &Volume) -> Option<bool> {
    if volume.persistent_volume_claim.is_some() {
        return Some(true);
    }
    // A generic ephemeral volume is a claim too, but it is deleted with its pod.
    (volume.empty_dir.is_some() || volume.ephemeral.is_some()).then_some(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn spec(mounts: &Value, volumes: &Value, templates: &Value, env: &Value) -> StatefulSetSpec {
        serde_json::from_value(json!({
            "selector": {}, "serviceName": "h",
            "volumeClaimTemplates": templates,
            "template": { "spec": {
                "volumes": volumes,
                "containers": [{ "name": "rabbitmq", "volumeMounts": mounts, "env": env }],
            }},
        }))
        .unwrap()
    }

    #[test]
    fn the_volume_below_the_data_directory_decides() {
        let claim = json!([{ "metadata": { "name": "data" } }]);
        let empty = json!([{ "name": "data", "emptyDir": {} }]);
        let none = json!([]);
        let at = |path: &str| json!([{ "name": "data", "mountPath": path }]);
        let cases = vec![
            ("official, claim", spec(&at("/var/lib/rabbitmq"), &none, &claim, &none), Some(true)),
            ("cluster-operator", spec(&at("/var/lib/rabbitmq/mnesia/"), &none, &claim, &none), Some(true)),
            (
                "bitnami, emptyDir",
                spec(&at("/opt/bitnami/rabbitmq/.rabbitmq/mnesia"), &empty, &none, &none),
                Some(false),
            ),
            ("nothing mounted", spec(&none, &none, &none, &none), Some(false)),
            ("claim elsewhere", spec(&at("/data"), &none, &claim, &none), None),
            (
                "claim where a variable says",
                spec(
                    &at("/data"),
                    &none,
                    &claim,
                    &json!([{"name": "RABBITMQ_MNESIA_BASE", "value": "/data/mnesia"}]),
                ),
                Some(true),
            ),
            (
                "a name that only begins alike",
                spec(&at("/var/lib/rabbit"), &empty, &none, &none),
                Some(false),
            ),
            (
                "host path",
                spec(
                    &at("/var/lib/rabbitmq"),
                    &json!([{"name": "data", "hostPath": {"path": "/x"}}]),
                    &none,
                    &none,
                ),
                None,
            ),
        ];
        for (name, spec, want) in cases {
            assert_eq!(is_persistent(&spec), want, "{name}");
        }
    }

    #[test]
    fn the_deepest_mount_wins() {
        let mounts = json!([
            { "name": "home", "mountPath": "/var/lib/rabbitmq" },
            { "name": "data", "mountPath": "/var/lib/rabbitmq/mnesia" },
        ]);
        let volumes = json!([{ "name": "home", "emptyDir": {} }]);
        let spec = spec(&mounts, &volumes, &json!([{ "metadata": { "name": "data" } }]), &json!([]));
        assert_eq!(is_persistent(&spec), Some(true));
    }
}
