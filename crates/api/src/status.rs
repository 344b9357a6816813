//! The status: what the operator remembers and what people read.

use crate::{Condition, Phase, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of what the operator stores here. An operator acts on its own and the previous one.
pub const PROTOCOL: i32 = 1;

/// What the operator remembers and what people read. Written by the operator alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RabbitMQMigrationStatus {
    /// Version of the stored form. An operator that meets a newer one changes nothing.
    pub protocol: i32,
    /// The generation of the spec that the conditions were computed from.
    pub observed_generation: i64,
    /// For people. Machines should read the conditions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// When this phase began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase_since: Option<Time>,
    /// Which side the Services lead to: `Blue`, `Green` or `Unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serving_side: Option<String>,
    /// The conditions: the contract for machines.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// What the migration waits for now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<WaitStatus>,
    /// The plan that an approval names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanStatus>,
    /// What the checks found; at most 48, blocking ones first.
    #[schemars(length(max = 48))]
    pub findings: Vec<FindingStatus>,
    /// Green, where we made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub green: Option<GreenStatus>,
    /// Where green's replicas can run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<PlacementStatus>,
    /// The definitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<TopologyStatus>,
    /// The gate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<GateStatus>,
    /// The switch.
    #[serde(rename = "switch", skip_serializing_if = "Option::is_none")]
    pub switching: Option<SwitchStatus>,
    /// The canary ledger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger: Option<LedgerStatus>,
    /// The commands by which a person without the operator reaches a stable side.
    #[schemars(length(max = 24))]
    pub manual_exit: Vec<String>,
    /// Commands given by annotation that were carried out.
    #[schemars(length(max = 8))]
    pub handled_commands: Vec<HandledCommand>,
    /// The phases so far; at most the last 32.
    #[schemars(length(max = 32))]
    pub history: Vec<PhaseRecord>,
    /// Texts for the columns of `kubectl get`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<Columns>,
}

/// What the migration waits for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WaitStatus {
    /// A CamelCase word.
    pub reason: String,
    /// A sentence with numbers, and what a person can do.
    #[schemars(length(max = 512))]
    pub detail: String,
    /// Since when.
    pub since: Option<Time>,
}

/// The plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PlanStatus {
    /// Digest of all decisions of the plan; an approval names it.
    pub digest: String,
    /// The digest that was approved.
    pub approved: Option<String>,
    /// Blue's and green's RabbitMQ versions, `3.12.14 -> 4.0.5`.
    pub versions: String,
    /// The plan in a few lines.
    #[schemars(length(max = 24))]
    pub summary: Vec<String>,
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FindingStatus {
    /// The id of the check; a waiver names it.
    pub check: String,
    /// `Block`, `Unknown`, `Warn` or `Info`.
    pub severity: String,
    /// What was seen.
    #[schemars(length(max = 512))]
    pub evidence: String,
    /// What a person can do.
    #[schemars(length(max = 512))]
    pub remedy: String,
    /// Whether a waiver names it.
    pub waived: bool,
}

/// Green, where we made it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GreenStatus {
    /// Name of the StatefulSet.
    pub name: String,
    /// Whether we installed it, and so may remove it as long as it never served.
    pub ours: bool,
    /// Whether a Service has ever led to it.
    pub served: bool,
}

/// Where green's replicas can run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PlacementStatus {
    /// `Safe`, `Unsafe` or `Unknown`.
    pub verdict: String,
    /// One line.
    #[schemars(length(max = 512))]
    pub summary: String,
    /// One entry per replica.
    #[schemars(length(max = 9))]
    pub replicas: Vec<ReplicaPlacement>,
    /// What happens when a zone is lost.
    #[schemars(length(max = 16))]
    pub zones: Vec<ZoneLoss>,
}

/// Where one replica can run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaPlacement {
    /// The pod.
    pub pod: String,
    /// The node it runs on.
    pub node: String,
    /// The zone it runs in.
    pub zone: String,
    /// The volume.
    pub volume: String,
    /// The zones that the volume allows.
    #[schemars(length(max = 8))]
    pub volume_zones: Vec<String>,
    /// How many nodes could host it now.
    pub eligible_nodes: i32,
}

/// What the loss of a zone does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ZoneLoss {
    /// The zone that is lost.
    pub zone: String,
    /// How many members survive, `2 of 3`.
    pub survivors: String,
    /// Whether they are a majority.
    pub quorum: bool,
}

/// The definitions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TopologyStatus {
    /// Digest of the rewritten definitions that were imported last.
    pub imported: String,
    /// Counts, `2 vhosts, 4 queues, ...`.
    pub counts: String,
    /// What was rewritten; at most 24 lines.
    #[schemars(length(max = 24))]
    pub rewrites: Vec<String>,
    /// Differences that are left; at most 16.
    #[schemars(length(max = 16))]
    pub differences: Vec<String>,
}

/// The gate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GateStatus {
    /// `Pass`, `Fail` or `NoVerdict`.
    pub verdict: String,
    /// One sentence: want, got, what is missing.
    #[schemars(length(max = 512))]
    pub reason: String,
    /// Windows that were judged.
    pub windows_valid: i64,
    /// Windows that were not.
    pub windows_invalid: i64,
    /// Seconds measured.
    pub measured_seconds: i64,
    /// One entry per rule.
    #[schemars(length(max = 24))]
    pub rules: Vec<RuleStatus>,
    /// The load test of green alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_test: Option<String>,
    /// Latencies of both sides over all valid windows, in microseconds.
    #[schemars(length(max = 2))]
    pub latencies: Vec<SideLatency>,
}

/// Latencies of one side, from the intended send time, in microseconds; -1 where unknown or infinite.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SideLatency {
    /// `Blue` or `Green`.
    pub side: String,
    /// Messages that were planned.
    pub planned: i64,
    /// Messages that were lost.
    pub lost: i64,
    /// The median.
    pub p50_micros: i64,
    /// 95 %.
    pub p95_micros: i64,
    /// 99 %.
    pub p99_micros: i64,
}

/// One rule of the gate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RuleStatus {
    /// Name of the objective, with what is compared.
    pub name: String,
    /// `12.4 of 20`.
    pub score: String,
    /// `44 good, 3 bad`.
    pub votes: String,
    /// Blue's value over all windows, in milliseconds.
    pub blue_millis: String,
    /// Green's value over all windows, in milliseconds.
    pub green_millis: String,
    /// Whether it decides.
    pub enforced: bool,
    /// Whether it passes.
    pub passes: bool,
}

/// The switch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SwitchStatus {
    /// `Forward` or `Back`.
    pub heading: String,
    /// Where it stands.
    pub stage: String,
    /// When the first Service was pointed.
    pub pointed_at: Option<Time>,
    /// When the last connection was closed.
    pub last_close_at: Option<Time>,
    /// Milliseconds from the first write to the last close.
    pub patch_to_last_close_millis: Option<i64>,
    /// Connections closed.
    pub closed: i64,
    /// Messages that the operator carried over.
    pub carried: i64,
    /// The Services that were pointed in this heading.
    #[schemars(length(max = 8))]
    pub pointed: Vec<String>,
    /// When a Service that somebody else had taken was pointed again by force: once per heading.
    pub repaired_at: Option<Time>,
    /// Since when a pointed Service leads elsewhere.
    pub contested_since: Option<Time>,
    /// When the last contest was settled: the time-out counts from then.
    pub settled_at: Option<Time>,
    /// Messages that the new side dropped as unroutable since the record was taken; absent where unknown.
    pub unroutable: Option<i64>,
}

/// The canary ledger.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LedgerStatus {
    /// Messages that the broker confirmed.
    pub confirmed: i64,
    /// Messages delivered for the first time.
    pub delivered: i64,
    /// Confirmed and never delivered.
    pub lost: i64,
    /// Delivered twice, and explained by a close.
    pub duplicated_explained: i64,
    /// Delivered twice without explanation.
    pub duplicated_unexplained: i64,
    /// First arrivals out of order.
    pub reordered: i64,
    /// Confirmed after the last store before a restart, and so not checked.
    pub unaccounted: i64,
    /// Longest time between two confirms, in milliseconds.
    pub publish_gap_millis: i64,
    /// One line.
    pub summary: String,
}

/// A command that was carried out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HandledCommand {
    /// The annotation.
    pub annotation: String,
    /// Its value.
    #[schemars(length(max = 128))]
    pub value: String,
    /// When.
    pub at: Option<Time>,
}

/// A phase that was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PhaseRecord {
    /// Which.
    pub phase: Phase,
    /// When it began.
    pub since: Time,
    /// How long it took, in milliseconds; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub millis: Option<i64>,
}

/// Texts for the columns of `kubectl get`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Columns {
    /// `3/5`: rules that pass.
    pub gate: String,
    /// Blue's version and members.
    pub blue: String,
    /// Green's version and members.
    pub green: String,
    /// Blue's P99.
    pub p99_blue: String,
    /// Green's P99.
    pub p99_green: String,
    /// Messages on the side that is left.
    pub backlog: String,
    /// Messages lost.
    pub lost: String,
}
