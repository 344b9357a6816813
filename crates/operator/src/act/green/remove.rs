//! Removes green: only what carries this migration's uid.

use super::claims;
use crate::act::kubernetes::{Attempt, api, call, delete, is_code, scale_to_zero};
use crate::body::{Memory, Scene};
use crate::error::ActError;
use ::api::{LABEL_BROKER, LABEL_MIGRATION};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::Resource;
use kube::api::{DeleteParams, ListParams, ObjectMeta, Preconditions};

/// Seconds a pod of a green that is removed may take to stop. Its hook would wait for a quorum that never
/// comes.
const GRACE: u32 = 5;

/// How often an object that somebody else is writing is looked at again before the effect gives up.
const LOOKS: usize = 5;

/// Removes green with its data. The StatefulSet is scaled to zero first, so that nothing grows back, and goes
/// last: as long as it is there, everybody sees that green is not gone. Its claims and its Secret live and die
/// together. Cut anywhere: the same effect again removes the rest. Pods and claims may still be on their way
/// out when it returns.
pub async fn remove(scene: &Scene<'_>, memory: &mut Memory) -> Result<(), ActError> {
    memory.import.forget_imported();
    let green = &scene.plan.green;
    let name = green.stateful_set_name.as_str();
    if !is_ours::<StatefulSet>(scene, name).await? {
        return Ok(());
    }
    // Pods that stop already keep the short grace that we give them; the StatefulSet's own would be the long one.
    stop_pods(scene, name).await?;
    scale_to_zero(scene, name).await?;
    stop_pods(scene, name).await?;
    delete_ours::<Service>(scene, &format!("{name}-preview")).await?;
    delete_ours::<Service>(scene, &green.service_name).await?;
    delete_ours::<NetworkPolicy>(scene, name).await?;
    delete_ours::<PodDisruptionBudget>(scene, name).await?;
    delete_ours::<ConfigMap>(scene, &format!("{name}-config")).await?;
    delete_ours::<RoleBinding>(scene, name).await?;
    delete_ours::<Role>(scene, name).await?;
    delete_ours::<ServiceAccount>(scene, name).await?;
    let claims = api::<PersistentVolumeClaim>(scene);
    for claim in claims::list(scene, name).await? {
        delete(&claims, "PersistentVolumeClaim", &claim).await?;
    }
    delete_ours::<Secret>(scene, &green.credentials_secret.name).await?;
    delete_ours::<StatefulSet>(scene, name).await
}

/// Deletes the object of that name if this migration made it; leaves another's alone. Controllers write the
/// status of some of these: then it is looked at again.
async fn delete_ours<K>(scene: &Scene<'_>, name: &str) -> Result<(), ActError>
where
    K: Resource<Scope = NamespaceResourceScope> + k8s_openapi::Resource,
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
    K::DynamicType: Default,
{
    let kind = <K as k8s_openapi::Resource>::KIND;
    let mut outcome = Ok(());
    for _ in 0..LOOKS {
        let Some(found) = ours::<K>(scene, name).await? else { return Ok(()) };
        outcome = delete(&api::<K>(scene), kind, &found).await;
        match &outcome {
            Err(ActError::Kubernetes { source, .. }) if is_code(source, 409) => {}
            _ => break,
        }
    }
    outcome
}

async fn is_ours<K>(scene: &Scene<'_>, name: &str) -> Result<bool, ActError>
where
    K: Resource<Scope = NamespaceResourceScope> + k8s_openapi::Resource,
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
    K::DynamicType: Default,
{
    Ok(ours::<K>(scene, name).await?.is_some())
}

/// The object of that name, where it is there and this migration made it.
async fn ours<K>(scene: &Scene<'_>, name: &str) -> Result<Option<ObjectMeta>, ActError>
where
    K: Resource<Scope = NamespaceResourceScope> + k8s_openapi::Resource,
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
    K::DynamicType: Default,
{
    let kind = <K as k8s_openapi::Resource>::KIND;
    let found = call(Attempt { verb: "get", kind, name }, api::<K>(scene).get_metadata_opt(name)).await?;
    let Some(found) = found else { return Ok(None) };
    let owner = found.metadata.labels.as_ref().and_then(|labels| labels.get(LABEL_MIGRATION));
    if owner != Some(&scene.plan.uid) {
        tracing::warn!(kind, name, "left alone: this migration did not make it");
        return Ok(None);
    }
    Ok(Some(found.metadata))
}

/// Cuts the pods' grace period short: the broker and its data go together.
async fn stop_pods(scene: &Scene<'_>, broker: &str) -> Result<(), ActError> {
    let api = api::<Pod>(scene);
    let labels = format!("{LABEL_MIGRATION}={},{LABEL_BROKER}={broker}", scene.plan.uid);
    let params = ListParams::default().labels(&labels);
    let list = Attempt { verb: "list", kind: "Pod", name: broker };
    for pod in call(list, api.list_metadata(&params)).await?.items {
        let name = pod.metadata.name.unwrap_or_default();
        // By uid alone: a pod's resourceVersion changes all the time while it stops.
        let exactly = Preconditions { uid: pod.metadata.uid, resource_version: None };
        let params = DeleteParams::default().grace_period(GRACE).preconditions(exactly);
        let attempt = Attempt { verb: "delete", kind: "Pod", name: &name };
        match call(attempt, api.delete(&name, &params)).await {
            Err(ActError::Kubernetes { source, .. })
                if [404, 409].iter().any(|code| is_code(&source, *code)) => {}
            other => other.map(|_| ())?,
        }
    }
    Ok(())
}
