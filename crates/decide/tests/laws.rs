//! The laws: thousands of migrations, each drawn from a seed, each with its own faults and orders.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::migrate;
use common::scenario::Scenario;
use decide::toy::Honest;
use std::collections::{BTreeMap, BTreeSet};

/// Migrations of an ordinary run; `LAWS_SEEDS` asks for more, `LAWS_SEED` for one.
const SEEDS: u64 = 1000;

/// What the migrations together must meet: a law that never judged anything is no law.
const MARKS: [&str; 36] = [
    "Go Completed",
    "Go RolledBack",
    "Go RollingBack",
    "Go Preflight",
    "Stop Aborted",
    "Stop CleaningUp",
    "Stop Completed",
    "Stop GateDeadline",
    "Stop RoutingContested",
    "Stop BindingMissing",
    "Go back to Switching",
    "Stop RolledBackAsAsked",
    "Wait AwaitingApproval",
    "Wait CannotSee",
    "Wait Draining",
    "Wait GateFailed",
    "Wait GreenStarting",
    "Wait Paused",
    "Wait ProvingEmpty",
    "Wait PublishersLeaving",
    "Wait RouteNotSeen",
    "Wait Settling",
    "Wait Soaking",
    "Wait TopologyUnknown",
    "Point Half",
    "Point After",
    "Fence Half",
    "Unfence Half",
    "Close Half",
    "Carry Half",
    "ImportDefinitions Half",
    "StoreRecord After",
    "CleanBroker Half",
    "RemoveGreen Done",
    "RemoveRecord After",
    "ScaleBlueToZero Done",
];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

#[test]
fn every_migration_keeps_the_laws() {
    let seeds: Vec<u64> = match number("LAWS_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("LAWS_SEEDS").unwrap_or(SEEDS)).collect(),
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        let half = seeds.len().div_ceil(2).max(1);
        let run = |seeds: &[u64]| -> Vec<_> {
            seeds.iter().map(|seed| (*seed, migrate(&Scenario::drawn(*seed), Honest))).collect()
        };
        let handles: Vec<_> = seeds.chunks(half).map(|part| scope.spawn(move || run(part))).collect();
        handles.into_iter().flat_map(|handle| handle.join().unwrap()).collect()
    });
    let mut ends: BTreeMap<String, u64> = BTreeMap::new();
    let mut marks = BTreeSet::new();
    let mut passes = 0;
    let mut broken: BTreeMap<String, (u64, u64, String)> = BTreeMap::new();
    for (seed, result) in results {
        match result {
            Ok(outcome) => {
                *ends.entry(outcome.end).or_default() += 1;
                marks.extend(outcome.marks);
                passes += outcome.passes;
            }
            Err(law) => {
                let key = law.chars().filter(|c| !c.is_ascii_digit()).collect();
                broken.entry(key).or_insert((0, seed, law)).0 += 1;
            }
        }
    }
    println!("{} migrations, {passes} passes, ends {ends:?}", seeds.len());
    println!("marks: {}", marks.iter().cloned().collect::<Vec<_>>().join(", "));
    for (times, seed, law) in broken.values() {
        println!("{times}x {law} LAWS_SEED={seed}");
    }
    let unmet: Vec<&str> = MARKS.iter().copied().filter(|mark| !marks.contains(*mark)).collect();
    assert!(seeds.len() < 100 || unmet.is_empty(), "no migration met these: {unmet:?}");
    assert!(broken.is_empty(), "{} laws are broken; replay: LAWS_SEED=<seed> make laws", broken.len());
}
