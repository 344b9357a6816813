//! The finalizer: put on before anything is made, taken off when nothing of ours is left, or after a while.

use crate::body::Body;
use api::RabbitMQMigration;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

/// After so many seconds a deleted object goes even though something of ours may be left.
const PATIENCE_SECONDS: i64 = 300;

/// True where it is on the object.
pub fn is_on(migration: &RabbitMQMigration) -> bool {
    migration.metadata.finalizers.iter().flatten().any(|f| f == api::FINALIZER)
}

/// True where waiting any longer helps nobody.
pub fn is_overdue(migration: &RabbitMQMigration) -> bool {
    let asked = migration.metadata.deletion_timestamp.as_ref();
    asked.is_some_and(|at| Timestamp::now().as_second() - at.0.as_second() > PATIENCE_SECONDS)
}

/// True where nothing can be cleaned any more: the namespace goes, and both brokers with it.
///
/// Where the namespace cannot be read it is taken as staying: cleaning goes on for as long as it may.
pub async fn is_pointless(body: &Body, migration: &RabbitMQMigration) -> bool {
    let namespaces: Api<Namespace> = Api::all(body.client.clone());
    let name = migration.metadata.namespace.as_deref().unwrap_or_default();
    match namespaces.get_opt(name).await {
        Ok(Some(namespace)) => namespace.metadata.deletion_timestamp.is_some(),
        Ok(None) => true,
        Err(error) => {
            tracing::warn!(%error, namespace = name, "whether the namespace is terminating cannot be read");
            false
        }
    }
}

/// Takes it off: the object goes.
pub async fn remove(body: &Body, migration: &RabbitMQMigration) -> Result<(), kube::Error> {
    let metadata = &migration.metadata;
    let mut finalizers = metadata.finalizers.clone().unwrap_or_default();
    finalizers.retain(|f| f != api::FINALIZER);
    let api: Api<RabbitMQMigration> =
        Api::namespaced(body.client.clone(), metadata.namespace.as_deref().unwrap_or_default());
    let patch = json!({"metadata": {"resourceVersion": metadata.resource_version, "finalizers": finalizers}});
    let name = metadata.name.as_deref().unwrap_or_default();
    api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.map(|_| ())
}
