//! The status: what the operator remembers and what people read.

use crate::bounds::{
    COMMAND, CONDITIONS, DIFFERENCES, FEW, FINDINGS, HISTORY, LINES, NAME, PHRASE, REPLICAS, SIDES, TEXT,
    WORD,
};
use crate::{Condition, Phase, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The version of what the operator stores here. An operator acts on its own and the previous one.
pub const PROTOCOL: i32 = 1;

/// What the operator remembers and what people read. Written by the operator alone, and never above 32 KiB: what
/// does not fit is counted where it would stand.
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
    #[schemars(length(max = WORD))]
    pub serving_side: Option<String>,
    /// The conditions: the contract for machines.
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
    /// What the migration waits for now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<WaitStatus>,
    /// The plan that an approval names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanStatus>,
    /// What the checks found, blocking ones first.
    #[schemars(length(max = FINDINGS))]
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
    /// The commands by which a person without the operator reaches a stable side. One that is too long to stand
    /// here is a comment that says where it stands.
    #[schemars(length(max = LINES), inner(length(max = COMMAND)))]
    pub manual_exit: Vec<String>,
    /// Commands given by annotation that were carried out.
    #[schemars(length(max = FEW))]
    pub handled_commands: Vec<HandledCommand>,
    /// The phases so far; at most the last 32.
    #[schemars(length(max = HISTORY))]
    pub history: Vec<PhaseRecord>,
    /// Texts for the columns of `kubectl get`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<Columns>,
}

/// The standard conditions with limits: their own type has none.
fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": CONDITIONS,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "description": "One aspect of where the migration stands.",
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {
                    "description": "When the status of this condition changed last.",
                    "type": "string", "format": "date-time"
                },
                "message": {"description": "What was seen, for people.", "type": "string", "maxLength": TEXT},
                "observedGeneration": {
                    "description": "The generation of the spec that this was computed from.",
                    "type": "integer", "format": "int64"
                },
                "reason": {"description": "Why, as a CamelCase word.", "type": "string", "maxLength": WORD},
                "status": {
                    "description": "Whether it holds.",
                    "type": "string", "enum": ["True", "False", "Unknown"]
                },
                "type": {"description": "What is told, as a CamelCase word.", "type": "string", "maxLength": WORD}
            }
        }
    })
}

/// What the migration waits for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WaitStatus {
    /// A CamelCase word.
    #[schemars(length(max = WORD))]
    pub reason: String,
    /// A sentence with numbers, and what a person can do.
    #[schemars(length(max = TEXT))]
    pub detail: String,
    /// Since when.
    pub since: Option<Time>,
}

/// The plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PlanStatus {
    /// Digest of all decisions of the plan; an approval names it.
    #[schemars(length(max = WORD))]
    pub digest: String,
    /// The digest that was approved.
    #[schemars(length(max = PHRASE))]
    pub approved: Option<String>,
    /// Blue's and green's RabbitMQ versions, `3.12.14 -> 4.0.5`.
    #[schemars(length(max = PHRASE))]
    pub versions: String,
    /// The plan in a few lines.
    #[schemars(length(max = LINES), inner(length(max = TEXT)))]
    pub summary: Vec<String>,
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FindingStatus {
    /// The id of the check; a waiver names it.
    #[schemars(length(max = WORD))]
    pub check: String,
    /// `Block`, `Unknown`, `Warn` or `Info`.
    #[schemars(length(max = WORD))]
    pub severity: String,
    /// What was seen.
    #[schemars(length(max = TEXT))]
    pub evidence: String,
    /// What a person can do.
    #[schemars(length(max = TEXT))]
    pub remedy: String,
    /// Whether a waiver names it.
    pub waived: bool,
}

/// Green, where we made it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GreenStatus {
    /// Name of the StatefulSet.
    #[schemars(length(max = NAME))]
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
    #[schemars(length(max = WORD))]
    pub verdict: String,
    /// One line.
    #[schemars(length(max = TEXT))]
    pub summary: String,
    /// One entry per replica.
    #[schemars(length(max = REPLICAS))]
    pub replicas: Vec<ReplicaPlacement>,
    /// What happens when a zone is lost.
    #[schemars(length(max = DIFFERENCES))]
    pub zones: Vec<ZoneLoss>,
}

/// Where one replica can run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaPlacement {
    /// The pod.
    #[schemars(length(max = NAME))]
    pub pod: String,
    /// The node it runs on.
    #[schemars(length(max = NAME))]
    pub node: String,
    /// The zone it runs in.
    #[schemars(length(max = NAME))]
    pub zone: String,
    /// The volume.
    #[schemars(length(max = NAME))]
    pub volume: String,
    /// The zones that the volume allows.
    #[schemars(length(max = FEW), inner(length(max = NAME)))]
    pub volume_zones: Vec<String>,
    /// How many nodes could host it now; -1 in an entry that counts replicas left out.
    pub eligible_nodes: i32,
}

/// What the loss of a zone does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ZoneLoss {
    /// The zone that is lost.
    #[schemars(length(max = NAME))]
    pub zone: String,
    /// How many members survive, `2 of 3`.
    #[schemars(length(max = WORD))]
    pub survivors: String,
    /// Whether they are a majority.
    pub quorum: bool,
}

/// The definitions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TopologyStatus {
    /// Digest of the rewritten definitions that were imported last.
    #[schemars(length(max = WORD))]
    pub imported: String,
    /// Counts, `2 vhosts, 4 queues, ...`.
    #[schemars(length(max = TEXT))]
    pub counts: String,
    /// What was rewritten.
    #[schemars(length(max = LINES), inner(length(max = TEXT)))]
    pub rewrites: Vec<String>,
    /// Differences that are left.
    #[schemars(length(max = DIFFERENCES), inner(length(max = TEXT)))]
    pub differences: Vec<String>,
}

/// The gate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GateStatus {
    /// `Pass`, `Fail` or `NoVerdict`.
    #[schemars(length(max = WORD))]
    pub verdict: String,
    /// One sentence: want, got, what is missing.
    #[schemars(length(max = TEXT))]
    pub reason: String,
    /// Windows that were judged.
    pub windows_valid: i64,
    /// Windows that were not.
    pub windows_invalid: i64,
    /// Seconds measured.
    pub measured_seconds: i64,
    /// One entry per rule.
    #[schemars(length(max = LINES))]
    pub rules: Vec<RuleStatus>,
    /// The load test of green alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TEXT))]
    pub load_test: Option<String>,
    /// Latencies of both sides over all valid windows, in microseconds.
    #[schemars(length(max = SIDES))]
    pub latencies: Vec<SideLatency>,
}

/// Latencies of one side, from the intended send time, in microseconds; -1 where unknown or infinite.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SideLatency {
    /// `Blue` or `Green`.
    #[schemars(length(max = WORD))]
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
    #[schemars(length(max = PHRASE))]
    pub name: String,
    /// `12.4 of 20`.
    #[schemars(length(max = WORD))]
    pub score: String,
    /// `44 good, 3 bad`.
    #[schemars(length(max = WORD))]
    pub votes: String,
    /// Blue's value over all windows, in milliseconds.
    #[schemars(length(max = WORD))]
    pub blue_millis: String,
    /// Green's value over all windows, in milliseconds.
    #[schemars(length(max = WORD))]
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
    #[schemars(length(max = WORD))]
    pub heading: String,
    /// Where it stands.
    #[schemars(length(max = WORD))]
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
    #[schemars(length(max = 8), inner(length(max = NAME)))]
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
    #[schemars(length(max = TEXT))]
    pub summary: String,
}

/// A command that was carried out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HandledCommand {
    /// The annotation.
    #[schemars(length(max = PHRASE))]
    pub annotation: String,
    /// Its value.
    #[schemars(length(max = PHRASE))]
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
    #[schemars(length(max = WORD))]
    pub gate: String,
    /// Blue's version and members.
    #[schemars(length(max = WORD))]
    pub blue: String,
    /// Green's version and members.
    #[schemars(length(max = WORD))]
    pub green: String,
    /// Blue's P99.
    #[schemars(length(max = WORD))]
    pub p99_blue: String,
    /// Green's P99.
    #[schemars(length(max = WORD))]
    pub p99_green: String,
    /// Messages on the side that is left.
    #[schemars(length(max = WORD))]
    pub backlog: String,
    /// Messages lost.
    #[schemars(length(max = WORD))]
    pub lost: String,
}
