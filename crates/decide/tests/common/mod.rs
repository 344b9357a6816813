//! What laws and mutants share: a migration drawn from a seed, and the laws that judge it.

pub mod law;
pub mod scenario;

use api::Phase;
use decide::effect::Effect;
use decide::side::Side;
use decide::step::{Reason, Step};
use decide::toy::{Body, Boundary, Fate, Faults, GateMood, Order, Pass, Toy};
use law::Judge;
use scenario::Scenario;
use std::collections::BTreeSet;
use std::time::Duration;

/// Passes within which a migration must end once faults have stopped. The longest honest way is: a switch that
/// times out, one that goes back and times out too, each at 30 ms a pass with 60 s to wait: 2 x 2000, and as
/// much again for what surrounds them.
pub const BOUND: u64 = 6000;
/// Passes after the end that must do nothing.
const QUIET: usize = 20;

/// How a migration ended, and what was met on the way.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The end: a phase, or a reason to wait.
    pub end: String,
    /// Passes it took.
    pub passes: u64,
    /// Reasons, effects and phases that were met.
    pub marks: BTreeSet<String>,
}

/// Runs the migration of a seed; `Err` names the law that was broken.
pub fn migrate<B: Boundary>(scenario: &Scenario, boundary: B) -> Result<Outcome, String> {
    let plan = decide::toy::plan(&scenario.settings)?;
    let mut body = Body::new(Toy::new(scenario.settings.clone()), plan, boundary);
    body.foreign = scenario.foreign;
    let mut judge = Judge::new(scenario.is_calm());
    let mut contested = 0;
    let mut outcome = Outcome::default();
    let mut orders = scenario.orders.clone();
    let mut in_phase = (body.phase(), 0_u64);
    let mut healthy = 0_u64;
    let trace = std::env::var("LAWS_TRACE").is_ok();
    loop {
        body.faults = if scenario.rages(body.phase(), body.passes) {
            scenario.faults.clone()
        } else {
            Faults::default()
        };
        disturb(&mut body, scenario, in_phase);
        judge.before(&body);
        let pass = body.pass();
        note(&mut outcome.marks, &pass);
        judge.after(&body, &pass)?;
        in_phase = if in_phase.0 == body.phase() { (in_phase.0, in_phase.1 + 1) } else { (body.phase(), 0) };
        if trace {
            println!("{}", line(&pass));
        }
        if let Some(at) = orders.iter().position(|o| o.phase == in_phase.0 && o.after <= in_phase.1) {
            body.order(orders.remove(at).order);
            continue;
        }
        attend(&mut body, &pass, healthy, &mut contested, scenario.yields);
        outcome.passes = body.passes;
        if let Some(end) = ended(&body, &pass) {
            // What a person ordered for a later pass of this phase he may order yet.
            if let Some(at) = orders.iter().position(|o| o.phase == in_phase.0) {
                body.order(orders.remove(at).order);
                continue;
            }
            outcome.end = end;
            judge.at_end(&body, &pass)?;
            quiet(&mut body, &mut judge)?;
            return Ok(outcome);
        }
        healthy = if scenario.rages(body.phase(), body.passes) { 0 } else { healthy + 1 };
        if healthy > BOUND {
            return Err(format!(
                "(f) no end after {BOUND} passes without faults: {:?} in {}",
                pass.step, pass.phase
            ));
        }
    }
}

/// What happens at a set pass of a phase.
fn disturb<B: Boundary>(body: &mut Body<B>, scenario: &Scenario, in_phase: (Phase, u64)) {
    if let Some((_, millis)) = scenario.silence.filter(|(after, _)| in_phase == (Phase::Switching, *after)) {
        body.toy.silence(Side::Blue, 0, millis);
    }
    if scenario.unbind.is_some_and(|after| in_phase == (Phase::Switching, after)) {
        body.toy.bind(Side::Green, false);
    }
}

/// What a person does who reads the status: at once, or after some passes that say the same.
fn attend<B: Boundary>(body: &mut Body<B>, pass: &Pass, healthy: u64, stops: &mut u64, yields: bool) {
    let (Step::Wait(wait) | Step::Stop(wait)) = &pass.step else { return };
    match wait.reason {
        Reason::AwaitingApproval => body.order(Order::Approve),
        // Nobody pauses for ever.
        Reason::Paused if healthy > 5 => body.order(Order::Resume),
        Reason::RoutingContested | Reason::BindingMissing => {
            *stops += 1;
            if stops.is_multiple_of(4) && wait.reason == Reason::BindingMissing {
                body.toy.bind(Side::Green, true);
            } else if stops.is_multiple_of(4) {
                settle(body, pass.phase, yields);
            }
        }
        _ => {}
    }
}

/// A person settles a contest: the Services lead where the operator wants them, or it shall go back.
fn settle<B: Boundary>(body: &mut Body<B>, phase: Phase, yields: bool) {
    match phase {
        Phase::RollingBack => body.toy.settle(Side::Blue),
        _ if yields => body.order(Order::RollBack),
        _ => body.toy.settle(Side::Green),
    }
}

/// After the end nothing is done any more.
fn quiet<B: Boundary>(body: &mut Body<B>, judge: &mut Judge) -> Result<(), String> {
    // A deleted object is gone, and one that waits follows blue's definitions.
    if body.plan.orders.deleted || !body.phase().is_terminal() {
        return Ok(());
    }
    body.faults = Faults::default();
    for _ in 0..QUIET {
        judge.before(body);
        let pass = body.pass();
        judge.after(body, &pass)?;
        if !pass.effects.is_empty() || matches!(pass.step, Step::Go(_)) {
            return Err(format!("(f) after the end in {}: {:?}", pass.phase, pass.step));
        }
    }
    Ok(())
}

/// A pass in one line.
pub fn line(pass: &Pass) -> String {
    let step = match &pass.step {
        Step::Do(_) => {
            let told = |(effect, fate): &(Effect, Fate)| match fate {
                Fate::Done => effect.name().to_owned(),
                Fate::Before | Fate::Half | Fate::After => format!("{} (cut: {fate:?})", effect.name()),
            };
            pass.effects.iter().map(told).collect::<Vec<_>>().join(", ")
        }
        Step::Go(phase) => format!("-> {phase}"),
        Step::Wait(wait) => format!("{}: {}", wait.reason.as_str(), wait.detail),
        Step::Stop(wait) => format!("stops, {}: {}", wait.reason.as_str(), wait.detail),
    };
    format!(
        "{:>8.3} {} {step}",
        Duration::from_millis(u64::try_from(pass.at).unwrap()).as_secs_f64(),
        pass.phase
    )
}

/// How the migration ended, if it did.
fn ended<B: Boundary>(body: &Body<B>, pass: &Pass) -> Option<String> {
    let gate = body.toy.settings.gate;
    match &pass.step {
        Step::Stop(wait) if wait.reason == Reason::CleaningUp => Some("Deleted".to_owned()),
        Step::Stop(_) if pass.phase.is_terminal() && !body.plan.orders.deleted => {
            Some(pass.phase.to_string())
        }
        Step::Stop(wait) if wait.reason == Reason::GateDeadline && gate == GateMood::Silent => {
            Some("GateDeadline".to_owned())
        }
        Step::Wait(wait) if wait.reason == Reason::GateFailed && gate == GateMood::Slow => {
            Some("GateFailed".to_owned())
        }
        Step::Do(_) | Step::Go(_) | Step::Wait(_) | Step::Stop(_) => None,
    }
}

fn note(marks: &mut BTreeSet<String>, pass: &Pass) {
    match &pass.step {
        Step::Wait(wait) => marks.insert(format!("Wait {}", wait.reason.as_str())),
        Step::Stop(wait) => marks.insert(format!("Stop {}", wait.reason.as_str())),
        Step::Go(phase) => marks.insert(format!("Go {phase}")),
        Step::Do(_) => false,
    };
    if pass.step == Step::Go(Phase::Switching) && !pass.phase.is_before_switch() {
        marks.insert("Go back to Switching".to_owned());
    }
    for (effect, fate) in &pass.effects {
        marks.insert(format!("{} {fate:?}", effect.name()));
    }
}
