//! The operator may do all that this migration needs. Fix: apply deploy/ of the operator's version.

use crate::checks::{Check, Finding, Severity};
use crate::plan::Plan;
use crate::world::Reading;
use crate::world::World;

/// The check.
pub const CHECK: Check = Check { id: "permissions-granted", run };

fn run(_: &Plan, world: &World) -> Vec<Finding> {
    match &world.permissions {
        Reading::Seen(missing) if missing.is_empty() => Vec::new(),
        Reading::Seen(missing) => vec![Finding::new(
            Severity::Block,
            format!("the operator may not: {}", missing.join(", ")),
            "apply the RBAC of deploy/ for this namespace",
        )],
        unknown => vec![Finding::unknown(format!("access review: {}", unknown.why_not()))],
    }
}
