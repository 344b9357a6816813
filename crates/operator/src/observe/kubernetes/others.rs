//! The other migrations of the namespace.

use super::{api, call, reading};
use crate::body::Scene;
use ::api::RabbitMQMigration;
use ::api::spec::Mode;
use decide::names::Names;
use decide::world::{OtherMigration, Reading};
use kube::ResourceExt;
use kube::api::ListParams;

/// Lists them, from the API server: a cache may not know the older one yet.
pub async fn others(scene: &Scene<'_>) -> Reading<Vec<OtherMigration>> {
    let listed = call("list migrations", api::<RabbitMQMigration>(scene).list(&ListParams::default())).await;
    let uid = scene.plan.uid.as_str();
    reading(listed.map(|listed| {
        listed.iter().filter(|found| found.metadata.uid.as_deref() != Some(uid)).map(view).collect()
    }))
}

/// What it uses, from its spec alone: it counts though its plan may be invalid.
fn view(migration: &RabbitMQMigration) -> OtherMigration {
    let (spec, status) = (&migration.spec, migration.status.as_ref());
    let uid = migration.uid().unwrap_or_default();
    let existing = spec.green.existing.as_ref().map(|green| green.stateful_set_name.clone());
    let green = existing.unwrap_or_else(|| Names::new(&migration.name_any(), &uid).green());
    OtherMigration {
        name: migration.name_any(),
        created: migration.creation_timestamp().map(|at| at.0),
        phase: status.and_then(|status| status.phase).unwrap_or_default(),
        waits_for: status.and_then(|status| status.wait.as_ref()).map(|wait| wait.reason.clone()),
        checks_only: spec.mode == Mode::Check,
        stateful_sets: [spec.blue.stateful_set_name.clone(), green].into(),
        services: spec.services.iter().map(|service| service.name.clone()).collect(),
        uid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_is_known_by_what_it_uses_and_where_it_stands() {
        let broker = |name: &str| {
            json!({ "statefulSetName": name, "serviceName": format!("{name}-headless"),
                "credentialsSecret": { "name": name, "username": "user" } })
        };
        let mut object = json!({
            "apiVersion": "rabbitmq-migration.io/v1alpha1", "kind": "RabbitMQMigration",
            "metadata": { "name": "orders", "uid": "0000-1111", "creationTimestamp": "2026-01-01T00:00:00Z" },
            "spec": {
                "blue": broker("rabbitmq"),
                "green": { "template": { "image": "rabbitmq:4.0-management",
                    "storage": { "className": "zonal", "size": "10Gi" } } },
                "services": [{ "name": "rabbitmq" }, { "name": "extra" }],
            },
            "status": { "phase": "RolledBack", "wait": { "reason": "Aborted" } },
        });
        let seen = view(&serde_json::from_value(object.clone()).unwrap());
        assert_eq!(seen.stateful_sets, ["rabbitmq", "orders-green"].map(str::to_owned).into());
        assert_eq!(seen.services, ["rabbitmq", "extra"].map(str::to_owned).into());
        assert_eq!((seen.phase, seen.waits_for.as_deref()), (::api::Phase::RolledBack, Some("Aborted")));
        assert_eq!(seen.created.map(jiff::Timestamp::as_second), Some(1_767_225_600));
        object["spec"]["green"] = json!({ "existing": broker("rabbitmq-four") });
        object["status"] = json!(null);
        let seen = view(&serde_json::from_value(object).unwrap());
        assert!(seen.stateful_sets.contains("rabbitmq-four"));
        assert_eq!((seen.phase, seen.waits_for), (::api::Phase::Preflight, None));
    }
}
