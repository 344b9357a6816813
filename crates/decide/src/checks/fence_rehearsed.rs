//! A user of our own with a limit of 0 was refused on blue, as clients will be.

use crate::checks::{Check, Finding, Severity};
use crate::plan::Plan;
use crate::world::Reading;
use crate::world::World;
use api::spec::Mode;

/// The check.
pub const CHECK: Check = Check { id: "fence-rehearsed", run };

fn run(plan: &Plan, world: &World) -> Vec<Finding> {
    match &world.rehearsal {
        Reading::Seen(seen) if seen.refused => Vec::new(),
        Reading::Seen(seen) => vec![Finding::new(
            Severity::Block,
            format!("a user with a limit of 0 connections was not refused on blue: {}", seen.detail),
            "without a working fence clients would return to blue; see the broker's log",
        )],
        Reading::Failed(why) => vec![Finding::unknown(format!("rehearsal of the fence: {why}"))],
        Reading::Unasked if plan.mode == Mode::Check => vec![Finding::new(
            Severity::Info,
            "the fence is not rehearsed in mode Check, which writes nothing",
            "it is rehearsed in mode Migrate",
        )],
        Reading::Unasked => vec![Finding::unknown("the fence was not rehearsed yet")],
    }
}
