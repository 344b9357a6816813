//! Taking a broker's pods away and keeping its StatefulSet.

use super::{Attempt, MANAGER, api, call};
use crate::body::Scene;
use crate::error::ActError;
use k8s_openapi::api::apps::v1::StatefulSet;
use kube::api::{Patch, PatchParams};
use serde_json::json;

const KIND: &str = "StatefulSet";

/// Scales blue's StatefulSet to zero. Its claims, if it has any, stay as its own retention policy says.
pub async fn scale_blue_to_zero(scene: &Scene<'_>) -> Result<(), ActError> {
    scale_to_zero(scene, &scene.plan.blue.stateful_set_name).await
}

/// Scales a StatefulSet to zero. One that is gone, or at zero already, is left alone.
pub async fn scale_to_zero(scene: &Scene<'_>, name: &str) -> Result<(), ActError> {
    let api = api::<StatefulSet>(scene);
    let found = call(Attempt { verb: "get", kind: KIND, name }, api.get_opt(name)).await?;
    let Some(set) = found else { return Ok(()) };
    if set.spec.as_ref().and_then(|spec| spec.replicas) == Some(0) {
        return Ok(());
    }
    let patch = json!({
        "metadata": { "resourceVersion": set.metadata.resource_version, "uid": set.metadata.uid },
        "spec": { "replicas": 0 },
    });
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    let attempt = Attempt { verb: "scale to zero", kind: KIND, name };
    call(attempt, api.patch(name, &params, &Patch::Merge(&patch))).await.map(|_| ())
}
