//! The brain: pure decisions over readings of the world. No I/O, no clock, no chance, no secrets.
//!
//! [`wants`] says what must be read, in which order; [`next`] decides. Both are pure: the same plan, status,
//! world and time give the same answer. `decide` cannot fail: bad input is [`step::Step::Stop`], missing
//! input is [`step::Step::Wait`].

pub mod checks;
pub mod conditions;
pub mod context;
pub mod effect;
pub mod fact;
pub mod gate;
pub mod gate_plan;
mod guards;
pub mod manual_exit;
pub mod names;
pub mod phases;
pub mod placement;
pub mod plan;
pub mod ports;
pub mod record;
pub mod rewrites;
pub mod roles;
pub mod side;
pub mod step;
#[cfg(any(test, feature = "toy"))]
pub mod toy;
pub mod world;

use api::{Phase, RabbitMQMigrationStatus};
use context::Context;
use fact::Want;
use jiff::Timestamp;
use plan::Plan;
use step::Verdict;
use world::World;

/// What must be read before [`next`] can decide, in order: what freezes is read before what it freezes
/// (route, fence, connections, then backlog), so that each later reading can move only the safe way.
pub fn wants(plan: &Plan, status: &RabbitMQMigrationStatus) -> Vec<Want> {
    let mut wants = guards::wants(plan, status);
    for want in phases::wants(plan, status) {
        if !wants.iter().any(|w| w.fact == want.fact) {
            wants.push(want);
        }
    }
    wants
}

/// Decides one step.
pub fn next(plan: &Plan, status: &RabbitMQMigrationStatus, world: &World, now: Timestamp) -> Verdict {
    let context = Context { plan, status, world, now };
    let mut draft = status.clone();
    draft.protocol = api::status::PROTOCOL.max(status.protocol);
    draft.phase = Some(status.phase.unwrap_or(Phase::Preflight));
    draft.phase_since = Some(status.phase_since.clone().unwrap_or(api::Time(now)));
    // Another spec may have other objectives: what the gate said of the old ones does not count.
    if status.observed_generation != plan.generation
        && let Some(gate) = &mut draft.gate
    {
        "NoVerdict".clone_into(&mut gate.verdict);
    }
    let step = guards::decide(&context, &mut draft).unwrap_or_else(|| phases::decide(&context, &mut draft));
    conditions::conclude(&context, draft, step)
}
