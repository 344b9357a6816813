//! The Secrets with administrators' credentials exist and have their keys.

use crate::checks::{Check, Finding, Severity};
use crate::plan::Plan;
use crate::side::Side;
use crate::world::Reading;
use crate::world::World;

/// The check.
pub const CHECK: Check = Check { id: "credentials-present", run };

fn run(plan: &Plan, world: &World) -> Vec<Finding> {
    let sides = if plan.template().is_some() { &[Side::Blue][..] } else { &Side::BOTH[..] };
    sides
        .iter()
        .filter_map(|side| match world.credentials.of(*side) {
            Reading::Seen(()) => None,
            Reading::Unasked => Some(Finding::unknown(format!("credentials of {side}: not asked yet"))),
            Reading::Failed(why) => Some(Finding::new(
                Severity::Block,
                format!("credentials of {side}: {why}"),
                format!("create Secret {} with the keys that the spec names", secret(plan, *side)),
            )),
        })
        .collect()
}

fn secret(plan: &Plan, side: Side) -> &str {
    &plan.broker(side).credentials_secret.name
}
