//! Mistakes that the laws found in the brain, each pinned by the smallest story that shows it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use api::Phase;
use decide::effect::Effect;
use decide::fact::Fact;
use decide::side::Side;
use decide::step::{Reason, Step};
use decide::toy::{Body, Boundary, Honest, Order, Pass, Settings, Toy, stamp};
use decide::world::{Reading, Series, World};

/// Passes after which a story gives up.
const PATIENCE: usize = 6000;

/// Makes facts unreadable from some phase on.
#[derive(Default)]
struct Blind {
    facts: Vec<Fact>,
}

impl Boundary for Blind {
    fn seen(&mut self, fact: Fact, world: &mut World) {
        if self.facts.contains(&fact) {
            match fact {
                Fact::Broker(side) => *world.brokers.of_mut(side) = Reading::Failed("no answer".to_owned()),
                Fact::Pods(side) => *world.pods.of_mut(side) = Reading::Failed("no answer".to_owned()),
                Fact::StatefulSet(side) => {
                    *world.stateful_sets.of_mut(side) = Reading::Failed("no answer".to_owned());
                }
                Fact::Leftovers(side) => *world.leftovers.of_mut(side) = Reading::Failed("401".to_owned()),
                Fact::Epoch(side) => *world.epochs.of_mut(side) = Reading::Failed("401".to_owned()),
                _ => panic!("not prepared for {fact:?}"),
            }
        }
    }
}

fn body<B: Boundary>(settings: Settings, boundary: B) -> Body<B> {
    let plan = decide::toy::plan(&settings).unwrap();
    Body::new(Toy::new(settings), plan, boundary)
}

/// Runs until `done`, approving what is to be approved; the passes so far.
fn run<B: Boundary>(body: &mut Body<B>, done: impl Fn(&Body<B>, &Pass) -> bool) -> Vec<Pass> {
    let mut passes = Vec::new();
    for _ in 0..PATIENCE {
        let pass = body.pass();
        if matches!(&pass.step, Step::Wait(wait) if wait.reason == Reason::AwaitingApproval) {
            body.order(Order::Approve);
        }
        let over = done(body, &pass);
        passes.push(pass);
        if over {
            return passes;
        }
    }
    panic!("not within {PATIENCE} passes; last {:?}", passes.last().map(|pass| &pass.step));
}

fn until<B: Boundary>(body: &mut Body<B>, phase: Phase) -> Vec<Pass> {
    run(body, |body, _| body.phase() == phase)
}

fn effects(passes: &[Pass], name: &str) -> usize {
    passes.iter().flat_map(|pass| &pass.effects).filter(|(effect, _)| effect.name() == name).count()
}

#[test]
fn the_probe_is_stopped_once_when_the_switch_is_entered() {
    let passes = until(&mut body(Settings::default(), Honest), Phase::Switching);
    assert_eq!((effects(&passes, "StartProbe"), effects(&passes, "StopProbe")), (1, 1));
}

#[test]
fn a_user_is_put_on_record_once() {
    let passes = until(&mut body(Settings::default(), Honest), Phase::Soaking);
    assert!(effects(&passes, "StoreRecord") <= 2, "{}", effects(&passes, "StoreRecord"));
}

#[test]
fn a_queue_of_which_nobody_knows_counts_as_consumed() {
    let mut body = body(Settings { queue_statistics: false, ..Settings::default() }, Honest);
    until(&mut body, Phase::Switching);
    let record = body.toy.record.unwrap();
    assert!(record.queues.iter().any(|queue| queue.queue.name == "orders"), "{:?}", record.queues);
}

#[test]
fn more_consumers_than_a_batch_do_not_stall_the_switch() {
    let mut body = body(Settings { workers: 40, timeout_seconds: 300, ..Settings::default() }, Honest);
    until(&mut body, Phase::Switching);
    let began = body.toy.now;
    until(&mut body, Phase::Soaking);
    assert!(body.toy.now - began < 60_000, "{} ms", body.toy.now - began);
}

#[test]
fn totals_prove_nothing_before_the_last_connection_is_gone() {
    let mut body = body(Settings::default(), Honest);
    let passes = until(&mut body, Phase::Soaking);
    let closed = passes.iter().rev().find(|pass| pass.closing.is_some()).unwrap();
    let proven = passes.last().unwrap();
    assert!(proven.at - closed.at >= 15_000, "{} ms", proven.at - closed.at);
}

#[test]
fn the_switch_can_be_turned_round() {
    for after in [0, 5, 30, 60] {
        let mut body = body(Settings::default(), Honest);
        until(&mut body, Phase::Switching);
        for _ in 0..after {
            body.pass();
        }
        body.order(Order::Abort);
        until(&mut body, Phase::RolledBack);
    }
}

#[test]
fn going_back_leaves_nothing_of_ours() {
    let mut body = body(Settings { soak_seconds: 600, ..Settings::default() }, Honest);
    until(&mut body, Phase::Soaking);
    body.order(Order::RollBack);
    run(&mut body, |_, pass| matches!(pass.step, Step::Stop(_)) && pass.phase == Phase::RolledBack);
    assert!(body.toy.record.is_none() && body.toy.process.canary.is_empty());
    assert!(body.toy.brokers.green.ours.is_empty() && body.toy.brokers.green.epochs.is_empty());
}

#[test]
fn what_cannot_be_seen_is_not_clean() {
    let mut body = body(Settings { soak_seconds: 600, ..Settings::default() }, Blind::default());
    until(&mut body, Phase::Soaking);
    body.order(Order::Delete);
    body.boundary.facts = vec![Fact::StatefulSet(Side::Blue)];
    body.restart();
    for _ in 0..50 {
        let pass = body.pass();
        assert!(!matches!(pass.step, Step::Stop(_)), "{:?}", pass.step);
    }
    assert!(body.toy.record.is_some(), "the record goes last");
}

#[test]
fn a_soak_does_not_end_blind() {
    let mut body = body(Settings { soak_seconds: 5, ..Settings::default() }, Blind::default());
    until(&mut body, Phase::Soaking);
    body.boundary.facts = vec![Fact::Broker(Side::Green)];
    for _ in 0..30 {
        body.pass();
    }
    assert_eq!(body.phase(), Phase::Soaking);
}

#[test]
fn a_failed_read_is_no_trouble_of_green() {
    let mut body = body(Settings { soak_seconds: 60, ..Settings::default() }, Blind::default());
    until(&mut body, Phase::Soaking);
    body.boundary.facts = vec![Fact::Pods(Side::Green)];
    for _ in 0..10 {
        let pass = body.pass();
        assert!(!matches!(pass.step, Step::Stop(_)), "{:?}", pass.step);
    }
}

#[test]
fn other_objectives_are_judged_anew() {
    let mut body = body(Settings::default(), Honest);
    run(&mut body, |body, _| body.toy.process.canary.len() == 2 && body.toy.process.probe_since.is_none());
    for objective in &mut body.plan.gate.objectives {
        objective.max_millis = Some(1);
    }
    body.plan.generation += 1;
    for _ in 0..60 {
        let pass = body.pass();
        if pass.status.plan.is_some() {
            body.order(Order::Approve);
        }
        assert_ne!(body.phase(), Phase::Switching);
    }
}

#[test]
fn an_approval_that_is_taken_back_makes_the_gate_judge_on() {
    let mut body = body(Settings::default(), Honest);
    run(&mut body, |body, _| body.toy.process.canary.len() == 2 && body.toy.process.probe_since.is_none());
    body.plan.orders.approve = None;
    for _ in 0..5 {
        body.pass();
    }
    assert!(body.toy.process.probe_since.is_some(), "the probe runs again");
}

#[test]
fn green_is_known_to_have_served_after_a_restart() {
    let mut body = body(Settings::default(), Honest);
    until(&mut body, Phase::Switching);
    run(&mut body, |_, pass| pass.effects.iter().any(|(effect, _)| matches!(effect, Effect::Point(_))));
    body.stored.switching = None;
    body.restart();
    let pass = body.pass();
    assert!(pass.status.green.is_some_and(|green| green.served));
}

#[test]
fn a_long_order_is_handled_once() {
    let mut body = body(Settings::default(), Honest);
    until(&mut body, Phase::Probing);
    body.order(Order::Abort);
    until(&mut body, Phase::RolledBack);
    body.plan.orders.retry = Some("again ".repeat(40));
    until(&mut body, Phase::Probing);
    body.order(Order::Abort);
    let passes =
        run(&mut body, |_, pass| matches!(pass.step, Step::Stop(_)) && pass.phase == Phase::RolledBack);
    assert!(!passes.iter().any(|pass| pass.step == Step::Go(Phase::Preflight)));
}

#[test]
fn an_abort_that_was_carried_out_reads_nothing_more() {
    let mut body = body(Settings::default(), Honest);
    until(&mut body, Phase::Probing);
    body.order(Order::Abort);
    until(&mut body, Phase::RolledBack);
    body.order(Order::Retry);
    until(&mut body, Phase::Probing);
    let wants = decide::wants(&body.plan, &body.stored);
    assert!(!wants.iter().any(|want| matches!(want.fact, Fact::Leftovers(_))));
}

#[test]
fn a_series_covers_its_window_at_any_pace() {
    let mut series = Series::default();
    for pass in 0..600 {
        series.push(stamp(pass * 30), &Reading::Seen(pass < 100));
    }
    let held = series.held_millis(|value| !value).unwrap();
    assert!((14_000..=15_000).contains(&held), "{held}");
}

#[test]
fn a_deletion_ends_where_blue_never_answered() {
    let facts = vec![Fact::Broker(Side::Blue), Fact::Leftovers(Side::Blue), Fact::Epoch(Side::Blue)];
    let mut body = body(Settings::default(), Blind { facts });
    run(
        &mut body,
        |_, pass| matches!(&pass.step, Step::Wait(wait) if wait.reason == Reason::PreflightBlocked),
    );
    body.order(Order::Delete);
    run(&mut body, |_, pass| matches!(&pass.step, Step::Stop(wait) if wait.reason == Reason::CleaningUp));
}

#[test]
fn a_queue_whose_consumers_died_is_carried_and_not_waited_for() {
    // The canary's consumer dies with the operator, and comes back on green: blue's rest has nobody.
    let mut body = body(Settings { timeout_seconds: 600, ..Settings::default() }, Honest);
    let on_the_way = [Reason::PublishersLeaving, Reason::Draining, Reason::Settling];
    let draining = |_: &Body<Honest>, pass: &Pass| matches!(&pass.step, Step::Wait(wait) if on_the_way.contains(&wait.reason));
    run(&mut body, draining);
    body.restart();
    let cut = body.toy.now;
    until(&mut body, Phase::Soaking);
    assert!(body.toy.now - cut < 60_000, "{} ms", body.toy.now - cut);
}
