//! Green's name is free, or what has it was made by this very migration.

use crate::checks::{Check, Finding, Severity};
use crate::plan::Plan;
use crate::world::Reading;
use crate::world::World;

/// The check.
pub const CHECK: Check = Check { id: "names-free", run };

fn run(plan: &Plan, world: &World) -> Vec<Finding> {
    if plan.template().is_none() {
        return Vec::new();
    }
    let name = &plan.green.stateful_set_name;
    match &world.stateful_sets.green {
        Reading::Seen(found) if !found.exists || found.made_by.as_deref() == Some(&plan.uid) => Vec::new(),
        Reading::Seen(found) => {
            let owner = found.made_by.as_deref().unwrap_or("nobody we know");
            let evidence =
                format!("StatefulSet {name} exists and was made by {owner}, not by this migration");
            let remedy = "rename the migration, or remove that StatefulSet if it is a leftover";
            vec![Finding::new(Severity::Block, evidence, remedy)]
        }
        unknown => vec![Finding::unknown(format!("StatefulSet {name}: {}", unknown.why_not()))],
    }
}
