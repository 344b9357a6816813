//! The books of one side.

use std::time::Duration;

use proptest::prelude::*;
use rabbit::amqp::transport::Outcome;

use crate::body::Stamp;
use crate::latency::Recorder;
use crate::ledger::{Ledger, Terms};
use crate::schedule::{Rate, Schedule};
use crate::window::Record;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const SIZE: usize = 44;

/// 100 messages per second in windows of one second; lost after two.
fn ledger() -> Ledger {
    let schedule = Schedule::new(Rate::per_second(100), Duration::from_millis(5), Duration::from_secs(1));
    let terms = Terms { schedule, run: 7, side: 1, queues: 1, loss_deadline: 2 * SECOND };
    Ledger::new(terms, Recorder::new().unwrap())
}

/// Sends the first window, each message on time, and one more.
fn first_window(ledger: &mut Ledger) -> Vec<Stamp> {
    (0..101).map(|message| ledger.send(message * 10 * MS)).collect()
}

fn deliver(ledger: &mut Ledger, stamp: &Stamp, redelivered: bool) {
    ledger.receive(0, &stamp.encode(SIZE), redelivered, stamp.intended + MS);
}

fn settle(ledger: &mut Ledger, stamps: &[Stamp]) {
    for stamp in stamps {
        deliver(ledger, stamp, false);
        ledger.answer(stamp.sequence, Outcome::Acked, stamp.intended + MS);
    }
}

#[test]
fn a_window_closes_when_it_is_over_and_settled() {
    let mut ledger = ledger();
    let stamps = first_window(&mut ledger);
    settle(&mut ledger, &stamps[..100]);
    assert!(ledger.close_next(SECOND - 1).is_none());
    let record = ledger.close_next(SECOND).unwrap();
    assert_eq!((record.index, record.counters.planned, record.counters.received), (0, 100, 100));
    assert!(ledger.close_next(SECOND).is_none());
}

#[test]
fn what_is_owed_keeps_a_window_open_until_the_loss_deadline() {
    let mut ledger = ledger();
    let stamps = first_window(&mut ledger);
    settle(&mut ledger, &stamps[1..100]);
    assert!(ledger.close_next(3 * SECOND - 1).is_none());
    let record = ledger.close_next(3 * SECOND).unwrap();
    assert_eq!((record.counters.lost, record.recorders.e2e.infinite()), (1, 1));
    deliver(&mut ledger, &stamps[0], false);
    deliver(&mut ledger, &stamps[0], false);
    let counters = ledger.close_next(9 * SECOND);
    assert!(counters.is_none(), "the second window is not planned to its end yet");
    (101..200).for_each(|_| ledger.drop_slot());
    let counters = ledger.close_next(9 * SECOND).unwrap().counters;
    assert_eq!((counters.late, counters.duplicate, counters.not_sent), (1, 1, 99));
}

#[test]
fn messages_of_others_are_foreign() {
    let mut ledger = ledger();
    let stamp = ledger.send(0);
    let others = [
        Stamp { run: 8, ..stamp },
        Stamp { side: 0, ..stamp },
        Stamp { publisher: 1, ..stamp },
        Stamp { intended: 1, ..stamp },
        Stamp { sequence: 50, intended: 500 * MS, ..stamp },
    ];
    for other in &others {
        deliver(&mut ledger, other, false);
    }
    ledger.receive(0, b"hello", false, MS);
    ledger.receive(0, &[0; 3_000], false, MS);
    (1..100).for_each(|_| ledger.drop_slot());
    let counters = ledger.close_next(9 * SECOND).unwrap().counters;
    assert_eq!((counters.foreign, counters.received, counters.lost), (7, 0, 1));
}

#[test]
fn a_message_from_the_future_is_negative_never_absolute() {
    let mut ledger = ledger();
    let (one, two) = (ledger.send(5 * MS), ledger.send(10 * MS));
    ledger.receive(0, &one.encode(SIZE), false, 4 * MS);
    ledger.receive(0, &two.encode(SIZE), false, 9 * MS);
    (2..100).for_each(|_| ledger.drop_slot());
    let record = ledger.close_next(9 * SECOND).unwrap();
    assert_eq!((record.counters.negative, record.counters.received), (2, 2));
    assert_eq!(record.recorders.e2e.messages(), 98);
}

#[test]
fn order_is_judged_without_redeliveries_and_doubles() {
    let mut ledger = ledger();
    let stamps = first_window(&mut ledger);
    for (message, redelivered) in [(0, false), (2, false), (1, false), (3, false), (3, false), (3, true)] {
        deliver(&mut ledger, &stamps[message], redelivered);
    }
    // Requeued by a cut connection: late in order, and rightly so.
    deliver(&mut ledger, &stamps[5], false);
    deliver(&mut ledger, &stamps[4], true);
    let records: Vec<Record> = std::iter::from_fn(|| ledger.close_next(9 * SECOND)).collect();
    assert_eq!(records.len(), 1);
    (101..200).for_each(|_| ledger.drop_slot());
    let mut counters = records[0].counters;
    counters.add(&ledger.close_next(9 * SECOND).unwrap().counters);
    assert_eq!((counters.reordered, counters.duplicate, counters.redelivered), (1, 1, 1));
}

#[test]
fn a_pause_skips_its_slots_and_marks_the_windows_it_touches() {
    let mut ledger = ledger();
    (0..50).for_each(|_| ledger.drop_slot());
    ledger.pause();
    ledger.skip_to(450);
    (450..501).for_each(|_| ledger.drop_slot());
    let records: Vec<Record> = std::iter::from_fn(|| ledger.close_next(9 * SECOND)).collect();
    let seen: Vec<_> = records.iter().map(|r| (r.index, r.counters.planned, r.paused)).collect();
    assert_eq!(seen, [(0, 50, true), (4, 50, true)]);
}

#[test]
fn what_happens_between_windows_is_counted_in_the_next() {
    let mut ledger = ledger();
    ledger.reconnect(true);
    ledger.block();
    (0..101).for_each(|_| ledger.drop_slot());
    let counters = ledger.close_next(9 * SECOND).unwrap().counters;
    assert_eq!((counters.reconnects, counters.own_reconnects, counters.blocked), (1, 1, 1));
}

#[test]
fn after_a_long_stall_of_our_own_windows_do_not_pile_up() {
    let mut ledger = ledger();
    let (mut closed, mut most) = (0, 0);
    for _ in 0..100_000 {
        ledger.send(1_000 * SECOND);
        while ledger.is_crowded() {
            closed += ledger.close_next(0).map_or(0, |_| 1);
        }
        most = most.max(ledger.undelivered());
    }
    assert!(closed > 900 && most <= 800, "{closed} {most}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_planned_message_is_accounted_for_once(
        fates in prop::collection::vec(0u8..6, 300),
    ) {
        let mut ledger = ledger();
        for fate in &fates {
            if *fate == 0 {
                ledger.drop_slot();
                continue;
            }
            let stamp = ledger.send(ledger.cursor() * 10 * MS);
            if [1, 2, 3].contains(fate) {
                deliver(&mut ledger, &stamp, false);
            }
            let outcome = if *fate == 4 { Outcome::Returned } else { Outcome::Acked };
            if *fate != 2 {
                ledger.answer(stamp.sequence, outcome, stamp.intended + MS);
            }
        }
        ledger.drop_slot();
        for record in std::iter::from_fn(|| ledger.close_next(60 * SECOND)) {
            let counters = record.counters;
            prop_assert_eq!(counters.planned, 100);
            prop_assert_eq!(counters.planned, counters.sent + counters.not_sent);
            prop_assert_eq!(counters.sent, counters.received + counters.lost + counters.returned);
            prop_assert_eq!(record.recorders.e2e.messages(), counters.planned);
            prop_assert_eq!(record.recorders.confirm.messages(), counters.planned);
            prop_assert_eq!(record.recorders.sendlag.messages(), counters.sent);
            let never = counters.lost + counters.not_sent + counters.returned;
            prop_assert_eq!(record.recorders.e2e.infinite(), never);
        }
    }
}
