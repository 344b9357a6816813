//! Every Service that leads to blue either moves or stays, by the spec's own word.

use crate::checks::{Check, Finding, Severity};
use crate::plan::Plan;
use crate::world::Reading;
use crate::world::World;

/// The check.
pub const CHECK: Check = Check { id: "entrances-listed", run };

fn run(plan: &Plan, world: &World) -> Vec<Finding> {
    let entrances = match &world.entrances {
        Reading::Seen(entrances) => entrances,
        unknown => {
            return vec![Finding::unknown(format!("Services that lead to blue: {}", unknown.why_not()))];
        }
    };
    let listed = |name: &String| {
        plan.services.contains(name) || plan.leave_services.contains(name) || *name == plan.blue.service_name
    };
    let unlisted: Vec<&str> =
        entrances.iter().map(|e| &e.name).filter(|name| !listed(name)).map(String::as_str).collect();
    if unlisted.is_empty() {
        return Vec::new();
    }
    vec![Finding::new(
        Severity::Block,
        format!("these Services lead to blue and stand in neither list: {}", unlisted.join(", ")),
        "put each into spec.services (it moves) or spec.leaveServices (it stays)",
    )]
}
