//! Preflight: runs every check on blue, the Kubernetes cluster and the plan, and shows all findings at once.

use crate::checks;
use crate::conditions::{Truth, set};
use crate::context::Context;
use crate::effect::Effect;
use crate::fact::{Fact, Want, every, fresh};
use crate::phases::switching::note_serving;
use crate::plan::Plan;
use crate::side::Side;
use crate::step::{Reason, Step};
use crate::world::Reading;
use api::conditions::PREFLIGHT_PASSED;
use api::spec::Mode;
use api::status::PlanStatus;
use api::{Phase, RabbitMQMigrationStatus};

/// Kubernetes first, since the brokers are found through it; blue is asked at most every ten seconds.
pub fn wants(plan: &Plan) -> Vec<Want> {
    let mut wants = vec![
        every(10, Fact::Permissions),
        every(2, Fact::Credentials(Side::Blue)),
        every(2, Fact::StatefulSet(Side::Blue)),
        every(2, Fact::StatefulSet(Side::Green)),
        every(2, Fact::Pods(Side::Blue)),
        every(2, Fact::Services),
        every(2, Fact::Entrances),
        every(5, Fact::Nodes),
        every(10, Fact::Broker(Side::Blue)),
        every(10, Fact::Users(Side::Blue)),
        every(10, Fact::Connections(Side::Blue)),
        every(10, Fact::Queues(Side::Blue)),
        fresh(Fact::Rehearsal),
    ];
    if plan.template().is_some() {
        wants.push(every(2, Fact::StorageClass));
    } else {
        wants.extend([
            every(2, Fact::Credentials(Side::Green)),
            every(2, Fact::Pods(Side::Green)),
            every(10, Fact::Broker(Side::Green)),
        ]);
    }
    wants
}

/// Shows all findings; rehearses the fence last, once nothing else blocks; then goes on or waits.
pub fn decide(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus) -> Step {
    note_serving(context, draft);
    let findings = checks::run(context.plan, context.world);
    draft.findings = findings.iter().map(|(_, status)| status.clone()).collect();
    draft.plan = Some(PlanStatus { versions: context.versions(), ..draft.plan.take().unwrap_or_default() });
    let mut blocking = findings.iter().filter(|(severity, f)| severity.stops() && !f.waived).map(|(_, f)| f);
    let rehearse = matches!(context.world.rehearsal, Reading::Unasked) && context.plan.mode == Mode::Migrate;
    let only_rehearsal = blocking.clone().all(|finding| finding.check == "fence-rehearsed");
    if rehearse && only_rehearsal {
        return Step::act(Effect::RehearseFence);
    }
    let count = blocking.clone().count();
    if let Some(first) = blocking.next() {
        let more =
            if count > 1 { format!(" (and {} more, see status.findings)", count - 1) } else { String::new() };
        let detail = format!("{}: {}. {}{more}", first.check, first.evidence, first.remedy);
        set(draft, context, PREFLIGHT_PASSED, Truth::False, Reason::PreflightBlocked.as_str(), &detail);
        return Step::wait(Reason::PreflightBlocked, detail);
    }
    let passed = format!("{} checks, none blocks", checks::ALL.len());
    set(draft, context, PREFLIGHT_PASSED, Truth::True, "ChecksPassed", &passed);
    if context.plan.mode == Mode::Check {
        return Step::stop(
            Reason::Checked,
            format!("{passed}; nothing was changed; set spec.mode: Migrate to go on"),
        );
    }
    Step::Go(Phase::ProvisioningGreen)
}
