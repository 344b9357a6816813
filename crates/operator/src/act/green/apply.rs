//! Applies one object of ours.

use crate::act::kubernetes::{Attempt, MANAGER, api, call, check_ours};
use crate::body::Scene;
use crate::error::ActError;
use k8s_openapi::NamespaceResourceScope;
use kube::api::{Patch, PatchParams};
use kube::{Api, Resource};
use serde_json::{Value, json};

/// Applies `object`. One that exists must be ours and unchanged since it was looked at; then the write is
/// forced, since nobody else has a say in it. One that does not is made without force: what appears meanwhile
/// is not taken.
pub(super) async fn apply<K>(scene: &Scene<'_>, object: &Value) -> Result<(), ActError>
where
    K: Resource<Scope = NamespaceResourceScope> + k8s_openapi::Resource,
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
    K::DynamicType: Default,
{
    let kind = <K as k8s_openapi::Resource>::KIND;
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let api: Api<K> = api(scene);
    let found = call(Attempt { verb: "get", kind, name }, api.get_metadata_opt(name)).await?;
    let mut object = object.clone();
    let params = PatchParams { force: found.is_some(), ..PatchParams::apply(MANAGER) };
    if let Some(found) = found {
        check_ours(scene, kind, &found.metadata)?;
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("uid".to_owned(), json!(found.metadata.uid));
            metadata.insert("resourceVersion".to_owned(), json!(found.metadata.resource_version));
        }
    }
    let attempt = Attempt { verb: "apply", kind, name };
    call(attempt, api.patch(name, &params, &Patch::Apply(&object))).await.map(|_| ())
}
