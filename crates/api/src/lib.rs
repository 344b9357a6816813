//! The `RabbitMQMigration` resource: its spec, its status, its phases and the rules the API server checks.
//!
//! No clients and no I/O live here, so that the plugin and the pure brain can depend on it.

pub mod bounds;
pub mod conditions;
pub mod phase;
pub mod spec;
pub mod status;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
pub use phase::Phase;
pub use spec::{RabbitMQMigration, RabbitMQMigrationSpec};
pub use status::RabbitMQMigrationStatus;

/// The API group of our kind and the prefix of our labels, annotations and finalizer.
pub const GROUP: &str = "rabbitmq-migration.io";
/// The finalizer that restores a stable route before the object goes.
pub const FINALIZER: &str = "rabbitmq-migration.io/routing";
/// Annotation that approves the plan with this digest.
pub const APPROVE: &str = "rabbitmq-migration.io/approve";
/// Annotation that aborts: back to blue, whatever the phase before retirement.
pub const ABORT: &str = "rabbitmq-migration.io/abort";
/// Annotation that pauses: the operator goes on measuring and changes nothing.
pub const PAUSE: &str = "rabbitmq-migration.io/pause";
/// Annotation with a new value each time: starts again from Preflight after RolledBack or Failed.
pub const RETRY: &str = "rabbitmq-migration.io/retry";
/// Label on all objects we make: the uid of the migration they belong to.
pub const LABEL_MIGRATION: &str = "rabbitmq-migration.io/migration";
/// Label on green's pods and StatefulSet: which broker they are.
pub const LABEL_BROKER: &str = "rabbitmq-migration.io/broker";

/// The custom resource definition, as `make generate` writes it to `crds/`.
pub fn crd() -> CustomResourceDefinition {
    use kube::CustomResourceExt;
    let mut crd = RabbitMQMigration::crd();
    let schemas = crd.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut());
    schemas.filter_map(|schema| schema.open_api_v3_schema.as_mut()).for_each(unwrap_lines);
    crd
}

/// Descriptions come with the line breaks of the source; `kubectl explain` breaks lines itself.
fn unwrap_lines(schema: &mut JSONSchemaProps) {
    if let Some(description) = &mut schema.description {
        let paragraphs: Vec<String> = description.split("\n\n").map(|p| p.replace('\n', " ")).collect();
        *description = paragraphs.join("\n\n");
    }
    schema.properties.iter_mut().flat_map(|properties| properties.values_mut()).for_each(unwrap_lines);
    if let Some(JSONSchemaPropsOrArray::Schema(item)) = &mut schema.items {
        unwrap_lines(item);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(value)) = &mut schema.additional_properties {
        unwrap_lines(value);
    }
}
