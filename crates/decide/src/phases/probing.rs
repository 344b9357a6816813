//! Probing: the same traffic to both sides at the same time; green's histograms must meet the objectives.

use crate::conditions::{Truth, set};
use crate::context::Context;
use crate::effect::Effect;
use crate::fact::{Fact, Want, every, fresh};
use crate::gate::{Judgement, Outcome, RuleState, judge};
use crate::gate_plan::{gate_settings, rules};
use crate::phases::{awaiting_approval, switching, syncing_topology};
use crate::plan::Plan;
use crate::side::{Heading, Side};
use crate::step::{Reason, Step};
use crate::world::{ProbeView, Reading};
use api::conditions::SLO_MET;
use api::spec::Approval;
use api::status::{GateStatus, RuleStatus, SideLatency, WaitStatus};
use api::{Phase, RabbitMQMigrationStatus};

/// Brokers seldom, the probe each time. What the switch needs is read here too, since it begins from here.
pub fn wants(plan: &Plan, status: &RabbitMQMigrationStatus) -> Vec<Want> {
    let mut wants = syncing_topology::wants();
    // Right before traffic moves an older comparison does not do.
    let last = |wait: &WaitStatus| wait.reason == Reason::ComparingDefinitions.as_str();
    if !status.wait.as_ref().is_some_and(last) {
        wants.retain(|want| want.fact != Fact::Definitions);
        wants.push(every(10, Fact::Definitions));
    }
    wants.push(fresh(Fact::Probe));
    let passed = status.gate.as_ref().is_some_and(|gate| gate.verdict == "Pass");
    wants.extend(switching::entry_wants(Heading::FORWARD, passed && is_approved(plan, status)));
    wants
}

/// Probes, judges, and moves on when the gate passes.
pub fn decide(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus) -> Step {
    if let Some(step) =
        syncing_topology::own_epoch(context).or_else(|| syncing_topology::follow(context, draft))
    {
        return step;
    }
    awaiting_approval::note_plan(context, draft);
    match gate(context, draft) {
        Err(step) => step,
        Ok(()) => match context.plan.cutover.approval {
            Approval::Manual => Step::Go(Phase::AwaitingApproval),
            Approval::Automatic => switching::enter(context, draft, Heading::FORWARD),
        },
    }
}

/// Judges the gate and writes it to status; `Ok` where it passes.
pub fn gate(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus) -> Result<(), Step> {
    let probe = match &context.world.probe {
        Reading::Seen(probe) => probe,
        unknown => return Err(Step::wait(Reason::Probing, format!("the probe: {}", unknown.why_not()))),
    };
    // Once it passed and the switch is being entered the probe is stopped; what it said stands.
    let passed = draft.gate.as_ref().is_some_and(|g| g.verdict == "Pass");
    if probe.sides != Side::BOTH {
        return if passed && entering(context, draft) { Ok(()) } else { Err(start()) };
    }
    let answer =
        judge(&probe.evidence, &rules(context.plan), &gate_settings(context.plan), probe.measured_seconds);
    draft.gate = Some(status(probe, &answer));
    if let Some((false, line)) = &probe.load_test {
        let detail = format!("green did not hold the load test: {line}");
        set(draft, context, SLO_MET, Truth::False, Reason::GateFailed.as_str(), &detail);
        return Err(Step::wait(Reason::GateFailed, detail));
    }
    verdict(context, draft, &answer, &probe.state)
}

/// True while the switch is being entered: it is approved and the canary runs. An approval that is taken
/// back makes the gate judge again.
fn entering(context: &Context<'_>, draft: &RabbitMQMigrationStatus) -> bool {
    is_approved(context.plan, draft) && context.world.ledger.seen().is_some_and(|ledger| ledger.running)
}

/// True where nobody need approve, or the plan of the status is approved by its digest.
fn is_approved(plan: &Plan, status: &RabbitMQMigrationStatus) -> bool {
    match plan.cutover.approval {
        Approval::Automatic => true,
        Approval::Manual => {
            let digest = status.plan.as_ref().map(|plan| &plan.digest);
            plan.orders.approve.as_ref().is_some_and(|approve| Some(approve) == digest)
        }
    }
}

fn start() -> Step {
    Step::act(Effect::StartProbe { sides: Side::BOTH.to_vec() })
}

fn verdict(
    context: &Context<'_>,
    draft: &mut RabbitMQMigrationStatus,
    answer: &Judgement,
    state: &str,
) -> Result<(), Step> {
    match answer.verdict {
        Outcome::Pass => {
            set(draft, context, SLO_MET, Truth::True, "GatePassed", &answer.reason);
            Ok(())
        }
        Outcome::Fail => {
            set(draft, context, SLO_MET, Truth::False, Reason::GateFailed.as_str(), &answer.reason);
            Err(Step::wait(
                Reason::GateFailed,
                format!("{} Traffic stays on blue; abort, or improve green", answer.reason),
            ))
        }
        Outcome::NoVerdict => {
            let detail = format!("{state}: {}", answer.reason);
            set(draft, context, SLO_MET, Truth::Unknown, Reason::Probing.as_str(), &detail);
            if context.phase_seconds() > i64::from(context.plan.gate.deadline_seconds) {
                let detail = format!("no verdict within gate.deadlineSeconds: {}", answer.reason);
                return Err(Step::stop(Reason::GateDeadline, detail));
            }
            Err(Step::wait(Reason::Probing, detail))
        }
    }
}

fn status(probe: &ProbeView, answer: &Judgement) -> GateStatus {
    let verdict = match answer.verdict {
        Outcome::Pass => "Pass",
        Outcome::Fail => "Fail",
        Outcome::NoVerdict => "NoVerdict",
    };
    GateStatus {
        verdict: verdict.to_owned(),
        reason: answer.reason.clone(),
        windows_valid: i64::from(answer.windows_valid),
        windows_invalid: i64::from(answer.windows_invalid),
        measured_seconds: i64::try_from(probe.measured_seconds).unwrap_or(i64::MAX),
        rules: answer.rules.iter().map(rule).collect(),
        load_test: probe.load_test.as_ref().map(|(_, line)| line.clone()),
        latencies: probe.latencies.iter().map(latency).collect(),
    }
}

fn rule(state: &RuleState) -> RuleStatus {
    let millis = |micros: Option<u64>| match micros {
        None => "?".to_owned(),
        Some(u64::MAX) => "lost".to_owned(),
        Some(micros) => crate::conditions::millis(i64::try_from(micros).unwrap_or(i64::MAX)),
    };
    RuleStatus {
        name: state.name.clone(),
        score: state.pass_score.clone(),
        votes: format!("{} good, {} bad", state.votes_good, state.votes_bad),
        blue_millis: millis(state.blue_micros),
        green_millis: millis(state.green_micros),
        enforced: state.enforced,
        passes: state.passes(),
    }
}

fn latency((side, quantiles, planned, lost): &(Side, [Option<u64>; 3], u64, u64)) -> SideLatency {
    let known = |micros: Option<u64>| micros.and_then(|m| i64::try_from(m).ok()).unwrap_or(-1);
    let [p50, p95, p99] = *quantiles;
    SideLatency {
        side: side.as_str().to_owned(),
        planned: i64::try_from(*planned).unwrap_or(i64::MAX),
        lost: i64::try_from(*lost).unwrap_or(i64::MAX),
        p50_micros: known(p50),
        p95_micros: known(p95),
        p99_micros: known(p99),
    }
}
