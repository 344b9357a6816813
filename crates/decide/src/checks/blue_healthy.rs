//! No alarm is on: under one publishers are blocked, and those without confirms lose what they hold.

use crate::checks::{Check, Finding, Severity};
use crate::plan::Plan;
use crate::world::World;

/// The check.
pub const CHECK: Check = Check { id: "blue-healthy", run };

fn run(_: &Plan, world: &World) -> Vec<Finding> {
    let Some(broker) = world.brokers.blue.seen() else { return Vec::new() };
    if broker.alarms.is_empty() {
        return Vec::new();
    }
    let evidence = format!("alarms on blue: {}", broker.alarms.join(", "));
    vec![Finding::new(Severity::Block, evidence, "clear the alarm, or waive this check")]
}
