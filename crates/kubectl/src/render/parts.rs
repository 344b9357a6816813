//! The parts of the tree, in the order in which a person asks.

use super::span;
use super::tree::{Node, Paint};
use crate::orders::unseen;
use api::conditions::{
    AWAITING_APPROVAL, PAUSED, READY, RECONCILING, REVERSIBLE, ROUTING_CONTESTED, STALLED, TRAFFIC_SHIFTED,
};
use api::status::{FindingStatus, GateStatus, ReplicaPlacement, RuleStatus, SideLatency, ZoneLoss};
use api::{Condition, RabbitMQMigration, RabbitMQMigrationStatus};
use jiff::Timestamp;

type Status = RabbitMQMigrationStatus;

/// What the object itself tells: it is being deleted, or changed and not looked at yet.
pub fn object(migration: &RabbitMQMigration, now: Timestamp) -> Vec<Node> {
    let deleted = migration.metadata.deletion_timestamp.as_ref().map(|at| {
        Node::new("Deleted", format!("asked for at {}; the operator cleans up", span::at(now, at)))
            .painted(Paint::Care)
    });
    let unseen = unseen(migration).map(|generation| {
        let observed = migration.status.as_ref().map_or(0, |status| status.observed_generation);
        let text = format!("generation {generation} is newer than this status, which is of {observed}");
        Node::new("Spec", text).painted(Paint::Care)
    });
    deleted.into_iter().chain(unseen).collect()
}

/// What it waits for, since when, and what can be done.
pub fn wait(migration: &RabbitMQMigration, status: &Status, now: Timestamp) -> Option<Node> {
    let wait = status.wait.as_ref()?;
    let ended = status.phase.is_some_and(api::Phase::is_terminal);
    let (label, paint) = match (is(status, STALLED, "True"), ended) {
        (true, _) => ("Stalled", Paint::Bad),
        (false, true) => ("Ended", Paint::Good),
        (false, false) => ("Waits for", Paint::Plain),
    };
    let since = wait.since.as_ref().map(|since| format!(", since {}", span::at(now, since)));
    let text = format!("{}{}", wait.reason, since.unwrap_or_default());
    let metadata = &migration.metadata;
    let approve = is(status, AWAITING_APPROVAL, "True").then(|| {
        let name = metadata.name.as_deref().unwrap_or_default();
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        Node::new("to do:", format!("kubectl rabbitmq-migration approve {name} -n {namespace}"))
            .painted(Paint::Care)
    });
    Some(Node::new(label, text).painted(paint).with([Node::text(wait.detail.clone())]).with(approve))
}

/// Both brokers, and what is left on the side that is left.
pub fn sides(status: &Status) -> Vec<Node> {
    let Some(columns) = &status.columns else { return Vec::new() };
    let side = |label: &str, version: &str, p99: &str, more: Vec<String>| {
        let mut told = vec![if version.is_empty() { "not seen yet".to_owned() } else { version.to_owned() }];
        if !p99.is_empty() {
            told.push(format!("P99 {p99}"));
        }
        told.extend(more);
        Node::new(label, told.join(", "))
    };
    let green = status.green.as_ref().map(|green| {
        let maker = if green.ours { "installed by the operator" } else { "was there" };
        let served = if green.served { "has served" } else { "never served" };
        format!("StatefulSet {}, {maker}, {served}", green.name)
    });
    let mut parts = vec![
        side("Blue", &columns.blue, &columns.p99_blue, Vec::new()),
        side("Green", &columns.green, &columns.p99_green, green.into_iter().collect()),
    ];
    if !columns.backlog.is_empty() {
        parts.push(Node::new("Backlog", format!("{} messages", columns.backlog)));
    }
    parts
}

/// The switch.
pub fn switching(status: &Status) -> Option<Node> {
    let switching = status.switching.as_ref()?;
    let mut told = vec![format!("{}, {}", switching.heading, switching.stage)];
    told.push(format!("{} connections closed", switching.closed));
    told.push(format!("{} messages carried", switching.carried));
    if let Some(millis) = switching.patch_to_last_close_millis {
        told.push(format!("{millis} ms from the first write to the last close"));
    }
    Some(Node::new("Switch", told.join(", ")))
}

/// The canary.
pub fn ledger(status: &Status) -> Option<Node> {
    let ledger = status.ledger.as_ref()?;
    let bad = ledger.lost > 0 || ledger.duplicated_unexplained > 0;
    let mut text = ledger.summary.strip_prefix("canary: ").unwrap_or(&ledger.summary).to_owned();
    if ledger.publish_gap_millis > 0 {
        text = format!("{text}, longest publish gap {} ms", ledger.publish_gap_millis);
    }
    if ledger.unaccounted > 0 {
        text = format!("{text}, {} unaccounted for", ledger.unaccounted);
    }
    Some(Node::new("Canary", text).painted(if bad { Paint::Bad } else { Paint::Plain }))
}

/// The gate; its rules as long as they decide something.
pub fn gate(status: &Status) -> Option<Node> {
    let gate = status.gate.as_ref()?;
    let paint = match gate.verdict.as_str() {
        "Pass" => Paint::Good,
        "Fail" => Paint::Bad,
        _ => Paint::Plain,
    };
    let text = format!(
        "{}, {} windows judged and {} not, {} measured",
        gate.verdict,
        gate.windows_valid,
        gate.windows_invalid,
        span::span(gate.measured_seconds.saturating_mul(1000))
    );
    let node = Node::new("Gate", text).painted(paint).with(gate.latencies.iter().map(latency));
    if !is_before_switch(status) {
        return Some(node);
    }
    let load_test = gate.load_test.as_ref().map(|line| Node::new("load test:", line.clone()));
    Some(node.with(reason(gate, status)).with(gate.rules.iter().map(rule)).with(load_test))
}

/// The gate's sentence, where it is not what is waited for anyway.
fn reason(gate: &GateStatus, status: &Status) -> Option<Node> {
    let told = status.wait.as_ref().is_some_and(|wait| wait.detail.contains(&gate.reason));
    (!gate.reason.is_empty() && !told).then(|| Node::text(gate.reason.clone()))
}

fn rule(rule: &RuleStatus) -> Node {
    let (word, paint) = match (rule.passes, rule.enforced) {
        (true, _) => ("passes", Paint::Good),
        (false, true) => ("open", Paint::Care),
        (false, false) => ("open, advisory", Paint::Plain),
    };
    let told = [
        (!rule.green_millis.is_empty()).then(|| format!("green {}", rule.green_millis)),
        (!rule.blue_millis.is_empty()).then(|| format!("blue {}", rule.blue_millis)),
        (!rule.votes.is_empty()).then(|| rule.votes.clone()),
        (!rule.score.is_empty()).then(|| format!("score {}", rule.score)),
    ];
    let told: Vec<String> = std::iter::once(rule.name.clone()).chain(told.into_iter().flatten()).collect();
    Node::new(format!("{word}:"), told.join(", ")).painted(paint)
}

fn latency(latency: &SideLatency) -> Node {
    let known = |micros: i64| match micros {
        ..0 => "?".to_owned(),
        0.. => format!("{}.{}ms", micros / 1000, micros % 1000 / 100),
    };
    let counted = |count: i64| if count < 0 { "?".to_owned() } else { count.to_string() };
    let text = format!(
        "p50 {}, p95 {}, p99 {}; {} of {} lost",
        known(latency.p50_micros),
        known(latency.p95_micros),
        known(latency.p99_micros),
        counted(latency.lost),
        counted(latency.planned)
    );
    Node::new(format!("{}:", latency.side.to_lowercase()), text)
}

/// What the checks found, with what can be done; once traffic moves only how many.
pub fn findings(status: &Status) -> Option<Node> {
    let count =
        |severity: &str| status.findings.iter().filter(|f| f.severity == severity && !f.waived).count();
    let (block, unknown) = (count("Block"), count("Unknown"));
    let text = format!("{block} block, {unknown} unknown, {} warn", count("Warn"));
    let paint = if block + unknown > 0 { Paint::Bad } else { Paint::Plain };
    // What is only said for completeness is not what a person looks for.
    let shown = status.findings.iter().filter(|f| is_before_switch(status) && f.severity != "Info");
    (!status.findings.is_empty()).then(|| Node::new("Findings", text).painted(paint).with(shown.map(finding)))
}

fn finding(finding: &FindingStatus) -> Node {
    let paint = match finding.severity.as_str() {
        _ if finding.waived => Paint::Plain,
        "Block" | "Unknown" => Paint::Bad,
        _ => Paint::Care,
    };
    let waived = if finding.waived { " (waived)" } else { "" };
    Node::new(format!("{} {}{waived}:", finding.severity, finding.check), finding.evidence.clone())
        .painted(paint)
        .with((!finding.remedy.is_empty()).then(|| Node::new("to do:", finding.remedy.clone())))
}

/// Where green's replicas can run.
pub fn placement(status: &Status) -> Option<Node> {
    let placement = status.placement.as_ref()?;
    let paint = match placement.verdict.as_str() {
        "Safe" => Paint::Good,
        "Unsafe" => Paint::Bad,
        _ => Paint::Care,
    };
    Some(
        Node::new("Placement", placement.summary.clone())
            .painted(paint)
            .with(placement.replicas.iter().map(replica))
            .with(placement.zones.iter().filter(|zone| !zone.quorum).map(zone_loss)),
    )
}

fn replica(replica: &ReplicaPlacement) -> Node {
    let or = |text: &str, else_: &str| if text.is_empty() { else_.to_owned() } else { text.to_owned() };
    if replica.eligible_nodes < 0 {
        return Node::text(replica.pod.clone());
    }
    let text = format!(
        "on {} in {}, {} allows {}, {} nodes could host it",
        or(&replica.node, "no node"),
        or(&replica.zone, "no zone"),
        or(&replica.volume, "no volume"),
        or(&replica.volume_zones.join(", "), "any zone"),
        replica.eligible_nodes
    );
    Node::new(format!("{}:", replica.pod), text)
}

fn zone_loss(zone: &ZoneLoss) -> Node {
    Node::new(format!("without {}:", zone.zone), format!("{} survive, no majority", zone.survivors))
        .painted(Paint::Bad)
}

/// The definitions: what is rewritten is what an approval consents to.
pub fn topology(status: &Status) -> Option<Node> {
    let topology = status.topology.as_ref()?;
    let differences =
        topology.differences.iter().map(|line| Node::new("differs:", line.clone()).painted(Paint::Care));
    let rewrites = topology.rewrites.iter().map(|line| Node::new("rewritten:", line.clone()));
    Some(Node::new("Definitions", topology.counts.clone()).with(differences).with(rewrites))
}

/// The plan that an approval names.
pub fn plan(status: &Status) -> Option<Node> {
    let plan = status.plan.as_ref().filter(|plan| !plan.digest.is_empty())?;
    let approved = match &plan.approved {
        Some(approved) if *approved == plan.digest => "approved".to_owned(),
        Some(approved) => format!("not approved: {approved} was"),
        None => "not approved".to_owned(),
    };
    let text = format!("{}, {}, {approved}", plan.digest, plan.versions);
    Some(Node::new("Plan", text).with(plan.summary.iter().map(Node::text)))
}

/// The conditions that tell more than what stands above: what is not as it should be, and the way back.
pub fn conditions(status: &Status) -> Vec<Node> {
    let told =
        |condition: &Condition| status.wait.as_ref().is_some_and(|wait| wait.detail == condition.message);
    let troubled = status.conditions.iter().filter(|c| !told(c) && is_trouble(c)).map(|condition| {
        let text = format!("{} {}: {}", condition.status, condition.reason, condition.message);
        let paint = if condition.status == "Unknown" { Paint::Care } else { Paint::Bad };
        Node::new(format!("{}:", condition.type_), text).painted(paint)
    });
    let troubled: Vec<Node> = troubled.collect();
    let back = status.conditions.iter().find(|c| c.type_ == REVERSIBLE && c.reason != "NotYetKnown");
    let back = back.map(|c| Node::new("Reversible", format!("{}: {}", c.status, c.message)));
    let trouble = (!troubled.is_empty()).then(|| Node::new("Conditions", String::new()).with(troubled));
    back.into_iter().chain(trouble).collect()
}

/// Whether a condition is not as it should be. What follows from phase and wait is told there.
fn is_trouble(condition: &Condition) -> bool {
    match condition.type_.as_str() {
        // That traffic is on blue before the switch is no trouble, and who serves stands in the title.
        READY | RECONCILING | STALLED | PAUSED | AWAITING_APPROVAL | REVERSIBLE | TRAFFIC_SHIFTED => false,
        ROUTING_CONTESTED => condition.status == "True",
        _ => {
            condition.status == "False"
                || (condition.status == "Unknown" && condition.reason != "NotYetKnown")
        }
    }
}

/// Where the commands are by which a person reaches a stable side without the operator.
pub fn way_out(status: &Status) -> Option<Node> {
    let count = status.manual_exit.len();
    let text = format!("{count} commands reach a stable side without the operator: -o yaml, manualExit");
    (count > 0).then(|| Node::new("Way out", text))
}

/// The phases so far with their durations.
pub fn history(status: &Status, now: Timestamp) -> Option<Node> {
    let told: Vec<String> = status
        .history
        .iter()
        .map(|record| match record.millis {
            Some(millis) => format!("{} {}", record.phase, span::span(millis)),
            None => format!("{} {} so far", record.phase, span::since(now, &record.since)),
        })
        .collect();
    (!told.is_empty()).then(|| Node::new("Phases", told.join(" > ")))
}

fn is_before_switch(status: &Status) -> bool {
    status.phase.unwrap_or_default().is_before_switch()
}

fn is(status: &Status, type_: &str, value: &str) -> bool {
    status.conditions.iter().any(|c| c.type_ == type_ && c.status == value)
}
