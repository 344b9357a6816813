//! The limits of what stands in status, and the cut that keeps them. Nothing is left out silently.
//!
//! Lists of queues, users and differences grow with the broker; an object that outgrows the API server can no
//! longer be written at all. Whoever decides may therefore say all he knows: what does not fit is counted here.

use crate::status::{
    Columns, FindingStatus, GateStatus, PlacementStatus, PlanStatus, ReplicaPlacement, RuleStatus,
    SideLatency, TopologyStatus, ZoneLoss,
};
use crate::{Condition, RabbitMQMigrationStatus, Time};

/// Bytes of a whole status as JSON. A tenth would be enough for most; `kubectl describe` stays readable.
pub const STATUS_BYTES: usize = 32 * 1024;
/// A word of a closed list, a number as text, a digest.
pub const WORD: usize = 64;
/// A few words: versions, what a rule compares, an order's value.
pub const PHRASE: usize = 128;
/// The longest name in Kubernetes.
pub const NAME: usize = 253;
/// A sentence or two for people.
pub const TEXT: usize = 512;
/// A command that is to be copied: cut it would be another one, so that it stands whole or not at all.
pub const COMMAND: usize = 2048;
/// Conditions: sixteen types, and some of an older or newer operator.
pub const CONDITIONS: usize = 24;
/// Findings.
pub const FINDINGS: usize = 48;
/// Lines: of the plan, of rewrites, of commands; rules of the gate.
pub const LINES: usize = 24;
/// Differences, and zones that may be lost.
pub const DIFFERENCES: usize = 16;
/// Replicas of a broker.
pub const REPLICAS: usize = 9;
/// Zones of a volume, and kinds of orders.
pub const FEW: usize = 8;
/// Phases so far.
pub const HISTORY: usize = 32;
/// Blue and green.
pub const SIDES: usize = 2;

/// How much may stand where. What is cut first is what a person can read elsewhere.
#[derive(Clone, Copy)]
struct Level {
    text: usize,
    name: usize,
    command: usize,
    items: usize,
}

/// From all that the schema takes down to what fits whatever it says. Each about halves the one before.
const LEVELS: [Level; 5] = [
    Level { text: TEXT, name: NAME, command: COMMAND, items: usize::MAX },
    Level { text: 256, name: NAME, command: COMMAND, items: 24 },
    Level { text: 128, name: 128, command: 1024, items: 16 },
    Level { text: 64, name: 64, command: 512, items: 8 },
    Level { text: 48, name: 48, command: 128, items: 4 },
];

impl RabbitMQMigrationStatus {
    /// The status within the limits of the schema and of [`STATUS_BYTES`]. What is left out is counted: texts
    /// end with `(+12 characters)`, lists with `and 12 more`. Bounding twice changes nothing.
    #[must_use]
    pub fn bounded(&self) -> Self {
        let mut cut = self.clone();
        for level in LEVELS {
            cut = self.cut_to(level);
            if cut.bytes() <= STATUS_BYTES {
                break;
            }
        }
        cut
    }

    /// Bytes as JSON.
    fn bytes(&self) -> usize {
        serde_json::to_string(self).map_or(usize::MAX, |json| json.len())
    }

    fn cut_to(&self, level: Level) -> Self {
        let mut status = self.clone();
        // Named one by one: whoever adds a field says here how it is bounded.
        let Self {
            protocol: _,
            observed_generation: _,
            phase: _,
            phase_since: _,
            serving_side,
            conditions,
            wait,
            plan,
            findings,
            green,
            placement,
            topology,
            gate,
            switching,
            ledger,
            manual_exit,
            handled_commands,
            history,
            columns,
        } = &mut status;
        optional(serving_side, WORD);
        // The contract for machines is never shortened, only its messages.
        rows(conditions, CONDITIONS, |c| {
            words([&mut c.type_, &mut c.reason, &mut c.status]);
            text(&mut c.message, level.text);
        });
        if let Some(wait) = wait {
            words([&mut wait.reason]);
            // The one sentence that everybody reads keeps its length.
            text(&mut wait.detail, TEXT);
        }
        bound_plan(plan, level);
        rows(findings, FINDINGS.min(level.items), |f| {
            words([&mut f.check, &mut f.severity]);
            text(&mut f.evidence, level.text);
            text(&mut f.remedy, level.text);
        });
        if let Some(green) = green {
            text(&mut green.name, NAME);
        }
        bound_placement(placement, level);
        bound_topology(topology, level);
        bound_gate(gate, level);
        if let Some(switching) = switching {
            words([&mut switching.heading, &mut switching.stage]);
        }
        if let Some(ledger) = ledger {
            text(&mut ledger.summary, level.text);
        }
        rows(manual_exit, LINES, |command| whole(command, level.command));
        // Orders are compared with these: a value that is cut would be a new order in each pass. The newest stay.
        newest(handled_commands, FEW);
        newest(history, HISTORY);
        bound_columns(columns);
        status
    }
}

fn bound_plan(plan: &mut Option<PlanStatus>, level: Level) {
    let Some(PlanStatus { digest, approved, versions, summary }) = plan else { return };
    words([digest]);
    optional(approved, PHRASE);
    text(versions, PHRASE);
    lines(summary, LINES, level);
}

fn bound_columns(columns: &mut Option<Columns>) {
    let Some(Columns { gate, blue, green, p99_blue, p99_green, backlog, lost }) = columns else { return };
    words([gate, blue, green, p99_blue, p99_green, backlog, lost]);
}

fn bound_placement(placement: &mut Option<PlacementStatus>, level: Level) {
    let Some(PlacementStatus { verdict, summary, replicas, zones }) = placement else { return };
    words([verdict]);
    text(summary, level.text);
    rows(replicas, REPLICAS.min(level.items), |replica| {
        let ReplicaPlacement { pod, node, zone, volume, volume_zones, eligible_nodes: _ } = replica;
        for name in [pod, node, zone, volume] {
            text(name, level.name);
        }
        rows(volume_zones, FEW.min(level.items), |zone| text(zone, level.name));
    });
    rows(zones, DIFFERENCES.min(level.items), |zone| {
        text(&mut zone.zone, level.name);
        words([&mut zone.survivors]);
    });
}

fn bound_topology(topology: &mut Option<TopologyStatus>, level: Level) {
    let Some(TopologyStatus { imported, counts, rewrites, differences }) = topology else { return };
    words([imported]);
    text(counts, level.text);
    lines(rewrites, LINES, level);
    lines(differences, DIFFERENCES, level);
}

fn bound_gate(gate: &mut Option<GateStatus>, level: Level) {
    let Some(GateStatus {
        verdict,
        reason,
        windows_valid: _,
        windows_invalid: _,
        measured_seconds: _,
        rules,
        load_test,
        latencies,
    }) = gate
    else {
        return;
    };
    words([verdict]);
    text(reason, level.text);
    rows(rules, LINES.min(level.items), |rule| {
        text(&mut rule.name, PHRASE.min(level.text));
        words([&mut rule.score, &mut rule.votes, &mut rule.blue_millis, &mut rule.green_millis]);
    });
    optional(load_test, level.text);
    rows(latencies, SIDES, |latency| words([&mut latency.side]));
}

/// One entry of a list that can also stand for several that were left out.
trait Row {
    /// What tells entries apart; the entry that counts says [`more`] here.
    fn key(&self) -> &str;
    /// The entry that counts `left`, whose [`Row::key`] is `key`.
    fn counting(key: String, left: &[Self]) -> Self
    where
        Self: Sized;
}

impl Row for String {
    fn key(&self) -> &str {
        self
    }

    fn counting(key: String, _: &[Self]) -> Self {
        key
    }
}

impl Row for Condition {
    fn key(&self) -> &str {
        &self.message
    }

    fn counting(key: String, left: &[Self]) -> Self {
        Self {
            type_: "LeftOut".to_owned(),
            status: "Unknown".to_owned(),
            reason: "LeftOut".to_owned(),
            message: key,
            last_transition_time: left
                .first()
                .map_or(Time(k8s_openapi::jiff::Timestamp::UNIX_EPOCH), |c| c.last_transition_time.clone()),
            observed_generation: None,
        }
    }
}

impl Row for FindingStatus {
    fn key(&self) -> &str {
        &self.check
    }

    /// Findings stand in order of severity, so that the first one left out is the worst of them.
    fn counting(key: String, left: &[Self]) -> Self {
        Self {
            check: key,
            severity: left.first().map(|f| f.severity.clone()).unwrap_or_default(),
            evidence: "findings that do not fit here".to_owned(),
            remedy: "correct those above; these follow".to_owned(),
            waived: left.iter().all(|f| f.waived),
        }
    }
}

impl Row for ReplicaPlacement {
    fn key(&self) -> &str {
        &self.pod
    }

    fn counting(key: String, _: &[Self]) -> Self {
        Self { pod: key, eligible_nodes: -1, ..Self::default() }
    }
}

impl Row for ZoneLoss {
    fn key(&self) -> &str {
        &self.zone
    }

    fn counting(key: String, left: &[Self]) -> Self {
        Self { zone: key, survivors: String::new(), quorum: left.iter().all(|z| z.quorum) }
    }
}

impl Row for RuleStatus {
    fn key(&self) -> &str {
        &self.name
    }

    fn counting(key: String, left: &[Self]) -> Self {
        Self {
            name: key,
            enforced: left.iter().any(|r| r.enforced),
            passes: left.iter().all(|r| r.passes),
            ..Self::default()
        }
    }
}

impl Row for SideLatency {
    fn key(&self) -> &str {
        &self.side
    }

    fn counting(key: String, _: &[Self]) -> Self {
        Self { side: key, planned: -1, lost: -1, p50_micros: -1, p95_micros: -1, p99_micros: -1 }
    }
}

fn rows<T: Row>(list: &mut Vec<T>, most: usize, mut bound: impl FnMut(&mut T)) {
    for entry in list.iter_mut() {
        bound(entry);
    }
    fold(list, most);
}

fn lines(list: &mut Vec<String>, most: usize, level: Level) {
    rows(list, most.min(level.items), |line| text(line, level.text));
}

/// Keeps what fits; the last entry counts the rest, with what an earlier cut counted already.
fn fold<T: Row>(list: &mut Vec<T>, most: usize) {
    if list.len() <= most {
        return;
    }
    let left = list.split_off(most.saturating_sub(1));
    let before = left.last().and_then(|row| counted(row.key()));
    let count = before.map_or(left.len(), |before| left.len() - 1 + before);
    list.push(T::counting(format!("and {count} more"), &left));
}

fn counted(key: &str) -> Option<usize> {
    key.strip_prefix("and ")?.strip_suffix(" more")?.parse().ok()
}

fn newest<T>(list: &mut Vec<T>, most: usize) {
    let superfluous = list.len().saturating_sub(most);
    list.drain(..superfluous);
}

fn words<const N: usize>(words: [&mut String; N]) {
    for word in words {
        text(word, WORD);
    }
}

fn optional(value: &mut Option<String>, most: usize) {
    if let Some(value) = value {
        text(value, most);
    }
}

/// A command stands whole, or a comment says where it does.
fn whole(command: &mut String, most: usize) {
    if encoded(command) > most {
        let count = command.chars().count();
        *command = format!(
            "# a command of {count} characters: see manual-exit.sh in the Secret of the SwitchRecord"
        );
    }
}

/// Cuts `value` to `most` bytes as JSON, and so to as many characters at most; the end counts the rest.
fn text(value: &mut String, most: usize) {
    if encoded(value) <= most {
        return;
    }
    let (body, before) = split(value);
    let all = body.chars().count() + before;
    // The mark is longest where nothing is kept.
    let room = most.saturating_sub(mark(all).len());
    let mut used = 0;
    let kept: String = body
        .chars()
        .take_while(|c| {
            used += encoded_char(*c);
            used <= room
        })
        .collect();
    let count = all - kept.chars().count();
    *value = kept + &mark(count);
}

fn mark(count: usize) -> String {
    format!("… (+{count} characters)")
}

/// A text without the mark of an earlier cut, and what that counted.
fn split(value: &str) -> (&str, usize) {
    let marked = || {
        let (body, rest) = value.rsplit_once("… (+")?;
        Some((body, rest.strip_suffix(" characters)")?.parse().ok()?))
    };
    marked().unwrap_or((value, 0))
}

fn encoded(value: &str) -> usize {
    value.chars().map(encoded_char).sum()
}

/// Bytes of a character within a JSON string.
const fn encoded_char(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => c.len_utf8(),
    }
}
