//! The phases: one file each. A phase says what it needs to see and decides one step.

mod awaiting_approval;
pub mod cleanup;
mod ended;
mod preflight;
mod probing;
mod provisioning_green;
mod retiring;
mod soaking;
pub mod switching;
mod syncing_topology;
mod verifying_placement;

use crate::context::Context;
use crate::fact::Want;
use crate::plan::Plan;
use crate::side::Heading;
use crate::step::Step;
use api::{Phase, RabbitMQMigrationStatus};

/// What the current phase needs to see, in order.
pub fn wants(plan: &Plan, status: &RabbitMQMigrationStatus) -> Vec<Want> {
    match status.phase.unwrap_or_default() {
        Phase::Preflight => preflight::wants(plan),
        Phase::ProvisioningGreen => provisioning_green::wants(),
        Phase::VerifyingPlacement => verifying_placement::wants(),
        Phase::SyncingTopology => syncing_topology::wants(),
        Phase::Probing => probing::wants(plan, status),
        Phase::AwaitingApproval => awaiting_approval::wants(plan, status),
        Phase::Switching => switching::wants(plan, status, Heading::FORWARD),
        Phase::RollingBack => switching::wants(plan, status, Heading::BACK),
        Phase::Soaking => soaking::wants(plan, status),
        Phase::Retiring => retiring::wants(),
        phase @ (Phase::Completed | Phase::RolledBack | Phase::Failed) => ended::wants(phase),
    }
}

/// The current phase's step.
pub fn decide(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus) -> Step {
    match context.phase() {
        Phase::Preflight => preflight::decide(context, draft),
        Phase::ProvisioningGreen => provisioning_green::decide(context, draft),
        Phase::VerifyingPlacement => verifying_placement::decide(context, draft),
        Phase::SyncingTopology => syncing_topology::decide(context, draft),
        Phase::Probing => probing::decide(context, draft),
        Phase::AwaitingApproval => awaiting_approval::decide(context, draft),
        Phase::Switching => switching::decide(context, draft, Heading::FORWARD),
        Phase::RollingBack => switching::decide(context, draft, Heading::BACK),
        Phase::Soaking => soaking::decide(context, draft),
        Phase::Retiring => retiring::decide(context, draft),
        Phase::Completed | Phase::RolledBack | Phase::Failed => ended::decide(context, draft),
    }
}

/// The legal transitions. An order (abort, retry) may add RollingBack, RolledBack and Preflight.
pub const fn successors(phase: Phase) -> &'static [Phase] {
    match phase {
        Phase::Preflight => &[Phase::ProvisioningGreen, Phase::RolledBack],
        Phase::ProvisioningGreen => &[Phase::VerifyingPlacement, Phase::RolledBack],
        Phase::VerifyingPlacement => &[Phase::SyncingTopology, Phase::RolledBack],
        Phase::SyncingTopology => &[Phase::Probing, Phase::RolledBack],
        Phase::Probing => &[Phase::AwaitingApproval, Phase::Switching, Phase::RolledBack],
        Phase::AwaitingApproval => &[Phase::Switching, Phase::RolledBack],
        Phase::Switching => &[Phase::Soaking, Phase::RollingBack],
        Phase::Soaking => &[Phase::Retiring, Phase::RollingBack, Phase::Switching],
        Phase::Retiring => &[Phase::Completed, Phase::Switching],
        Phase::RollingBack => &[Phase::RolledBack],
        Phase::Completed => &[],
        Phase::RolledBack | Phase::Failed => &[Phase::Preflight],
    }
}
