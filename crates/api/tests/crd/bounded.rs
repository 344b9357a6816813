//! Laws of the bound: whatever a status says, what is stored fits, and what is left out is counted.

use api::bounds::STATUS_BYTES;
use api::status::{
    Columns, FindingStatus, GateStatus, GreenStatus, HandledCommand, LedgerStatus, PhaseRecord,
    PlacementStatus, PlanStatus, ReplicaPlacement, RuleStatus, SideLatency, SwitchStatus, TopologyStatus,
    WaitStatus, ZoneLoss,
};
use api::{Condition, Phase, RabbitMQMigrationStatus, Time};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// How large things are: no texts above `text` characters, no lists above `items` entries.
#[derive(Clone, Copy, Debug)]
struct Size {
    text: usize,
    items: usize,
}

/// Draws a status from a stream of numbers, so that one status can be as large as wanted.
struct Draw {
    state: u64,
    size: Size,
}

impl Draw {
    fn number(&mut self, below: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state >> 16).unwrap() % below.max(1)
    }

    /// A text with everything that is longer as JSON than it looks.
    fn text(&mut self) -> String {
        let length = self.number(self.size.text + 1);
        let alphabet = ['a', 'z', ' ', '"', '\\', '\n', '\u{1}', 'ä', '→', '𝄞'];
        let plain = self.number(2) == 0;
        (0..length).map(|_| if plain { 'x' } else { alphabet[self.number(alphabet.len())] }).collect()
    }

    fn list<T>(&mut self, mut entry: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let length = self.number(self.size.items + 1);
        (0..length).map(|_| entry(self)).collect()
    }

    fn some<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.number(8) > 0).then(|| value(self))
    }

    fn time(&mut self) -> Time {
        Time(
            k8s_openapi::jiff::Timestamp::new(i64::try_from(self.number(2_000_000_000)).unwrap(), 0).unwrap(),
        )
    }

    fn condition(&mut self) -> Condition {
        Condition {
            type_: self.text(),
            status: "True".to_owned(),
            reason: self.text(),
            message: self.text(),
            last_transition_time: self.time(),
            observed_generation: Some(i64::MAX),
        }
    }

    fn finding(&mut self) -> FindingStatus {
        FindingStatus {
            check: self.text(),
            severity: "Block".to_owned(),
            evidence: self.text(),
            remedy: self.text(),
            waived: false,
        }
    }

    fn placement(&mut self) -> PlacementStatus {
        PlacementStatus {
            verdict: self.text(),
            summary: self.text(),
            replicas: self.list(|d| ReplicaPlacement {
                pod: d.text(),
                node: d.text(),
                zone: d.text(),
                volume: d.text(),
                // A list within a list: as long as a cloud has zones.
                volume_zones: (0..d.number(40)).map(|_| d.text()).collect(),
                eligible_nodes: i32::MIN,
            }),
            zones: self.list(|d| ZoneLoss { zone: d.text(), survivors: d.text(), quorum: true }),
        }
    }

    fn gate(&mut self) -> GateStatus {
        GateStatus {
            verdict: self.text(),
            reason: self.text(),
            rules: self.list(|d| RuleStatus {
                name: d.text(),
                score: d.text(),
                votes: d.text(),
                blue_millis: d.text(),
                green_millis: d.text(),
                enforced: true,
                passes: false,
            }),
            load_test: self.some(Self::text),
            latencies: self.list(|d| SideLatency {
                side: d.text(),
                p99_micros: i64::MIN,
                ..SideLatency::default()
            }),
            windows_valid: i64::MIN,
            windows_invalid: i64::MIN,
            measured_seconds: i64::MIN,
        }
    }

    fn status(&mut self) -> RabbitMQMigrationStatus {
        RabbitMQMigrationStatus {
            protocol: i32::MIN,
            observed_generation: i64::MIN,
            phase: Some(Phase::VerifyingPlacement),
            phase_since: Some(self.time()),
            serving_side: self.some(Self::text),
            conditions: self.list(Self::condition),
            wait: self.some(|d| WaitStatus { reason: d.text(), detail: d.text(), since: Some(d.time()) }),
            plan: self.some(|d| PlanStatus {
                digest: d.text(),
                approved: Some(d.text()),
                versions: d.text(),
                summary: d.list(Self::text),
            }),
            findings: self.list(Self::finding),
            green: self.some(|d| GreenStatus { name: d.text(), ours: true, served: true }),
            placement: self.some(Self::placement),
            topology: self.some(|d| TopologyStatus {
                imported: d.text(),
                counts: d.text(),
                rewrites: d.list(Self::text),
                differences: d.list(Self::text),
            }),
            gate: self.some(Self::gate),
            switching: self.some(|d| SwitchStatus {
                heading: d.text(),
                stage: d.text(),
                ..SwitchStatus::default()
            }),
            ledger: self.some(|d| LedgerStatus {
                summary: d.text(),
                lost: i64::MIN,
                ..LedgerStatus::default()
            }),
            manual_exit: self.list(Self::text),
            // The brain keeps 128 characters of an order's value.
            handled_commands: self.list(|d| HandledCommand {
                annotation: api::ABORT.to_owned(),
                value: d.text().chars().take(128).collect(),
                at: Some(d.time()),
            }),
            history: self.list(|d| PhaseRecord {
                phase: Phase::VerifyingPlacement,
                since: d.time(),
                millis: Some(i64::MIN),
            }),
            columns: self.some(|d| Columns {
                gate: d.text(),
                blue: d.text(),
                lost: d.text(),
                ..Columns::default()
            }),
        }
    }
}

fn draw(seed: u64, text: usize, items: usize) -> RabbitMQMigrationStatus {
    Draw { state: seed | 1, size: Size { text, items } }.status()
}

fn bytes(status: &RabbitMQMigrationStatus) -> usize {
    serde_json::to_string(status).unwrap().len()
}

fn broken(status: &RabbitMQMigrationStatus) -> Vec<String> {
    let schema = &crate::walk::schema()["properties"]["status"];
    crate::walk::violations(schema, &serde_json::to_value(status).unwrap(), "status")
}

/// Entries that a list stands for: those it shows, and those that its last entry counts.
fn stands_for<T>(list: &[T], key: impl Fn(&T) -> &str) -> usize {
    let told =
        list.last().and_then(|last| key(last).strip_prefix("and ")?.strip_suffix(" more")?.parse().ok());
    told.map_or(list.len(), |told: usize| list.len() - 1 + told)
}

/// Characters that a text stands for.
fn characters(text: &str) -> usize {
    let told = || {
        let (kept, rest) = text.rsplit_once("… (+")?;
        let told: usize = rest.strip_suffix(" characters)")?.parse().ok()?;
        Some(kept.chars().count() + told)
    };
    told().unwrap_or_else(|| text.chars().count())
}

fn check(status: &RabbitMQMigrationStatus) {
    let bounded = status.bounded();
    assert!(bytes(&bounded) <= STATUS_BYTES, "{} bytes", bytes(&bounded));
    assert_eq!(broken(&bounded), Vec::<String>::new());
    assert_eq!(bounded.bounded(), bounded, "bounding twice changes something");
    assert_eq!(stands_for(&bounded.findings, |f| &f.check), status.findings.len());
    assert_eq!(stands_for(&bounded.conditions, |c| &c.message), status.conditions.len());
    assert_eq!(stands_for(&bounded.manual_exit, |c| c), status.manual_exit.len());
    if let (Some(old), Some(new)) = (&status.topology, &bounded.topology) {
        assert_eq!(stands_for(&new.differences, |d| d), old.differences.len());
        assert_eq!(stands_for(&new.rewrites, |d| d), old.rewrites.len());
        assert_eq!(characters(&new.counts), characters(&old.counts));
    }
    if let (Some(old), Some(new)) = (&status.wait, &bounded.wait) {
        assert_eq!(characters(&new.detail), characters(&old.detail));
    }
    for (old, new) in status.findings.iter().zip(&bounded.findings) {
        let counts = new.check.starts_with("and ");
        assert!(counts || characters(&new.evidence) == characters(&old.evidence), "{new:?}");
    }
    for command in &bounded.manual_exit {
        let known = status.manual_exit.contains(command) || command.starts_with("and ");
        assert!(known || command.starts_with("# a command of "), "a command was changed: {command}");
    }
    for order in &bounded.handled_commands {
        assert!(
            status.handled_commands.contains(order),
            "an order was changed: it would be carried out again"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, rng_seed: RngSeed::Fixed(7), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_a_status_says_it_fits(seed in any::<u64>(), text in 0_usize..900, items in 0_usize..60) {
        check(&draw(seed, text, items));
    }

    #[test]
    fn what_fits_is_left_alone(seed in any::<u64>(), text in 0_usize..=10, items in 0_usize..4) {
        let status = draw(seed, text, items);
        let fits = bytes(&status) <= STATUS_BYTES && broken(&status).is_empty();
        // Ten characters are at most sixty bytes as JSON, so that no word is too long.
        prop_assume!(fits);
        prop_assert_eq!(status.bounded(), status);
    }

    /// What is stored is the start of the next pass: fields grow while others were cut before.
    #[test]
    fn counts_survive_a_second_cut(seed in any::<u64>()) {
        let mut status = draw(seed, 300, 40);
        status.topology = None;
        let mut stored = status.bounded();
        stored.topology = draw(seed ^ 0xFFFF, 900, 60).topology;
        stored.placement = draw(seed ^ 0xFF, 900, 60).placement;
        let again = stored.bounded();
        prop_assert!(bytes(&again) <= STATUS_BYTES);
        prop_assert_eq!(stands_for(&again.findings, |f| &f.check), status.findings.len());
        if let (Some(old), Some(new)) = (&status.wait, &again.wait) {
            prop_assert_eq!(characters(&new.detail), characters(&old.detail));
        }
    }
}

#[test]
fn a_status_about_ten_thousand_queues_fits() {
    for seed in 1..4 {
        let status = draw(seed * 0x9E37_79B9, 200, 10_000);
        assert!(bytes(&status) > 100 * STATUS_BYTES, "not large: {}", bytes(&status));
        check(&status);
    }
}

#[test]
fn conditions_survive_whatever_else_is_said() {
    let mut status = draw(0x1234_5678, 900, 300);
    status.conditions = api::conditions::ALL
        .iter()
        .map(|type_| Condition {
            type_: (*type_).to_owned(),
            status: "False".to_owned(),
            reason: "RewriteNeedsConsent".to_owned(),
            message: "x".repeat(5000),
            last_transition_time: Time(k8s_openapi::jiff::Timestamp::UNIX_EPOCH),
            observed_generation: Some(1),
        })
        .collect();
    let bounded = status.bounded();
    let contract = |status: &RabbitMQMigrationStatus| -> Vec<_> {
        status.conditions.iter().map(|c| (c.type_.clone(), c.status.clone(), c.reason.clone())).collect()
    };
    assert_eq!(contract(&bounded), contract(&status));
    assert!(bytes(&bounded) <= STATUS_BYTES);
}

#[test]
fn a_command_that_is_too_long_is_named_and_not_cut() {
    let commands = ["kubectl get pods".to_owned(), "x".repeat(3000)];
    let status =
        RabbitMQMigrationStatus { manual_exit: commands.to_vec(), ..RabbitMQMigrationStatus::default() };
    let bounded = status.bounded();
    assert_eq!(bounded.manual_exit.first(), commands.first());
    let second = bounded.manual_exit.get(1).unwrap();
    assert!(second.starts_with("# a command of 3000 characters"), "{second}");
}
