//! Points Services: applies the whole selector and nothing else.

use super::{Attempt, MANAGER, api, call};
use crate::body::{Memory, Scene};
use crate::error::ActError;
use decide::effect::Pointing;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

const KIND: &str = "Service";

/// Points the Services in order; stops at the first that is refused. An unforced write that meets another
/// manager fails with the API server's conflict, which names him. Cut anywhere: some Services are pointed,
/// and the same effect again points the rest.
pub async fn point(scene: &Scene<'_>, memory: &mut Memory, pointings: &[Pointing]) -> Result<(), ActError> {
    let api = api::<Service>(scene);
    for pointing in pointings {
        point_one(&api, pointing).await?;
        memory.world.progress.pointed.insert(pointing.service.clone(), Timestamp::now());
    }
    Ok(())
}

async fn point_one(api: &Api<Service>, pointing: &Pointing) -> Result<(), ActError> {
    let name = pointing.service.as_str();
    let found = call(Attempt { verb: "get", kind: KIND, name }, api.get_opt(name)).await?;
    let service = found.ok_or_else(|| ActError::Missing { what: format!("Service {name}") })?;
    let uid = service.metadata.uid.clone().unwrap_or_default();
    if uid != pointing.uid {
        return Err(ActError::NotOurs { kind: KIND, name: name.to_owned(), owner: format!("uid {uid}") });
    }
    let body = body(pointing, service.metadata.resource_version.as_deref());
    let params = PatchParams { force: pointing.force, ..PatchParams::apply(MANAGER) };
    let attempt = Attempt { verb: if pointing.force { "apply by force" } else { "apply" }, kind: KIND, name };
    call(attempt, api.patch(name, &params, &Patch::Apply(&body))).await.map(|_| ())
}

/// The applied configuration. Whatever stands here becomes ours, so nothing but the selector does.
fn body(pointing: &Pointing, resource_version: Option<&str>) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": KIND,
        "metadata": { "name": pointing.service, "uid": pointing.uid, "resourceVersion": resource_version },
        "spec": { "selector": pointing.selector },
    })
}
