//! What a new leader does first with each migration: it touches it, so that whatever a former leader has read
//! is old and its writes are refused (invariant 13). The finalizer is put on in the same write.

use crate::body::Body;
use crate::finalizer;
use api::RabbitMQMigration;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

/// Annotation with the tag of the epoch that works on the migration.
pub const EPOCH: &str = "rabbitmq-migration.io/epoch";

/// True where this epoch has touched it and the finalizer is on.
pub fn is_made(body: &Body, migration: &RabbitMQMigration) -> bool {
    let annotations = migration.metadata.annotations.as_ref();
    let epoch = annotations.and_then(|annotations| annotations.get(EPOCH));
    epoch == Some(&body.epoch.tag()) && (finalizer::is_on(migration) || is_deleted(migration))
}

/// Touches it. Carries the resourceVersion that was read: of two that claim one is refused.
pub async fn make(body: &Body, migration: &RabbitMQMigration) -> Result<(), kube::Error> {
    let metadata = &migration.metadata;
    let mut finalizers = metadata.finalizers.clone().unwrap_or_default();
    // Nothing new may be put on an object that goes.
    if !finalizer::is_on(migration) && !is_deleted(migration) {
        finalizers.push(api::FINALIZER.to_owned());
    }
    let patch = json!({"metadata": {
        "resourceVersion": metadata.resource_version,
        "finalizers": finalizers,
        "annotations": { EPOCH: body.epoch.tag() },
    }});
    let api: Api<RabbitMQMigration> =
        Api::namespaced(body.client.clone(), metadata.namespace.as_deref().unwrap_or_default());
    let name = metadata.name.as_deref().unwrap_or_default();
    api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.map(|_| ())
}

const fn is_deleted(migration: &RabbitMQMigration) -> bool {
    migration.metadata.deletion_timestamp.is_some()
}
