//! Reads Kubernetes: one file per kind of fact. Each read has a timeout; a failure says what was attempted.

mod credentials;
mod data_volume;
mod others;
mod permissions;
mod pods;
mod probe_commands;
mod record;
mod routes;
mod services;
mod stateful_set;
mod storage;
mod volumes;

pub use credentials::credentials;
pub use others::others;
pub use permissions::{needs_of_any_plan, permissions};
pub use pods::pods;
pub use record::record;
pub use routes::routes;
pub use services::{entrances, services};
pub use stateful_set::{TEMPLATE_DIGEST, stateful_set};
pub use storage::{nodes, storage_class};
pub use volumes::volumes;

use crate::body::Scene;
use decide::side::Side;
use decide::world::Reading;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::StatefulSet;
use kube::{Api, Resource};
use std::time::Duration;

/// How long one call may take. The API server answers in milliseconds; a pass must not hang on one that is
/// gone.
const CALL: Duration = Duration::from_secs(5);

/// An answer, or what was attempted and why it failed.
pub(super) type Answer<T> = Result<T, String>;

/// Turns an answer into a reading.
fn reading<T>(answer: Answer<T>) -> Reading<T> {
    match answer {
        Ok(value) => Reading::Seen(value),
        Err(why) => Reading::Failed(why),
    }
}

/// The objects of kind `K` in the migration's namespace.
fn api<K>(scene: &Scene<'_>) -> Api<K>
where
    K: Resource<Scope = NamespaceResourceScope>,
    K::DynamicType: Default,
{
    Api::namespaced(scene.body.client.clone(), &scene.plan.namespace)
}

/// Waits for a call; an error names `attempt`.
async fn call<T>(attempt: &str, call: impl Future<Output = kube::Result<T>>) -> Answer<T> {
    match tokio::time::timeout(CALL, call).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(kube::Error::Api(status))) => Err(format!("{attempt}: {}", status.message)),
        Ok(Err(error)) => Err(format!("{attempt}: {error}")),
        Err(_) => Err(format!("{attempt}: no answer within {} s", CALL.as_secs())),
    }
}

/// The StatefulSet of a side, where it exists.
async fn get_stateful_set(scene: &Scene<'_>, side: Side) -> Answer<Option<StatefulSet>> {
    let name = &scene.plan.broker(side).stateful_set_name;
    call(&format!("get statefulset {name}"), api::<StatefulSet>(scene).get_opt(name)).await
}
