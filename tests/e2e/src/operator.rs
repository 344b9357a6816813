//! The operator of a run: installed, found and killed.

use crate::cluster::{Cluster, OPERATOR_NAMESPACE};
use crate::error::{Error, Result};
use base64::Engine as _;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::path::Path;

/// Labels of the operator's pods.
pub const LABELS: &str = "app.kubernetes.io/name=rabbitmq-migration-operator";
/// The name of its Deployment and of its Lease.
pub const NAME: &str = "rabbitmq-migration-operator";
/// How a process ends that SIGKILL ended.
const KILLED: i32 = 137;

/// Installs the operator from `deploy/` and waits until it is ready.
pub async fn install(cluster: &Cluster, root: &Path) -> Result<()> {
    install_definitions(cluster, root).await?;
    let overlay = root.join("deploy/overlays/lab");
    let overlay = overlay.display().to_string();
    cluster.kubectl(&["apply", "--server-side", "--force-conflicts", "-k", &overlay]).await?;
    // The image's name stays the same however often it is built: pods are renewed where the program differs.
    let annotations = json!({ "operator-digest": digest_of_program()? });
    let patch = json!({ "spec": { "template": { "metadata": { "annotations": annotations } } } });
    let deployment = format!("deployment/{NAME}");
    let there = ["-n", OPERATOR_NAMESPACE];
    cluster.kubectl(&[&there[..], &["patch", &deployment, "-p", &patch.to_string()]].concat()).await?;
    let rollout = ["rollout", "status", &deployment, "--timeout=120s"];
    cluster.kubectl(&[&there[..], &rollout[..]].concat()).await.map(|_| ())
}

/// Digest of the operator's program, which lies beside ours.
fn digest_of_program() -> Result<String> {
    let path = std::env::current_exe().map(|ourselves| ourselves.with_file_name("operator"));
    let read = path.and_then(|path| std::fs::read(&path));
    let failed = |source| Error::File { path: "the operator's program".to_owned(), source };
    let digest = Sha256::digest(read.map_err(failed)?);
    Ok(base64::engine::general_purpose::STANDARD.encode(digest))
}

/// Installs the custom resource definition and waits until it can be used.
pub async fn install_definitions(cluster: &Cluster, root: &Path) -> Result<()> {
    let crds = root.join("crds").display().to_string();
    cluster.kubectl(&["apply", "--server-side", "--force-conflicts", "-f", &crds]).await?;
    let established = [
        "wait",
        "--for=condition=Established",
        "crd/rabbitmqmigrations.rabbitmq-migration.io",
        "--timeout=30s",
    ];
    // Right after it was made the object has no conditions at all, which kubectl takes for an error.
    cluster
        .wait("the custom resource definition", 30, || async {
            Ok(cluster.kubectl(&established).await.map(|_| ()).map_err(|error| error.to_string()))
        })
        .await
}

/// The pod that leads, if one does.
pub async fn leader(cluster: &Cluster) -> Result<Option<String>> {
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), OPERATOR_NAMESPACE);
    let lease = leases.get_opt(NAME).await.map_err(|source| Error::Kubernetes {
        attempt: format!("get lease {NAME}"),
        source: Box::new(source),
    })?;
    let holder = lease.and_then(|lease| lease.spec?.holder_identity).unwrap_or_default();
    let pod = holder.split('_').next().unwrap_or_default();
    Ok((!pod.is_empty()).then(|| pod.to_owned()))
}

/// `kill -9` of the operator that leads. It keeps the lease until that expires; the kill is proven by how the
/// process ended. Then its pod is deleted, so that no back-off of restarts adds up. Tells who was killed, or
/// nothing where nobody led.
pub async fn kill_leader(cluster: &Cluster) -> Result<Option<String>> {
    let Some(pod) = leader(cluster).await? else { return Ok(None) };
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), OPERATOR_NAMESPACE);
    let failed = |attempt: &str| {
        let attempt = format!("{attempt} pod {pod}");
        move |source| Error::Kubernetes { attempt, source: Box::new(source) }
    };
    if pods.get_opt(&pod).await.map_err(failed("get"))?.is_none() {
        // Its lease outlives it.
        return Ok(None);
    }
    cluster.lab(&["signal", "kill", &pod, "--namespace", OPERATOR_NAMESPACE]).await?;
    cluster
        .wait(&format!("the end of the process in {pod} by SIGKILL"), 30, || async {
            let found = pods.get_opt(&pod).await.map_err(failed("get"))?;
            Ok(match found.as_ref().and_then(last_exit) {
                Some(KILLED) => Ok(()),
                other => Err(format!("exit code {other:?}")),
            })
        })
        .await?;
    cluster
        .kubectl(&["-n", OPERATOR_NAMESPACE, "delete", "pod", &pod, "--grace-period=0", "--force"])
        .await?;
    Ok(Some(pod))
}

/// Takes the operator away as a person does. The custom resource definition stays.
pub async fn uninstall(cluster: &Cluster) -> Result<()> {
    let deployment = [
        "-n",
        OPERATOR_NAMESPACE,
        "delete",
        "deployment",
        NAME,
        "--ignore-not-found",
        "--cascade=foreground",
    ];
    cluster.kubectl(&[&deployment[..], &["--timeout=120s"]].concat()).await.map(|_| ())
}

/// The operator and everything that could start it again go away: the leader by `kill -9`, so that it undoes
/// nothing and gives nothing back, then the Deployment.
pub async fn destroy(cluster: &Cluster) -> Result<()> {
    if let Some(pod) = leader(cluster).await? {
        cluster.lab(&["signal", "kill", &pod, "--namespace", OPERATOR_NAMESPACE]).await?;
    }
    let all = ["delete", "deployment,pods", "--all", "--grace-period=0", "--force"];
    cluster.kubectl(&[&["-n", OPERATOR_NAMESPACE], &all[..]].concat()).await?;
    cluster
        .wait("the end of the operator", 60, || async {
            let pods = cluster.pods(OPERATOR_NAMESPACE, LABELS).await?;
            Ok(if pods.is_empty() { Ok(()) } else { Err(format!("{} pods", pods.len())) })
        })
        .await
}

/// How the container ended last: it may run again already.
fn last_exit(pod: &Pod) -> Option<i32> {
    let container = pod.status.as_ref()?.container_statuses.as_ref()?.first()?;
    let ended = |state: Option<&k8s_openapi::api::core::v1::ContainerState>| {
        state.and_then(|state| state.terminated.as_ref()).map(|terminated| terminated.exit_code)
    };
    ended(container.state.as_ref()).or_else(|| ended(container.last_state.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::{KILLED, last_exit};
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    #[test]
    fn a_killed_process_is_seen_though_its_container_runs_again() {
        let pod = |state: serde_json::Value| -> Pod {
            let status = json!({"containerStatuses": [state]});
            serde_json::from_value(json!({"metadata": {"name": "p"}, "status": status})).expect("a pod")
        };
        let dead = json!({"terminated": {"exitCode": KILLED}});
        let image = json!({"name": "o", "image": "i", "imageID": "i", "ready": true, "restartCount": 1});
        let with = |key: &str, state: &serde_json::Value| {
            let mut container = image.clone();
            container[key] = state.clone();
            container
        };
        assert_eq!(last_exit(&pod(with("state", &dead))), Some(KILLED));
        assert_eq!(last_exit(&pod(with("lastState", &dead))), Some(KILLED));
        assert_eq!(last_exit(&pod(with("state", &json!({"running": {}})))), None);
    }
}
