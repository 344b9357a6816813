//! The plan of a toy world: a migration object as a person would write it, parsed as always.

use super::Settings;
use crate::plan::Plan;
use api::RabbitMQMigration;
use serde_json::json;

/// The uid of the toy's migration.
pub const UID: &str = "0a1b2c3d-0000-4000-8000-000000000001";

/// The plan for a world; `Err` says what the spec got wrong.
pub fn plan(settings: &Settings) -> Result<Plan, String> {
    let migration = migration(settings)?;
    Plan::parse(&migration).map_err(|invalid| format!("{}: {}", invalid.field, invalid.detail))
}

/// Name of the Service with this number.
pub fn service_name(index: usize) -> String {
    if index == 0 { "rabbitmq".to_owned() } else { format!("rabbitmq-{index}") }
}

fn migration(settings: &Settings) -> Result<RabbitMQMigration, String> {
    let mut services: Vec<_> =
        (0..settings.services.max(1)).map(|index| json!({"name": service_name(index)})).collect();
    if settings.missing_service {
        services.push(json!({"name": "rabitmq-typo"}));
    }
    let spec = json!({
        "mode": if settings.check { "Check" } else { "Migrate" },
        "blue": {
            "statefulSetName": "rabbitmq",
            "serviceName": "rabbitmq-headless",
            "credentialsSecret": {"name": "rabbitmq", "passwordKey": "rabbitmq-password", "username": "admin"},
        },
        "green": {"template": {
            "replicas": 3,
            "image": "rabbitmq:4.0-management",
            "storage": {"className": "premium", "size": "64Gi"},
        }},
        "services": services,
        "leaveServices": ["rabbitmq-metrics"],
        "gate": {
            "objectives": [{"name": "p99", "percentile": "P99", "maxMillis": 100, "maxPercentOfBlue": 150}],
            "minimumDurationSeconds": 20, "windowSeconds": 1, "minimumWindows": 10, "deadlineSeconds": 120,
        },
        "cutover": {
            "approval": if settings.manual { "Manual" } else { "Automatic" },
            "timeoutSeconds": settings.timeout_seconds,
            "onTimeout": if settings.back_on_timeout { "Back" } else { "Continue" },
            "onContest": if settings.hold { "Hold" } else { "Follow" },
        },
        "soak": {"durationSeconds": settings.soak_seconds},
        "retirement": {"policy": if settings.scale_to_zero { "ScaleToZero" } else { "Retain" }},
    });
    let object = json!({
        "apiVersion": "rabbitmq-migration.io/v1alpha1",
        "kind": "RabbitMQMigration",
        "metadata": {"name": "orders", "namespace": "messaging", "uid": UID, "generation": 1},
        "spec": spec,
    });
    serde_json::from_value(object).map_err(|error| error.to_string())
}
