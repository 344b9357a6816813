//! Green's StorageClass exists.

use crate::checks::{Check, Finding, Severity};
use crate::plan::Plan;
use crate::world::Reading;
use crate::world::World;

/// The check.
pub const CHECK: Check = Check { id: "storage-class-exists", run };

fn run(plan: &Plan, world: &World) -> Vec<Finding> {
    let Some(template) = plan.template() else { return Vec::new() };
    let name = &template.storage.class_name;
    match &world.storage_class {
        Reading::Seen(Some(_)) => Vec::new(),
        Reading::Seen(None) => vec![Finding::new(
            Severity::Block,
            format!("there is no StorageClass {name}"),
            "correct spec.green.template.storage.className; kubectl get storageclass shows what there is",
        )],
        unknown => vec![Finding::unknown(format!("StorageClass {name}: {}", unknown.why_not()))],
    }
}
