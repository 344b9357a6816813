//! Keeps the evidence in a ConfigMap of ours, so that a restart costs half a minute and not two days.

use super::ProbeState;
use crate::body::Scene;
use decide::gate::Evidence;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ObjectMeta, PostParams, Preconditions};
use kube::{Api, Resource};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Key of the evidence in the ConfigMap.
const EVIDENCE: &str = "evidence.json";
/// Key of what it depends on.
const KEY: &str = "key";
/// How long one call may take: a reading must not hang on what is only kept.
const CALL: Duration = Duration::from_secs(3);

/// Takes up what an earlier process stored for the same gate. Where it cannot be read it is tried again.
pub async fn load(scene: &Scene<'_>, state: &mut ProbeState, key: &str) {
    let stored = match get(scene).await {
        Ok(stored) => stored,
        Err(error) => {
            tracing::warn!(%error, "stored evidence cannot be read");
            return;
        }
    };
    let data = stored.filter(|map| is_ours(scene, map)).and_then(|map| map.data).unwrap_or_default();
    let evidence = data.get(KEY).filter(|stored| *stored == key).and_then(|_| data.get(EVIDENCE));
    let evidence = evidence.and_then(|text| serde_json::from_str::<Evidence>(text).ok());
    state.begin_anew(scene, key);
    state.evidence = evidence.unwrap_or_default();
    state.stored = Some((Instant::now(), state.evidence.newest));
}

/// Stores the evidence. A failure is tried again next time: nothing depends on it now.
pub async fn store(scene: &Scene<'_>, state: &mut ProbeState, key: &str) {
    let Ok(text) = serde_json::to_string(&state.evidence) else { return };
    let data = BTreeMap::from([(EVIDENCE.to_owned(), text), (KEY.to_owned(), key.to_owned())]);
    match put(scene, data).await {
        Ok(()) => state.stored = Some((Instant::now(), state.evidence.newest)),
        Err(error) => tracing::warn!(%error, "evidence cannot be stored"),
    }
}

/// Removes what is stored: the run was given up.
pub async fn forget(scene: &Scene<'_>) -> kube::Result<()> {
    let Some(map) = get(scene).await?.filter(|map| is_ours(scene, map)) else { return Ok(()) };
    let ObjectMeta { name, uid, resource_version, .. } = map.metadata;
    let preconditions = Some(Preconditions { uid, resource_version });
    let params = DeleteParams { preconditions, ..DeleteParams::default() };
    in_time(api(scene).delete(&name.unwrap_or_default(), &params)).await.map(drop)
}

/// Writes over what is there only if nobody else wrote meanwhile, and only if it is ours.
async fn put(scene: &Scene<'_>, data: BTreeMap<String, String>) -> kube::Result<()> {
    let name = scene.plan.names.evidence();
    let labels = BTreeMap::from([(api::LABEL_MIGRATION.to_owned(), scene.plan.uid.clone())]);
    let owners = scene.migration.controller_owner_ref(&()).into_iter().collect();
    let mut map = ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            labels: Some(labels),
            owner_references: Some(owners),
            ..ObjectMeta::default()
        },
        data: Some(data),
        ..ConfigMap::default()
    };
    match get(scene).await? {
        None => in_time(api(scene).create(&PostParams::default(), &map)).await.map(drop),
        Some(there) if is_ours(scene, &there) => {
            map.metadata.resource_version = there.metadata.resource_version;
            in_time(api(scene).replace(&name, &PostParams::default(), &map)).await.map(drop)
        }
        // Somebody else's object of this name: the evidence lives in memory only.
        Some(_) => Ok(()),
    }
}

async fn get(scene: &Scene<'_>) -> kube::Result<Option<ConfigMap>> {
    in_time(api(scene).get_opt(&scene.plan.names.evidence())).await
}

/// Identity is uid, never name.
fn is_ours(scene: &Scene<'_>, map: &ConfigMap) -> bool {
    let label = map.metadata.labels.as_ref().and_then(|labels| labels.get(api::LABEL_MIGRATION));
    label == Some(&scene.plan.uid)
}

fn api(scene: &Scene<'_>) -> Api<ConfigMap> {
    Api::namespaced(scene.body.client.clone(), &scene.plan.namespace)
}

async fn in_time<T>(call: impl Future<Output = kube::Result<T>>) -> kube::Result<T> {
    match tokio::time::timeout(CALL, call).await {
        Ok(answer) => answer,
        Err(elapsed) => Err(kube::Error::Service(elapsed.into())),
    }
}
