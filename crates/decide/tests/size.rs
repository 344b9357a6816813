//! The status stays small, however much there is to say: 10,000 queues, 1,000 vhosts, every check troubled.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use api::bounds::STATUS_BYTES;
use api::spec::{Enforcement, Metric, Objective, Percentile, Waiver};
use api::{Phase, RabbitMQMigrationStatus};
use decide::effect::QueueRef;
use decide::placement::{NodeView, Requirement, Term};
use decide::plan::Plan;
use decide::record::{OriginalLimit, OriginalService, SwitchRecord};
use decide::side::Side;
use decide::toy::{Settings, Toy};
use decide::world::{EntranceView, EpochView, ProbeView, QueueTotals, Reading, UserView, World};

const QUEUES: usize = 10_000;
const VHOSTS: usize = 1000;

/// As long as RabbitMQ lets a name be, with what is longer as JSON.
fn name(what: &str, number: usize) -> String {
    format!("{what}-{number}-\"{}\"", "ü".repeat(100))
}

fn plan() -> Plan {
    let settings = Settings { services: 7, missing_service: true, ..Settings::default() };
    let mut plan = decide::toy::plan(&settings).unwrap();
    let objective = |number: usize| Objective {
        name: format!("{number:0>63}"),
        percentile: Percentile::P999,
        metric: Metric::EndToEnd,
        max_millis: Some(60_000),
        max_percent_of_blue: Some(10_000),
        enforcement: Enforcement::Enforced,
    };
    plan.gate.objectives = (0..12).map(objective).collect();
    let waiver = |number| Waiver { check: format!("{number:0>63}"), reason: "\"".repeat(512) };
    plan.waivers = (0..32).map(waiver).collect();
    plan
}

fn queue(number: usize) -> QueueRef {
    QueueRef { vhost: name("vhost", number % VHOSTS), name: name("queue", number) }
}

fn lines(what: &str) -> Vec<String> {
    (0..QUEUES).map(|number| format!("{what} of {}", name("queue", number))).collect()
}

fn world(plan: &Plan) -> World {
    let mut toy = Toy::new(Settings { services: 7, alarm: true, ..Settings::default() });
    toy.advance(20_000);
    let mut world = World::default();
    for fact in decide::toy::every_fact() {
        toy.observe(plan, fact, false, &mut world);
    }
    crowd(&mut world, plan);
    world
}

/// Fills everything that can be long.
fn crowd(world: &mut World, plan: &Plan) {
    world.permissions = Reading::Seen((0..500).map(|n| name("patch services", n)).collect());
    let entrance = |n| EntranceView { name: format!("entrance-{n:0>200}"), headless: false };
    world.entrances = Reading::Seen((0..1000).map(entrance).collect());
    let user = |n| UserView { name: name("user", n), max_connections: Some(7) };
    let users: Vec<_> = (0..QUEUES).map(user).collect();
    let totals =
        |n| QueueTotals { queue: Some(queue(n)), kind: "stream".to_owned(), ..QueueTotals::default() };
    let queues: Vec<_> = (0..QUEUES).map(totals).collect();
    for side in Side::BOTH {
        *world.epochs.of_mut(side) = Reading::Seen(EpochView { current: true, older: 0 });
        *world.users.of_mut(side) = Reading::Seen(users.clone());
        *world.queues.of_mut(side) = Reading::Seen(queues.clone());
        if let Reading::Seen(broker) = world.brokers.of_mut(side) {
            broker.alarms = (0..500).map(|n| name("memory on rabbit", n)).collect();
            broker.versions.insert("3.11.0".repeat(100));
        }
    }
    let limit = |n| OriginalLimit { side: Side::Green, user: name("user", n), max_connections: None };
    let mut record = SwitchRecord {
        heading: "Forward".to_owned(),
        from: Some(Side::Blue),
        limits: (0..QUEUES).map(limit).collect(),
        services: plan.services.iter().map(|service| original(service)).collect(),
        ..SwitchRecord::default()
    };
    record.manual_exit = decide::manual_exit::commands(plan, &record, 3);
    world.record = Reading::Seen(Some(record));
    world.definitions = Reading::Seen(decide::world::DefinitionsView {
        counts: name("counts", 1).repeat(50),
        rewrites: lines("quorum-queues"),
        needs_consent: lines("mirroring-keys"),
        differences: lines("green lacks"),
        import_error: Some(name("error", 1).repeat(100)),
        imported: Some("0123456789abcdef".to_owned()),
        ..decide::world::DefinitionsView::default()
    });
    world.probe = Reading::Seen(ProbeView {
        sides: Side::BOTH.to_vec(),
        state: name("state", 1).repeat(20),
        load_test: Some((false, name("load test", 1).repeat(20))),
        latencies: Side::BOTH.map(|side| (side, [Some(u64::MAX); 3], u64::MAX, u64::MAX)).to_vec(),
        ..ProbeView::default()
    });
    scatter(world);
}

fn original(service: &str) -> OriginalService {
    let selector = |n: usize| (0..16).map(|key| (format!("{key:0>63}"), format!("{n:0>63}"))).collect();
    OriginalService {
        name: service.to_owned(),
        uid: service.to_owned(),
        blue_selector: selector(1),
        green_selector: selector(2),
        manager: None,
    }
}

/// Volumes that may be used in a hundred zones.
fn scatter(world: &mut World) {
    let zone = |n: usize| format!("zone-{n:0>58}");
    if let Reading::Seen(nodes) = &mut world.nodes {
        let labels = |n| [("topology.kubernetes.io/zone".to_owned(), zone(n))].into();
        let node = |n| NodeView { name: format!("node-{n:0>200}"), labels: labels(n), ..NodeView::default() };
        nodes.extend((0..100).map(node));
    }
    if let Reading::Seen((_, volumes)) = &mut world.volumes {
        let requirement = Requirement {
            key: "topology.kubernetes.io/zone".to_owned(),
            operator: decide::placement::Operator::In,
            values: (0..100).map(zone).collect(),
        };
        for volume in volumes {
            volume.node_affinity =
                Some(vec![Term { expressions: vec![requirement.clone()], ..Term::default() }]);
        }
    }
}

fn bytes(status: &RabbitMQMigrationStatus) -> usize {
    serde_json::to_string(status).unwrap().len()
}

/// Every phase on one status, so that it holds what all of them say.
#[test]
fn a_status_of_ten_thousand_queues_fits_in_every_phase() {
    let plan = plan();
    let world = world(&plan);
    let (mut told, mut stored) = (RabbitMQMigrationStatus::default(), RabbitMQMigrationStatus::default());
    let mut largest = 0;
    for (number, phase) in Phase::ALL.into_iter().enumerate() {
        let now = decide::toy::stamp(20_000 + i64::try_from(number).unwrap());
        for status in [&mut told, &mut stored] {
            status.phase = Some(phase);
            status.observed_generation = plan.generation;
            *status = decide::next(&plan, status, &world, now).status;
            if let Some(record) = world.record.seen().and_then(Option::as_ref) {
                status.manual_exit.clone_from(&record.manual_exit);
            }
        }
        // What is told in memory, and what the next pass begins with.
        let bounded = told.bounded();
        stored = stored.bounded();
        assert!(bytes(&bounded) <= STATUS_BYTES, "{phase}: {} bytes", bytes(&bounded));
        assert!(bytes(&stored) <= STATUS_BYTES, "{phase}: {} bytes", bytes(&stored));
        assert_eq!(bounded.conditions.len(), api::conditions::ALL.len());
        largest = largest.max(bytes(&told));
        if phase == Phase::SyncingTopology {
            let differences = &stored.topology.as_ref().unwrap().differences;
            let left = QUEUES + 1 - differences.len();
            assert_eq!(differences.last(), Some(&format!("and {left} more")));
        }
    }
    assert!(largest > 10 * STATUS_BYTES, "the world is not large: {largest} bytes unbounded");
    assert!(told.findings.len() >= 8, "checks found little: {}", told.findings.len());
    println!("unbounded {largest} bytes, {} findings", told.findings.len());
}
