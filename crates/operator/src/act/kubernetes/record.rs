//! Stores, releases and removes the SwitchRecord.

use super::{Attempt, MANAGER, api, call, check_ours, delete};
use crate::body::Scene;
use crate::error::ActError;
use ::api::{LABEL_MIGRATION, RabbitMQMigration};
use decide::record::SwitchRecord;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;
use kube::api::{ObjectMeta, PostParams};

/// Key of the record in its Secret.
pub const RECORD_KEY: &str = "record.json";
/// Key of the commands by which a person reaches a stable side.
const MANUAL_EXIT_KEY: &str = "manual-exit.sh";
const KIND: &str = "Secret";

/// Stores the record, complete, in one write. Replaces an older one of this migration; refuses another's.
/// Cut: either the old or the new one is stored.
pub async fn store_record(scene: &Scene<'_>, record: &SwitchRecord) -> Result<(), ActError> {
    let name = scene.plan.names.record();
    let api = api::<Secret>(scene);
    let found = call(Attempt { verb: "get", kind: KIND, name: &name }, api.get_opt(&name)).await?;
    let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
    let mut secret = secret(scene, &name, record)?;
    let Some(found) = found else {
        return call(Attempt { verb: "create", kind: KIND, name: &name }, api.create(&params, &secret))
            .await
            .map(|_| ());
    };
    check_ours(scene, KIND, &found.metadata)?;
    if found.data == secret.data {
        return Ok(());
    }
    secret.metadata.resource_version = found.metadata.resource_version;
    secret.metadata.uid = found.metadata.uid;
    call(Attempt { verb: "replace", kind: KIND, name: &name }, api.replace(&name, &params, &secret))
        .await
        .map(|_| ())
}

/// Takes the record's owner away, so that limits and commands outlive the migration. For the finalizer.
pub async fn release_record(scene: &Scene<'_>) -> Result<(), ActError> {
    let name = scene.plan.names.record();
    let api = api::<Secret>(scene);
    let found = call(Attempt { verb: "get", kind: KIND, name: &name }, api.get_opt(&name)).await?;
    let Some(mut secret) = found else { return Ok(()) };
    check_ours(scene, KIND, &secret.metadata)?;
    if secret.metadata.owner_references.take().is_none_or(|owners| owners.is_empty()) {
        return Ok(());
    }
    let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
    call(Attempt { verb: "release", kind: KIND, name: &name }, api.replace(&name, &params, &secret))
        .await
        .map(|_| ())
}

/// Removes the record, if it is ours and there.
pub async fn remove_record(scene: &Scene<'_>) -> Result<(), ActError> {
    let name = scene.plan.names.record();
    let api = api::<Secret>(scene);
    let found = call(Attempt { verb: "get", kind: KIND, name: &name }, api.get_opt(&name)).await?;
    let Some(secret) = found else { return Ok(()) };
    check_ours(scene, KIND, &secret.metadata)?;
    delete(&api, KIND, &secret.metadata).await
}

fn secret(scene: &Scene<'_>, name: &str, record: &SwitchRecord) -> Result<Secret, ActError> {
    let json = serde_json::to_vec(record)
        .map_err(|e| Attempt { verb: "write", kind: KIND, name }.failed(kube::Error::SerdeError(e)))?;
    let exit = format!("#!/bin/sh\n{}\n", record.manual_exit.join("\n"));
    let data = [(RECORD_KEY, json), (MANUAL_EXIT_KEY, exit.into_bytes())];
    Ok(Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some([(LABEL_MIGRATION.to_owned(), scene.plan.uid.clone())].into()),
            owner_references: Some(vec![owner(scene)]),
            ..ObjectMeta::default()
        },
        data: Some(data.into_iter().map(|(key, bytes)| (key.to_owned(), ByteString(bytes))).collect()),
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    })
}

fn owner(scene: &Scene<'_>) -> OwnerReference {
    OwnerReference {
        api_version: RabbitMQMigration::api_version(&()).into_owned(),
        kind: RabbitMQMigration::kind(&()).into_owned(),
        name: scene.plan.name.clone(),
        uid: scene.plan.uid.clone(),
        controller: Some(true),
        block_owner_deletion: None,
    }
}
