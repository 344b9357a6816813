//! How blue keeps its data, and what that means for rolling it in place.

use crate::checks::{Check, Finding, Severity};
use crate::plan::Plan;
use crate::world::World;

/// The check.
pub const CHECK: Check = Check { id: "blue-storage", run };

fn run(_: &Plan, world: &World) -> Vec<Finding> {
    let Some(found) = world.stateful_sets.blue.seen().filter(|s| s.exists) else { return Vec::new() };
    match found.persistent {
        Some(true) => vec![Finding::new(
            Severity::Info,
            "blue keeps its data on claims",
            "nothing to do; blue survives a restart of its pods",
        )],
        Some(false) => vec![Finding::new(
            Severity::Warn,
            "blue is ephemeral: a restarted pod comes back empty. From RabbitMQ 3.13 on it is then refused by \
             its own cluster (inconsistent_cluster) and starts one of its own, while every pod stays Ready",
            "do not roll blue and do not upgrade it in place; let this migration move it",
        )],
        None => vec![Finding::new(
            Severity::Warn,
            "where blue keeps its data could not be told from its volumes",
            "treat it as ephemeral: do not roll it",
        )],
    }
}
