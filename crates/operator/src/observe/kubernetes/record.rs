//! The stored SwitchRecord.

use super::{Answer, api, call, reading};
use crate::act::kubernetes::RECORD_KEY;
use crate::body::Scene;
use ::api::LABEL_MIGRATION;
use decide::record::SwitchRecord;
use decide::world::Reading;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;

/// Reads the SwitchRecord; `None` where none is stored. One of another migration is a failure, not an
/// absence.
pub async fn record(scene: &Scene<'_>) -> Reading<Option<SwitchRecord>> {
    reading(read(scene).await)
}

async fn read(scene: &Scene<'_>) -> Answer<Option<SwitchRecord>> {
    let name = scene.plan.names.record();
    let secret = call(&format!("get secret {name}"), api::<Secret>(scene).get_opt(&name)).await?;
    secret.map(|secret| parse(&secret, &name, &scene.plan.uid)).transpose()
}

fn parse(secret: &Secret, name: &str, uid: &str) -> Answer<SwitchRecord> {
    let owner = secret.labels().get(LABEL_MIGRATION).map_or("nobody", String::as_str);
    if owner != uid {
        return Err(format!("Secret {name} belongs to {owner}, not to this migration"));
    }
    let bytes = secret.data.as_ref().and_then(|data| data.get(RECORD_KEY));
    let bytes = bytes.ok_or_else(|| format!("Secret {name} has no key {RECORD_KEY}"))?;
    serde_json::from_slice(&bytes.0).map_err(|error| format!("Secret {name}, key {RECORD_KEY}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::ByteString;

    #[test]
    fn a_record_of_another_migration_is_a_failure() {
        let data = [(RECORD_KEY.to_owned(), ByteString(b"{\"protocol\":1}".to_vec()))].into();
        let mut secret = Secret { data: Some(data), ..Secret::default() };
        assert_eq!(
            parse(&secret, "r", "u").unwrap_err(),
            "Secret r belongs to nobody, not to this migration"
        );
        secret.labels_mut().insert(LABEL_MIGRATION.to_owned(), "u".to_owned());
        assert_eq!(parse(&secret, "r", "u").map(|record| record.protocol), Ok(1));
        secret.data = None;
        assert_eq!(parse(&secret, "r", "u").unwrap_err(), "Secret r has no key record.json");
    }
}
