//! Mistakes that the laws found in the brain, each pinned by the smallest story that shows it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use api::Phase;
use api::spec::{OnChange, OnContest};
use decide::effect::Effect;
use decide::fact::Fact;
use decide::roles::Role;
use decide::side::Side;
use decide::step::{Reason, Step};
use decide::toy::{Body, Boundary, Honest, Order, Pass, Settings, Toy, stamp};
use decide::world::{ConnectionView, OtherMigration, Reading, Series, World};
use std::collections::BTreeSet;

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
                Fact::Others => world.others = Reading::Failed("no answer".to_owned()),
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

/// Green's selector was brought to Git, with one label more, and is applied from there.
#[derive(Default)]
struct InGit(bool);

impl Boundary for InGit {
    fn seen(&mut self, fact: Fact, world: &mut World) {
        if let (true, Fact::Services, Reading::Seen(services)) = (self.0, fact, &mut world.services) {
            for service in services {
                service.selector.insert("app.kubernetes.io/instance".to_owned(), "shop".to_owned());
                service.manager = Some("argocd-controller".to_owned());
            }
        }
    }
}

/// In Switching, with blue fenced.
fn fenced() -> Body<Honest> {
    let mut body = body(Settings { soak_seconds: 600, ..Settings::default() }, Honest);
    until(&mut body, Phase::Switching);
    run(&mut body, |_, pass| pass.effects.iter().any(|(effect, _)| effect.name() == "Fence"));
    body
}

fn is_fenced(body: &Body<Honest>) -> bool {
    body.toy.brokers.blue.users["shop"] == Some(0)
}

fn contest(pass: &Pass) -> bool {
    matches!(&pass.step, Step::Stop(wait) if wait.reason == Reason::RoutingContested)
}

fn condition(pass: &Pass, type_: &str) -> String {
    pass.status.conditions.iter().find(|c| c.type_ == type_).unwrap().status.clone()
}

#[test]
fn a_service_that_was_taken_is_taken_back_once() {
    let mut body = fenced();
    body.toy.take(0, Side::Blue, "argocd-controller");
    let passes = run(&mut body, |body, _| body.toy.selected(0) == Some(Side::Green));
    assert_eq!(effects(&passes, "Point"), 1);
    assert!(passes.iter().any(|pass| condition(pass, "RoutingContested") == "True"));
    assert!(is_fenced(&body), "nobody came to blue: it need not be opened");
    let last = until(&mut body, Phase::Soaking);
    assert_eq!(condition(last.last().unwrap(), "RoutingContested"), "False");
}

#[test]
fn the_fence_follows_a_service_that_is_taken_again() {
    let mut body = fenced();
    body.toy.take(0, Side::Blue, "argocd-controller");
    run(&mut body, |body, _| body.toy.selected(0) == Some(Side::Green));
    body.toy.take(0, Side::Blue, "argocd-controller");
    let (taken, passes) = (body.toy.now, run(&mut body, |_, pass| contest(pass)));
    assert_eq!(effects(&passes, "Point"), 0, "nobody plays ping-pong");
    assert!(!is_fenced(&body) && body.toy.now - taken < 5000, "{} ms", body.toy.now - taken);
    let pass = body.pass();
    assert_eq!(
        (condition(&pass, "RoutingContested"), condition(&pass, "Stalled")),
        ("True".into(), "True".into())
    );
    let told = pass.status.wait.unwrap().detail;
    assert!(
        told.contains("argocd-controller") && told.contains("kubectl -n messaging patch service"),
        "{told}"
    );
    body.toy.advance(60_000);
    body.toy.settle(Side::Green);
    let passes = until(&mut body, Phase::Soaking);
    assert!(effects(&passes, "Fence") > 0 && effects(&passes, "Close") > 0, "whoever came to blue is moved");
    assert!(body.toy.lost().is_empty() && body.toy.stranded(Side::Blue).is_empty());
}

#[test]
fn a_contest_is_settled_by_going_back() {
    let mut body = fenced();
    for _ in 0..2 {
        body.toy.take(0, Side::Blue, "argocd-controller");
        run(&mut body, |body, pass| contest(pass) || body.toy.selected(0) == Some(Side::Green));
    }
    body.order(Order::RollBack);
    until(&mut body, Phase::RolledBack);
    assert!(body.toy.lost().is_empty() && body.toy.stranded(Side::Green).is_empty());
}

#[test]
fn the_fence_holds_in_a_contest_where_that_is_asked_for() {
    let mut body = fenced();
    body.plan.cutover.on_contest = OnContest::Hold;
    for _ in 0..2 {
        body.toy.take(0, Side::Blue, "helm");
        run(&mut body, |body, pass| contest(pass) || body.toy.selected(0) == Some(Side::Green));
    }
    let passes: Vec<Pass> = (0..40).map(|_| body.pass()).collect();
    assert!(is_fenced(&body) && effects(&passes, "Unfence") == 0);
    let told: BTreeSet<_> =
        passes.iter().filter_map(|pass| pass.status.wait.clone()).map(|w| w.detail).collect();
    assert!(told.len() > 1 && told.iter().all(|detail| detail.contains("onContest: Hold")), "{told:?}");
}

#[test]
fn a_service_that_is_taken_while_soaking_is_the_switchs_to_mend() {
    let mut body = body(Settings { soak_seconds: 600, ..Settings::default() }, Honest);
    until(&mut body, Phase::Soaking);
    body.order(Order::Pause);
    body.toy.take(0, Side::Blue, "helm");
    let taken = body.toy.now;
    run(&mut body, |body, _| body.toy.selected(0) == Some(Side::Green));
    assert!(body.toy.now - taken < 5000, "{} ms", body.toy.now - taken);
    until(&mut body, Phase::Soaking);
}

#[test]
fn a_service_that_is_taken_while_retirement_is_delayed_is_the_switchs_to_mend() {
    let mut body = body(Settings { soak_seconds: 5, ..Settings::default() }, Honest);
    body.plan.retirement.delay_seconds = 600;
    until(&mut body, Phase::Retiring);
    body.pass();
    body.toy.take(0, Side::Blue, "helm");
    until(&mut body, Phase::Switching);
    until(&mut body, Phase::Soaking);
    assert_eq!(body.toy.selected(0), Some(Side::Green));
}

#[test]
fn a_selector_of_another_form_that_leads_there_is_no_contest() {
    let mut body = body(Settings { soak_seconds: 600, ..Settings::default() }, InGit::default());
    until(&mut body, Phase::Switching);
    run(&mut body, |_, pass| pass.effects.iter().any(|(effect, _)| effect.name() == "Fence"));
    body.boundary.0 = true;
    let passes = until(&mut body, Phase::Soaking);
    assert_eq!(effects(&passes, "Point"), 0);
    for _ in 0..20 {
        assert_eq!(body.pass().phase, Phase::Soaking);
    }
}

#[test]
fn a_second_service_that_was_not_reached_is_taken_by_force_too() {
    let mut body = body(Settings { services: 2, seed: 3, ..Settings::default() }, Honest);
    until(&mut body, Phase::Switching);
    body.faults.cut = 1;
    run(&mut body, |body, _| body.toy.selected(0) == Some(Side::Green));
    assert_eq!(body.toy.selected(1), Some(Side::Blue), "the write was cut half-way");
    body.faults.cut = 0;
    let passes = run(&mut body, |body, _| body.toy.selected(1) == Some(Side::Green));
    assert_eq!(effects(&passes, "Point"), 1);
}

#[test]
fn what_was_proven_before_blue_was_opened_proves_nothing() {
    for seed in 0..40 {
        let mut body = body(Settings { soak_seconds: 600, seed, ..Settings::default() }, Honest);
        until(&mut body, Phase::Soaking);
        for _ in 0..2 {
            body.toy.take(0, Side::Blue, "helm");
            run(&mut body, |body, pass| contest(pass) || body.toy.selected(0) == Some(Side::Green));
        }
        body.toy.advance(i64::try_from(seed).unwrap() * 50);
        body.toy.settle(Side::Green);
        until(&mut body, Phase::Soaking);
        assert_eq!(body.toy.held(Side::Blue), 0, "seed {seed}");
    }
}

#[test]
fn a_missing_binding_stops_the_switch_until_it_is_there() {
    let mut body = body(Settings { soak_seconds: 600, ..Settings::default() }, Honest);
    until(&mut body, Phase::Switching);
    body.toy.bind(Side::Green, false);
    let stops = |pass: &Pass| matches!(&pass.step, Step::Stop(wait) if wait.reason == Reason::BindingMissing);
    let passes = run(&mut body, |_, pass| stops(pass));
    let told = passes.last().unwrap().status.wait.clone().unwrap().detail;
    assert!(told.contains("\"shop\" -> queue \"orders\"") && told.contains("dropped"), "{told}");
    let passes: Vec<Pass> = (0..20).map(|_| body.pass()).collect();
    assert!(passes.iter().all(stops), "{:?}", passes.last().map(|pass| &pass.step));
    body.toy.bind(Side::Green, true);
    until(&mut body, Phase::Soaking);
}

#[test]
fn what_is_dropped_though_all_bindings_are_there_is_told_and_stops_nothing() {
    let mut body = body(Settings { soak_seconds: 600, replies: true, ..Settings::default() }, Honest);
    until(&mut body, Phase::Switching);
    let passes = until(&mut body, Phase::Soaking);
    assert!(passes.iter().all(|pass| !matches!(pass.step, Step::Stop(_))));
    let details = passes.iter().filter_map(|pass| pass.status.wait.as_ref()).map(|wait| &wait.detail);
    assert!(details.clone().any(|d| d.contains("green dropped") && d.contains("a second")));
}

#[test]
fn bindings_are_asked_for_only_after_the_alarm() {
    let mut body = body(Settings { soak_seconds: 600, ..Settings::default() }, Honest);
    until(&mut body, Phase::Switching);
    while body.phase() == Phase::Switching {
        body.pass();
        assert_eq!(body.world.bindings.green, Reading::Unasked);
    }
}

/// Right after the record was stored for the way forward.
fn recorded(settings: Settings) -> Body<Honest> {
    let mut body = body(settings, Honest);
    run(&mut body, |_, pass| pass.effects.iter().any(|(effect, _)| effect.name() == "StoreRecord"));
    assert!(body.phase().is_before_switch());
    body
}

#[test]
fn definitions_are_compared_once_more_before_traffic_moves() {
    let mut body = recorded(Settings::default());
    body.toy.brokers.blue.users.insert("late".to_owned(), None);
    let passes = until(&mut body, Phase::Switching);
    assert!(effects(&passes, "ImportDefinitions") == 1 && body.toy.brokers.green.users.contains_key("late"));
}

#[test]
fn what_changed_last_stops_the_switch_where_changes_block() {
    let mut body = recorded(Settings::default());
    body.plan.topology.on_change = OnChange::Block;
    body.toy.brokers.blue.users.insert("late".to_owned(), None);
    for _ in 0..40 {
        let pass = body.pass();
        assert!(!matches!(pass.step, Step::Go(_)) && effects(&[pass], "Point") == 0);
    }
    let wait = body.stored.wait.clone().unwrap();
    assert!(wait.reason == "TopologyDiffers" && wait.detail.contains("late"), "{wait:?}");
}

#[test]
fn a_younger_migration_of_the_same_blue_writes_nothing() {
    let mut body = body(Settings::default(), Honest);
    body.plan.created = Some(stamp(2000));
    let older = OtherMigration {
        name: "first".to_owned(),
        uid: "9".to_owned(),
        created: Some(stamp(1000)),
        phase: Phase::Preflight,
        waits_for: None,
        checks_only: false,
        stateful_sets: ["rabbitmq".to_owned(), "first-green".to_owned()].into(),
        services: BTreeSet::new(),
    };
    body.toy.others = vec![older];
    for _ in 0..20 {
        let pass = body.pass();
        let Step::Stop(wait) = &pass.step else { panic!("{:?}", pass.step) };
        assert!(
            wait.reason == Reason::Conflict
                && wait.detail.contains("migration first uses StatefulSet rabbitmq")
        );
    }
    assert!(body.toy.brokers.blue.ours.is_empty());
    body.toy.others[0].phase = Phase::Completed;
    until(&mut body, Phase::Probing);
}

#[test]
fn nothing_is_written_while_other_migrations_cannot_be_read() {
    let mut body = body(Settings::default(), Blind { facts: vec![Fact::Others] });
    for _ in 0..20 {
        let pass = body.pass();
        assert!(
            matches!(&pass.step, Step::Wait(wait) if wait.reason == Reason::CannotSee),
            "{:?}",
            pass.step
        );
    }
}

#[test]
fn a_binding_that_vanishes_before_the_switch_is_brought_again() {
    let mut body = body(Settings::default(), Honest);
    until(&mut body, Phase::Probing);
    body.toy.bind(Side::Green, false);
    let passes = until(&mut body, Phase::Switching);
    assert_eq!(effects(&passes, "ImportDefinitions"), 1);
}

/// One connection of which statistics never tell anything.
struct Mystery;

impl Boundary for Mystery {
    fn seen(&mut self, fact: Fact, world: &mut World) {
        if fact == Fact::Connections(Side::Blue)
            && let Reading::Seen(connections) = &mut world.connections.blue
        {
            connections.push(ConnectionView {
                name: "mystery".to_owned(),
                user: "shop".to_owned(),
                client: None,
                protocol: String::new(),
                role: Role::Unknown,
            });
        }
    }
}

#[test]
fn one_that_stays_unknown_does_not_cut_short_the_wait_for_a_fresh_one() {
    let mut body = body(Settings::default(), Mystery);
    until(&mut body, Phase::Switching);
    let record = body.toy.record.unwrap();
    let unknown: Vec<_> = record.clients.iter().filter(|client| client.role == Role::Unknown).collect();
    assert_eq!(unknown.len(), 1, "{unknown:?}");
}
