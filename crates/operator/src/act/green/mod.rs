//! Installs and removes green. Nothing of green has an owner: it outlives the migration. Everything carries
//! the migration's uid as a label; what carries another's is refused, never adopted.

mod apply;
mod blueprint;
mod claims;
mod conf;
mod config;
mod container;
mod network_policy;
mod pdb;
mod ports;
mod quantity;
mod rbac;
mod remove;
mod secrets;
mod services;
mod stateful_set;

#[cfg(test)]
pub use blueprint::tests::plan as example_plan;
pub use remove::remove;

use crate::body::{Memory, Scene};
use crate::error::ActError;
use crate::observe::kubernetes as observe;
use apply::apply;
use blueprint::Blueprint;
use decide::side::Side;
use decide::world::Reading;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};

/// Installs green as the template says: whatever its pods need first, the StatefulSet last. Cut anywhere: the
/// same effect again completes it. Reads the moved Services and blue anew, since green's labels and port
/// names come from them.
pub async fn ensure(scene: &Scene<'_>, _memory: &mut Memory) -> Result<(), ActError> {
    let services = seen("the moved Services", observe::services(scene).await)?;
    let blue = seen("blue's StatefulSet", observe::stateful_set(scene, Side::Blue).await)?;
    let blueprint = Blueprint::new(scene.plan, &services, &blue.ports)?;
    secrets::ensure(scene, &blueprint).await?;
    apply::<ServiceAccount>(scene, &rbac::service_account(&blueprint)).await?;
    apply::<Role>(scene, &rbac::role(&blueprint)).await?;
    apply::<RoleBinding>(scene, &rbac::role_binding(&blueprint)).await?;
    apply::<ConfigMap>(scene, &config::config_map(&blueprint)).await?;
    apply::<Service>(scene, &services::headless(&blueprint)).await?;
    apply::<Service>(scene, &services::preview(&blueprint)).await?;
    apply::<PodDisruptionBudget>(scene, &pdb::disruption_budget(&blueprint)).await?;
    apply::<NetworkPolicy>(scene, &network_policy::network_policy(&blueprint)).await?;
    apply::<StatefulSet>(scene, &stateful_set::stateful_set(&blueprint)).await
}

fn seen<T>(what: &str, reading: Reading<T>) -> Result<T, ActError> {
    match reading {
        Reading::Seen(value) => Ok(value),
        Reading::Failed(why) => Err(ActError::Missing { what: format!("a reading of {what} ({why})") }),
        Reading::Unasked => Err(ActError::Missing { what: format!("a reading of {what}") }),
    }
}
