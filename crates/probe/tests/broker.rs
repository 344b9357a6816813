//! The probe against a real broker: `PROBE_TEST_ADDR=host:port`. User and password are `PROBE_TEST_USER` and
//! `PROBE_TEST_PASSWORD` (guest); the vhosts `probe` and `probe2` exist. Without the address, skipped.

#![expect(clippy::unwrap_used, reason = "a test may")]

mod support;

use std::time::{Duration, Instant};

use probe::{Config, Handle, Merged, Probe, QueueType, Rate, SideConfig, State, WarmupConfig, WindowLength};
use rabbit::Credentials;
use support::{Flow, Proxy};

fn env(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}

fn address() -> Option<String> {
    let addr = std::env::var("PROBE_TEST_ADDR").ok();
    if addr.is_none() {
        println!("skipped: PROBE_TEST_ADDR names no broker");
    }
    addr
}

fn side(label: &str, vhost: &str, addr: &str) -> SideConfig {
    let (host, port) = addr.rsplit_once(':').unwrap();
    SideConfig {
        label: label.to_owned(),
        addrs: vec![(host.to_owned(), port.parse().unwrap())],
        vhost: vhost.to_owned(),
        credentials: Credentials::new(env("PROBE_TEST_USER", "guest"), env("PROBE_TEST_PASSWORD", "guest")),
        tls: None,
        queue_type: QueueType::Quorum,
    }
}

fn config(sides: Vec<SideConfig>, rate: u32) -> Config {
    let mut config = Config::new(sides, Rate::per_second(rate));
    config.window = WindowLength::TestOnly(Duration::from_secs(1));
    config.warmup = WarmupConfig { min: Duration::from_secs(2), cap: Duration::from_secs(5), tolerance: 25 };
    config.sendlag_bound = Duration::from_millis(50);
    config
}

/// User and system time of all our threads, as getrusage would say.
fn cpu() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(used.tv_sec.try_into().unwrap(), used.tv_nsec.try_into().unwrap())
}

fn measuring(handle: &Handle) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !matches!(handle.state(), State::Measuring { .. }) {
        assert!(Instant::now() < deadline, "{:?}", handle.state());
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn assert_clean(merged: &Merged) {
    let counters = merged.counters;
    assert_eq!((counters.lost, counters.not_sent, counters.nacked, counters.returned), (0, 0, 0, 0));
    assert_eq!((counters.duplicate, counters.reordered, counters.late), (0, 0, 0));
    assert_eq!((counters.foreign, counters.negative, counters.reconnects), (0, 0, 0));
}

#[test]
fn five_hundred_a_second_for_twenty_seconds() {
    let Some(addr) = address() else { return };
    let handle = Probe::start(config(vec![side("left", "probe", &addr)], 500)).unwrap();
    measuring(&handle);
    let (before, started) = (cpu(), Instant::now());
    std::thread::sleep(Duration::from_secs(20));
    let (used, took) = (cpu().saturating_sub(before), started.elapsed());
    let merged = handle.merged("left").unwrap();
    println!("{:?}: sendlag {:?}", handle.state(), merged.sendlag);
    println!("e2e {:?}\nactual {:?}\nconfirm {:?}", merged.e2e, merged.e2e_actual, merged.confirm);
    println!("CPU {:.1} % of a core", 100.0 * used.as_secs_f64() / took.as_secs_f64());
    assert_eq!(handle.stop(), []);
    assert!(merged.windows + merged.invalid_windows >= 18);
    assert_eq!(merged.counters.planned, 500 * merged.windows);
    assert_clean(&merged);
}

/// `PROBE_TEST_LOAD_RATE` and 3 kB for ten seconds: what one side costs.
#[test]
fn a_load_test_of_one_side_ends_by_itself() {
    let Some(addr) = address() else { return };
    let rate = env("PROBE_TEST_LOAD_RATE", "1000").parse().unwrap();
    let mut config = config(vec![side("left", "probe", &addr)], rate);
    config.size = 3_000;
    let (before, started) = (cpu(), Instant::now());
    let test = Probe::load_test(config, Duration::from_secs(10)).unwrap();
    while !matches!(test.state(), State::Finished | State::Failed(_)) {
        std::thread::sleep(Duration::from_millis(100));
        assert!(started.elapsed() < Duration::from_secs(40), "{:?}", test.state());
    }
    let used = cpu().saturating_sub(before);
    let result = test.result().unwrap();
    println!("{:?}", result.measured);
    let messages = f64::from(12 * rate);
    println!("{:.1} us of CPU per message", 1e6 * used.as_secs_f64() / messages);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    println!("{}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default());
    assert!(result.complete);
    assert_eq!(result.measured.windows + result.measured.invalid_windows, 10);
    assert_clean(&result.measured);
}

#[test]
fn two_sides_of_one_broker_get_the_same_plan_and_like_numbers() {
    let Some(addr) = address() else { return };
    let sides = vec![side("left", "probe", &addr), side("right", "probe2", &addr)];
    let handle = Probe::start(config(sides, 200)).unwrap();
    measuring(&handle);
    std::thread::sleep(Duration::from_secs(6));
    handle.pause();
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(handle.state(), State::Paused);
    handle.resume();
    std::thread::sleep(Duration::from_secs(4));
    let windows = handle.windows_since(0);
    let (left, right) = (handle.merged("left").unwrap(), handle.merged("right").unwrap());
    println!("left {:?}\nright {:?}", left.e2e, right.e2e);
    assert!(
        windows.iter().all(|window| { window.sides[0].counters.planned == window.sides[1].counters.planned })
    );
    assert!(windows.len() >= 7 && left.windows >= 6, "{} {}", windows.len(), left.windows);
    assert_clean(&left);
    assert_clean(&right);
    assert_eq!(handle.stop(), []);
}

#[test]
fn a_cut_and_a_hold_show_and_the_probe_comes_back() {
    let Some(addr) = address() else { return };
    let proxy = Proxy::start(addr);
    let handle = Probe::start(config(vec![side("left", "probe2", &proxy.addr.to_string())], 200)).unwrap();
    measuring(&handle);
    std::thread::sleep(Duration::from_secs(3));
    proxy.set(Flow::Cut);
    std::thread::sleep(Duration::from_secs(2));
    proxy.set(Flow::Open);
    std::thread::sleep(Duration::from_secs(3));
    proxy.set(Flow::Held);
    std::thread::sleep(Duration::from_secs(1));
    proxy.set(Flow::Open);
    std::thread::sleep(Duration::from_secs(14));
    let merged = handle.merged("left").unwrap();
    println!("{:?}\ne2e {:?}\nactual {:?}", merged.counters, merged.e2e, merged.e2e_actual);
    assert_eq!((merged.counters.reconnects, merged.counters.own_reconnects), (1, 0));
    assert!(merged.counters.not_sent >= 300, "two seconds without a broker");
    assert_eq!((merged.counters.lost_confirmed, merged.counters.duplicate), (0, 0));
    assert_eq!((merged.counters.reordered, merged.counters.negative), (0, 0));
    let last = handle.latest().unwrap();
    assert_eq!(last.sides[0].counters.received, 200, "{last:?}");
    assert_eq!(handle.stop(), []);
}

#[test]
fn wrong_credentials_fail_at_once_without_the_password() {
    let Some(addr) = address() else { return };
    let mut wrong = side("left", "probe", &addr);
    wrong.credentials = Credentials::new("nobody", "hunter2");
    let handle = Probe::start(config(vec![wrong], 10)).unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    let why = loop {
        if let State::Failed(why) = handle.state() {
            break why;
        }
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(50));
    };
    println!("{why}");
    assert!(why.contains("nobody") && !why.contains("hunter2"));
}
