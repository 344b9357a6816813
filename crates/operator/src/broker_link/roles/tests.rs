//! Tests of the remembered roles.

use super::*;
use serde_json::json;

fn rows<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> Vec<T> {
    serde_json::from_value(value).unwrap()
}

/// A worker, a consumer that has acked only, a subscriber, an idle one and one without channels.
fn learned(seen_before: Duration) -> RoleBook {
    let channels = rows(json!([
        {"name": "w (1)", "connection_details": {"name": "w"}, "consumer_count": 0, "message_stats": {"publish": 9}},
        {"name": "w (2)", "connection_details": {"name": "w"}, "consumer_count": 1},
        {"name": "c (1)", "connection_details": {"name": "c"}, "consumer_count": 1, "message_stats": {"ack": 9}},
        {"name": "s (1)", "connection_details": {"name": "s"}, "consumer_count": 1},
        {"name": "i (1)", "connection_details": {"name": "i"}, "consumer_count": 0},
        {"name": "l (1)", "connection_details": {"name": "l"}, "consumer_count": 1},
        {"name": "f (1)", "connection_details": {"name": "f"}},
    ]));
    let consumer = |queue: &str, connection: &str| {
        json!({"consumer_tag": "t", "queue": {"vhost": "/", "name": queue},
            "channel_details": {"connection_name": connection}})
    };
    let consumers = rows(json!([consumer("orders", "w"), consumer("orders", "c"), consumer("own", "s")]));
    let connections = rows(json!([
        {"name": "w"}, {"name": "c"}, {"name": "s", "user_provided_name": "ticker"}, {"name": "i"},
        {"name": "l"}, {"name": "f"}, {"name": "n", "channels": 0},
    ]));
    let private = BTreeSet::new();
    let auto_delete = BTreeSet::from([("/".to_owned(), "own".to_owned())]);
    let statistics = Statistics {
        connections: &connections,
        channels: &channels,
        consumers: &consumers,
        private: &private,
        auto_delete: &auto_delete,
    };
    let live = rows(json!([
        {"name": "w"}, {"name": "c"}, {"name": "s"}, {"name": "i"}, {"name": "l"}, {"name": "f"}, {"name": "n"},
        {"name": "new"},
    ]));
    let mut book = RoleBook::default();
    let start = Instant::now();
    book.note(&live, start);
    book.learn(&statistics, start + seen_before);
    book
}

#[test]
fn roles_come_from_channels_and_consumers() {
    let book = learned(SETTLED);
    assert_eq!(book.role("w"), Role::Worker);
    assert_eq!(book.role("c"), Role::Consumer);
    assert_eq!(book.role("s"), Role::BroadcastSubscriber, "the only reader of an auto-delete queue");
    assert_eq!(book.role("i"), Role::Idle);
    assert_eq!(book.role("n"), Role::Idle, "no channel, so it does nothing");
    assert_eq!(book.client("s").as_deref(), Some("ticker"));
}

#[test]
fn what_is_not_told_yet_is_unknown() {
    let book = learned(SETTLED);
    assert_eq!(book.role("l"), Role::Unknown, "its channel has a consumer that is not listed yet");
    assert_eq!(book.role("f"), Role::Unknown, "its channel has no statistics yet");
    assert_eq!(book.role("new"), Role::Unknown, "not in the statistics");
    assert_eq!(book.role("gone"), Role::Unknown);
    assert_eq!(learned(Duration::ZERO).role("i"), Role::Unknown, "a fresh publisher looks idle");
}

#[test]
fn a_closed_channel_does_not_undo_a_publisher() {
    let mut book = learned(SETTLED);
    let connections = rows(json!([{"name": "w", "channels": 0}]));
    let (none, empty) = (BTreeSet::new(), Vec::new());
    let statistics = Statistics {
        connections: &connections,
        channels: &empty,
        consumers: &[],
        private: &none,
        auto_delete: &none,
    };
    book.learn(&statistics, Instant::now() + SETTLED);
    assert_eq!(book.role("w"), Role::Publisher);
}

#[test]
fn statistics_are_read_again_only_while_somebody_is_unknown() {
    let (second, minute) = (Duration::from_secs(1), Duration::from_mins(1));
    assert!(RoleBook::default().wants_statistics(Instant::now(), second, minute), "never read");
    let mut book = learned(SETTLED);
    let now = Instant::now() + SETTLED;
    assert!(!book.wants_statistics(now, second, minute), "just read");
    assert!(book.wants_statistics(now + second, second, minute), "somebody is unknown");
    book.note(&rows(json!([{"name": "w"}])), now);
    assert!(!book.wants_statistics(now + second, second, minute));
    assert!(book.wants_statistics(now + minute + second, second, minute));
}
