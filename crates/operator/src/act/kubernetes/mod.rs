//! Acts in Kubernetes: the SwitchRecord, the Services, blue's retirement. Each write carries the
//! resourceVersion of the object that was looked at, so that a former leader's is refused.

mod point;
mod record;
mod scale;

pub use point::point;
pub use record::{RECORD_KEY, release_record, remove_record, store_record};
pub use scale::{scale_blue_to_zero, scale_to_zero};

use crate::body::Scene;
use crate::error::ActError;
use ::api::LABEL_MIGRATION;
pub use decide::names::MANAGER;
use k8s_openapi::NamespaceResourceScope;
use kube::api::{DeleteParams, ObjectMeta, Preconditions};
use kube::{Api, Resource};
use std::time::Duration;

/// How long one call may take. Longer than a read's: admission webhooks may have their say.
const CALL: Duration = Duration::from_secs(15);

/// The objects of kind `K` in the migration's namespace.
pub(super) fn api<K>(scene: &Scene<'_>) -> Api<K>
where
    K: Resource<Scope = NamespaceResourceScope>,
    K::DynamicType: Default,
{
    Api::namespaced(scene.body.client.clone(), &scene.plan.namespace)
}

/// What is done to which object, for errors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt<'a> {
    /// The verb.
    pub verb: &'static str,
    /// The kind of object.
    pub kind: &'static str,
    /// Its name.
    pub name: &'a str,
}

impl Attempt<'_> {
    /// The error with its cause.
    pub fn failed(self, source: kube::Error) -> ActError {
        ActError::Kubernetes {
            attempt: self.verb,
            kind: self.kind,
            name: self.name.to_owned(),
            source: Box::new(source),
        }
    }
}

/// Waits for a call. Cut by the timeout: the write may have happened; every effect is repeated by looking
/// again.
pub(super) async fn call<T>(
    attempt: Attempt<'_>,
    call: impl Future<Output = kube::Result<T>>,
) -> Result<T, ActError> {
    let answer = match tokio::time::timeout(CALL, call).await {
        Ok(answer) => answer,
        Err(elapsed) => Err(kube::Error::Service(elapsed.into())),
    };
    answer.map_err(|source| attempt.failed(source))
}

/// Refuses an object that another migration, or nobody, made: identity is uid, never name.
pub(super) fn check_ours(
    scene: &Scene<'_>,
    kind: &'static str,
    metadata: &ObjectMeta,
) -> Result<(), ActError> {
    let owner = metadata.labels.as_ref().and_then(|labels| labels.get(LABEL_MIGRATION));
    if owner == Some(&scene.plan.uid) {
        return Ok(());
    }
    Err(ActError::NotOurs {
        kind,
        name: metadata.name.clone().unwrap_or_default(),
        owner: owner.map_or_else(|| "nobody we know".to_owned(), |uid| format!("migration {uid}")),
    })
}

/// Deletes exactly the object that was looked at. One that is gone already is fine.
pub(super) async fn delete<K>(api: &Api<K>, kind: &'static str, object: &ObjectMeta) -> Result<(), ActError>
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let name = object.name.clone().unwrap_or_default();
    let params = DeleteParams::background().preconditions(Preconditions {
        resource_version: object.resource_version.clone(),
        uid: object.uid.clone(),
    });
    let attempt = Attempt { verb: "delete", kind, name: &name };
    match call(attempt, api.delete(&name, &params)).await {
        Err(ActError::Kubernetes { source, .. }) if is_code(&source, 404) => Ok(()),
        other => other.map(|_| ()),
    }
}

/// True for an answer of the API server with that code.
pub(super) fn is_code(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}
