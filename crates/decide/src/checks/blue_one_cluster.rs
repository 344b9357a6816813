//! All of blue's pods answer and list the same members: several clusters behind one Service look Ready.

use crate::checks::{Check, Finding, Severity};
use crate::plan::Plan;
use crate::side::Side;
use crate::world::Reading;
use crate::world::World;

/// The check.
pub const CHECK: Check = Check { id: "blue-one-cluster", run };

fn run(plan: &Plan, world: &World) -> Vec<Finding> {
    let sides = if plan.template().is_some() { &[Side::Blue][..] } else { &Side::BOTH[..] };
    sides.iter().filter_map(|side| look(plan, world, *side)).collect()
}

fn look(plan: &Plan, world: &World, side: Side) -> Option<Finding> {
    let name = &plan.broker(side).stateful_set_name;
    let found = match world.stateful_sets.of(side) {
        Reading::Seen(found) => found,
        unknown => return Some(Finding::unknown(format!("StatefulSet {name}: {}", unknown.why_not()))),
    };
    if !found.exists {
        let evidence = format!("there is no StatefulSet {name}");
        return Some(Finding::new(Severity::Block, evidence, "correct statefulSetName in the spec"));
    }
    let broker = match world.brokers.of(side) {
        Reading::Seen(broker) => broker,
        unknown => {
            let evidence = format!("{side} cannot be reached: {}", unknown.why_not());
            let remedy =
                "check that its pods run, that the management plugin is on and that the password is right";
            return Some(Finding::new(Severity::Block, evidence, remedy));
        }
    };
    let pods = usize::try_from(found.replicas).unwrap_or(usize::MAX);
    broker.one_cluster(pods).err().map(|why| {
        Finding::new(
            Severity::Block,
            format!("{side} is not one cluster: {why}"),
            "let all members run in one cluster before you migrate: what is on a split-off member would be left behind",
        )
    })
}
