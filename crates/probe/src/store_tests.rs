//! Pairing, judging and merging.

use std::time::Duration;

use rabbit::amqp::transport::Outcome;

use crate::config::{Config, QueueType, SideConfig, WarmupConfig, WindowLength};
use crate::latency::{Latency, Recorder};
use crate::schedule::{Rate, Schedule};
use crate::store::Store;
use crate::summary::{Fault, Throttling, Validity};
use crate::warmup::Phase;
use crate::window::{Record, Window};

const MS: u64 = 1_000_000;

fn store(warmup: Duration, keep: usize) -> Store {
    let side = |label: &str| SideConfig {
        label: label.to_owned(),
        addrs: vec![("localhost".to_owned(), 5672)],
        vhost: "probe".to_owned(),
        credentials: rabbit::Credentials::new("probe", "hunter2"),
        tls: None,
        queue_type: QueueType::Classic,
    };
    let mut config = Config::new(vec![side("left"), side("right")], Rate::per_second(10));
    config.window = WindowLength::TestOnly(Duration::from_secs(1));
    config.warmup = WarmupConfig { min: warmup, cap: warmup, tolerance: 10 };
    config.keep_windows = keep;
    let schedule = Schedule::new(config.rate, config.tick(), config.window_length());
    Store::new(&config, schedule, &Recorder::new().unwrap())
}

fn record(index: u64, latency_ms: u64, change: impl FnOnce(&mut Window)) -> Record {
    let first = index * 10;
    let mut window = Window::new(index, (first, first + 10), &Recorder::new().unwrap());
    for sequence in first..first + 10 {
        window.send(0);
        window.receive(sequence, Some(latency_ms * MS));
        window.answer(sequence, Outcome::Acked, Some(latency_ms * MS));
    }
    change(&mut window);
    window.close().0
}

fn submit(store: &mut Store, index: u64, change: impl FnOnce(&mut Window)) {
    store.throttled(index, Throttling::None);
    store.submit(0, record(index, 1, |_| {}));
    store.submit(1, record(index, 2, change));
}

#[test]
fn a_window_appears_when_both_sides_and_the_kernel_have_spoken() {
    let mut store = store(Duration::ZERO, 10);
    store.submit(1, record(0, 2, |_| {}));
    store.submit(0, record(0, 1, |_| {}));
    assert_eq!(store.latest(), None);
    store.throttled(0, Throttling::Unknown);
    let window = store.latest().unwrap();
    assert_eq!(window.side("left").unwrap().e2e.p50, Some(Latency::Micros(1_000)));
    assert_eq!(window.side("right").unwrap().e2e.p50, Some(Latency::Micros(2_000)));
    assert_eq!(window.sides[0].throttling, Throttling::Unknown);
    assert!(window.is_valid());
}

#[test]
fn one_invalid_side_keeps_the_window_of_both_out_of_the_totals() {
    let mut store = store(Duration::ZERO, 10);
    submit(&mut store, 0, |_| {});
    submit(&mut store, 1, |window| window.counters.own_reconnects = 1);
    submit(&mut store, 2, |window| window.paused = true);
    let faults: Vec<_> = store.windows_since(0).iter().map(|window| window.sides[1].validity).collect();
    let invalid = |fault| Validity::Invalid(fault);
    assert_eq!(faults, [Validity::Valid, invalid(Fault::OwnReconnect), invalid(Fault::Paused)]);
    let merged = store.merged("left").unwrap();
    assert_eq!((merged.windows, merged.invalid_windows, merged.counters.received), (1, 2, 10));
}

#[test]
fn throttling_and_send_lag_make_it_invalid_and_a_brokers_faults_do_not() {
    let mut store = store(Duration::ZERO, 10);
    store.throttled(0, Throttling::Periods(3));
    store.submit(0, record(0, 1, |_| {}));
    store.submit(1, record(0, 1, |_| {}));
    assert_eq!(store.latest().unwrap().sides[0].validity, Validity::Invalid(Fault::Throttled));
    submit(&mut store, 1, |window| (0..5).for_each(|_| window.send(2 * MS)));
    assert_eq!(store.latest().unwrap().sides[1].validity, Validity::Invalid(Fault::SendLag));
    submit(&mut store, 2, |window| {
        window.counters.reconnects = 1;
        window.counters.blocked = 1;
        window.not_sent();
    });
    assert!(store.latest().unwrap().is_valid());
}

#[test]
fn the_warm_up_is_discarded_and_old_windows_go() {
    let mut store = store(Duration::from_secs(2), 3);
    (0..8).for_each(|index| submit(&mut store, index, |_| {}));
    assert_eq!(store.phase(), Phase::Over { settled: false });
    let kept: Vec<_> = store.windows_since(0).iter().map(|window| window.index).collect();
    assert_eq!(kept, [5, 6, 7]);
    assert_eq!(store.windows_since(7).len(), 1);
    assert_eq!(store.windows_since(8).len(), 0);
    assert_eq!(store.merged("right").unwrap().windows, 6);
}

#[test]
fn a_side_that_never_closes_a_window_does_not_hold_memory() {
    let mut store = store(Duration::ZERO, 10);
    for index in 0..500 {
        store.throttled(index, Throttling::None);
        store.submit(0, record(index, 1, |_| {}));
    }
    submit(&mut store, 500, |_| {});
    assert_eq!(store.windows_since(0).len(), 1);
    assert_eq!(store.half_paired(), 31);
}
