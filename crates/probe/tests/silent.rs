//! A peer that accepts and never speaks: the start fails in time and no thread stays behind.

#![expect(clippy::unwrap_used, reason = "a test may")]

use std::net::TcpListener;
use std::time::{Duration, Instant};

use probe::{Config, Probe, QueueType, Rate, SideConfig, State};
use rabbit::Credentials;

/// Names of our own threads and of lapin's; async-compat keeps one of its own for all time.
fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok());
    names.filter(|name| ["probe", "lapin-io-loop"].contains(&name.trim())).collect()
}

#[test]
fn a_peer_that_never_speaks_fails_the_start_and_leaves_no_thread() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let side = SideConfig {
        label: "left".to_owned(),
        addrs: vec![("127.0.0.1".to_owned(), listener.local_addr().unwrap().port())],
        vhost: "probe".to_owned(),
        credentials: Credentials::new("probe", "hunter2"),
        tls: None,
        queue_type: QueueType::Classic,
    };
    let mut config = Config::new(vec![side], Rate::per_second(10));
    config.connect_deadline = Duration::from_secs(2);
    let (started, mut seen) = (Instant::now(), false);
    let handle = Probe::start(config).unwrap();
    while !matches!(handle.state(), State::Failed(_)) {
        assert!(started.elapsed() < Duration::from_secs(10), "{:?}", handle.state());
        seen |= !threads().is_empty();
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(seen, "the names are right");
    assert_eq!(handle.stop(), []);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(threads(), [] as [String; 0]);
}
