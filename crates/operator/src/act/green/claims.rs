//! Green's claims: whose they are, and whether there are any.

use super::blueprint::Blueprint;
use crate::act::kubernetes::{Attempt, api, call, check_ours};
use crate::body::Scene;
use crate::error::ActError;
use ::api::{LABEL_BROKER, LABEL_MIGRATION};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::api::{ListParams, ObjectMeta};

const KIND: &str = "PersistentVolumeClaim";

/// Refuses claims of another migration under the names that green's pods will look for: a StatefulSet takes
/// whatever has the right name.
pub(super) async fn check_claims(scene: &Scene<'_>, green: &Blueprint<'_>) -> Result<(), ActError> {
    let api = api::<PersistentVolumeClaim>(scene);
    for ordinal in 0..green.template.replicas {
        let name = format!("data-{}-{ordinal}", green.name);
        let attempt = Attempt { verb: "get", kind: KIND, name: &name };
        if let Some(claim) = call(attempt, api.get_metadata_opt(&name)).await? {
            check_ours(scene, KIND, &claim.metadata)?;
        }
    }
    Ok(())
}

/// Whether green has claims that are not on their way out.
pub(super) async fn has_claims(scene: &Scene<'_>, green: &Blueprint<'_>) -> Result<bool, ActError> {
    let claims = list(scene, green.name).await?;
    Ok(claims.iter().any(|claim| claim.deletion_timestamp.is_none()))
}

/// The claims that carry our labels.
pub(super) async fn list(scene: &Scene<'_>, broker: &str) -> Result<Vec<ObjectMeta>, ActError> {
    let labels = format!("{LABEL_MIGRATION}={},{LABEL_BROKER}={broker}", scene.plan.uid);
    let params = ListParams::default().labels(&labels);
    let attempt = Attempt { verb: "list", kind: KIND, name: broker };
    let listed = call(attempt, api::<PersistentVolumeClaim>(scene).list_metadata(&params)).await?;
    Ok(listed.items.into_iter().map(|claim| claim.metadata).collect())
}
