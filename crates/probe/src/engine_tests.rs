//! The engine against a broker of a few lines, in real time: what must show in the numbers does.

use std::time::{Duration, Instant};

use crate::fake::{Broker, Script};
use crate::handle::{Handle, spawn};
use crate::latency::Latency;
use crate::summary::{Fault, Merged, PairedWindow, Validity};
use crate::{Config, QueueType, Rate, SideConfig, State, WarmupConfig, WindowLength};

const MS: Duration = Duration::from_millis(1);
const LABELS: [&str; 2] = ["left", "right"];

fn config(sides: usize) -> Config {
    let side = |label: &&str| SideConfig {
        label: (*label).to_owned(),
        addrs: vec![("fake".to_owned(), 1)],
        vhost: "probe".to_owned(),
        credentials: rabbit::Credentials::new("probe", "hunter2"),
        tls: None,
        queue_type: QueueType::Quorum,
    };
    let mut config = Config::new(LABELS.iter().take(sides).map(side).collect(), Rate::per_second(1_000));
    config.size = 64;
    config.window = WindowLength::TestOnly(500 * MS);
    config.warmup = WarmupConfig { min: Duration::ZERO, cap: Duration::ZERO, tolerance: 10 };
    config.loss_deadline = 500 * MS;
    // A busy test machine is late; that is not what these tests are about.
    config.sendlag_bound = Duration::from_secs(10);
    config
}

fn start(config: &Config, scripts: &[Script], length: Duration) -> (Handle, Vec<Broker>) {
    let brokers: Vec<Broker> = scripts.iter().cloned().map(Broker::new).collect();
    (spawn(config.clone(), brokers.clone(), Some(length)).unwrap(), brokers)
}

fn wait(handle: &Handle, wanted: impl Fn(&State) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !wanted(&handle.state()) {
        assert!(Instant::now() < deadline, "{:?}", handle.state());
        std::thread::sleep(10 * MS);
    }
}

/// Runs one side to its end.
fn run(script: Script, length: Duration) -> (Merged, Vec<PairedWindow>, Broker) {
    let (handle, mut brokers) = start(&config(1), &[script], length);
    wait(&handle, |state| *state == State::Finished);
    (handle.merged("left").unwrap(), handle.windows_since(0), brokers.remove(0))
}

#[test]
fn all_that_is_planned_comes_and_the_queues_go() {
    let (merged, windows, broker) = run(Script { delay: MS, ..Script::default() }, 1_000 * MS);
    let counters = merged.counters;
    assert_eq!(
        (counters.planned, counters.sent, counters.received, counters.confirmed),
        (1_000, 1_000, 1_000, 1_000)
    );
    assert_eq!(windows.iter().map(|window| window.index).collect::<Vec<_>>(), [0, 1]);
    assert!(merged.e2e.p50.unwrap() >= Latency::Micros(1_000));
    assert_eq!(broker.state.lock().unwrap().removed, 1);
}

#[test]
fn a_stall_shows_from_the_intended_time_and_not_from_the_actual() {
    let stall = Some((500 * MS, 900 * MS));
    let (merged, _, _) = run(Script { delay: MS, stall, ..Script::default() }, 2_000 * MS);
    assert_eq!((merged.counters.planned, merged.counters.lost), (2_000, 0));
    let (intended, actual) = (merged.e2e.p95.unwrap(), merged.e2e_actual.p95.unwrap());
    // A fifth of the messages came into the stall, a twentieth waited for more than 300 ms.
    assert!(intended.micros().unwrap() > 250_000, "{intended:?}");
    assert!(intended.micros().unwrap() > 4 * actual.micros().unwrap(), "{intended:?} {actual:?}");
}

#[test]
fn a_stall_of_200_ms_in_a_second_shows_in_p99() {
    let mut config = config(1);
    config.window = WindowLength::TestOnly(1_000 * MS);
    let stall = Some((500 * MS, 700 * MS));
    let (handle, _) = start(&config, &[Script { stall, ..Script::default() }], 1_000 * MS);
    wait(&handle, |state| *state == State::Finished);
    let window = handle.latest().unwrap();
    assert!(window.side("left").unwrap().e2e.p99.unwrap().micros().unwrap() > 150_000);
}

#[test]
fn lost_refused_and_doubled_messages_are_told_apart() {
    let lose = (200..250).collect();
    let script = Script { lose, double: vec![10, 20], refuse: vec![30], ..Script::default() };
    let (_, windows, _) = run(script, 1_000 * MS);
    let first = &windows[0].sides[0];
    assert_eq!((first.counters.lost, first.counters.lost_confirmed), (50, 50));
    assert_eq!((first.counters.duplicate, first.counters.nacked), (2, 1));
    assert_eq!((first.e2e.p95, first.e2e.max), (Some(Latency::Infinite), Some(Latency::Infinite)));
    assert!(first.confirm.p99.unwrap() < Latency::Infinite);
    assert_eq!(windows[1].sides[0].counters.lost, 0);
}

#[test]
fn an_outage_is_planned_not_sent_and_infinite_and_stays_a_valid_window() {
    let script = Script { hang_up: Some(500 * MS), away: 400 * MS, ..Script::default() };
    let (merged, windows, broker) = run(script, 2_000 * MS);
    assert_eq!(merged.counters.planned, 2_000);
    assert!(merged.counters.not_sent >= 400, "{:?}", merged.counters);
    assert_eq!((merged.counters.reconnects, merged.counters.own_reconnects), (1, 0));
    assert!(windows.iter().all(PairedWindow::is_valid));
    assert_eq!(windows[1].sides[0].e2e.p50, Some(Latency::Infinite));
    assert_eq!(windows[3].sides[0].counters.received, 500);
    assert_eq!(broker.state.lock().unwrap().opened, 2);
}

#[test]
fn in_flight_is_capped_by_counting_dropped_slots() {
    let mut config = config(1);
    config.max_in_flight = Some(100);
    let stall = Some((Duration::ZERO, 1_000 * MS));
    let (handle, _) = start(&config, &[Script { stall, ..Script::default() }], 500 * MS);
    wait(&handle, |state| *state == State::Finished);
    let counters = handle.latest().unwrap().sides[0].counters;
    assert_eq!((counters.planned, counters.sent, counters.not_sent), (500, 100, 400));
}

#[test]
fn both_sides_get_the_same_plan_and_only_the_slow_one_is_slow() {
    let scripts = [Script { delay: MS, ..Script::default() }, Script { delay: 50 * MS, ..Script::default() }];
    let (handle, _) = start(&config(2), &scripts, 1_500 * MS);
    wait(&handle, |state| *state == State::Finished);
    for window in handle.windows_since(0) {
        let (left, right) = (window.side("left").unwrap(), window.side("right").unwrap());
        assert_eq!(left.counters.planned, right.counters.planned);
        assert!(right.e2e.p50.unwrap() >= Latency::Micros(50_000));
        assert!(left.e2e.p50.unwrap() < Latency::Micros(50_000));
    }
    assert_eq!(handle.windows_since(2).len(), 1);
    assert_eq!(handle.merged("middle"), None);
}

#[test]
fn a_pause_is_not_planned_and_makes_its_windows_invalid() {
    let (handle, _) = start(&config(1), &[Script::default()], 4_000 * MS);
    wait(&handle, |_| handle.latest().is_some());
    handle.pause();
    wait(&handle, |state| *state == State::Paused);
    std::thread::sleep(1_200 * MS);
    handle.resume();
    wait(&handle, |state| *state == State::Finished);
    let windows = handle.windows_since(0);
    assert!(windows.len() < 8, "a window wholly within the pause is not kept");
    assert!(windows[0].is_valid() && windows.last().unwrap().is_valid());
    let paused: Vec<_> = windows.iter().filter(|window| !window.is_valid()).collect();
    assert!((1..=2).contains(&paused.len()));
    assert!(paused.iter().all(|window| window.sides[0].validity == Validity::Invalid(Fault::Paused)));
    let merged = handle.merged("left").unwrap();
    assert_eq!((merged.counters.not_sent, merged.counters.lost), (0, 0));
}

#[test]
fn a_late_generator_makes_the_window_invalid() {
    let mut config = config(1);
    config.sendlag_bound = Duration::ZERO;
    let (handle, _) = start(&config, &[Script::default()], 500 * MS);
    wait(&handle, |state| *state == State::Finished);
    let window = handle.latest().unwrap();
    assert_eq!(window.sides[0].validity, Validity::Invalid(Fault::SendLag));
    assert_eq!(handle.merged("left").unwrap().windows, 0);
}

#[test]
fn a_side_that_nobody_answers_fails_the_start_and_leaves_nothing() {
    let mut config = config(2);
    config.connect_deadline = 300 * MS;
    let away = Script { hang_up: Some(Duration::ZERO), away: Duration::from_mins(1), ..Script::default() };
    let brokers = [Broker::new(Script::default()), Broker::new(away)];
    brokers[1].hang_up_now();
    let handle = spawn(config, brokers.to_vec(), None).unwrap();
    wait(&handle, |state| matches!(state, State::Failed(_)));
    let State::Failed(why) = handle.state() else { panic!() };
    assert_eq!(why, "right: connect to fake vhost  as : not reachable: away");
    assert_eq!(handle.stop(), []);
    assert_eq!(brokers[0].state.lock().unwrap().removed, 1);
}

#[test]
fn a_stop_ends_it_soon_and_drops_need_no_wait() {
    let brokers = vec![Broker::new(Script::default())];
    let handle = spawn(config(1), brokers.clone(), None).unwrap();
    wait(&handle, |_| handle.latest().is_some());
    let before = Instant::now();
    assert_eq!(handle.stop(), []);
    assert!(before.elapsed() < Duration::from_secs(3));
    assert_eq!(brokers[0].state.lock().unwrap().removed, 1);
}
