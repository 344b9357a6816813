//! The spec: what a person asks for.

#![expect(clippy::duplicated_attributes, reason = "several columns have the same type and priority")]

use crate::status::RabbitMQMigrationStatus;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Moves one RabbitMQ cluster (blue) to another (green) without losing, duplicating or reordering messages.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "rabbitmq-migration.io",
    version = "v1alpha1",
    kind = "RabbitMQMigration",
    plural = "rabbitmqmigrations",
    singular = "rabbitmqmigration",
    shortname = "rmqm",
    category = "rabbitmq",
    namespaced,
    status = "RabbitMQMigrationStatus",
    derive = "PartialEq",
    doc = "Moves one RabbitMQ cluster (blue) to another (green) and proves that no message was lost.",
    selectable = ".status.phase",
    selectable = ".spec.blue.serviceName",
    selectable = ".status.servingSide",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Serving", type_ = "string", json_path = ".status.servingSide"),
    printcolumn(name = "Gate", type_ = "string", json_path = ".status.columns.gate"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Blue", type_ = "string", json_path = ".status.columns.blue", priority = 1),
    printcolumn(name = "Green", type_ = "string", json_path = ".status.columns.green", priority = 1),
    printcolumn(name = "P99-Blue", type_ = "string", json_path = ".status.columns.p99Blue", priority = 1),
    printcolumn(name = "P99-Green", type_ = "string", json_path = ".status.columns.p99Green", priority = 1),
    printcolumn(name = "Backlog", type_ = "string", json_path = ".status.columns.backlog", priority = 1),
    printcolumn(name = "Lost", type_ = "string", json_path = ".status.columns.lost", priority = 1),
    printcolumn(name = "Waits for", type_ = "string", json_path = ".status.wait.detail", priority = 1)
)]
#[kube(
    validation = Rule::new("!has(self.status) || !has(self.status.phase) || self.status.phase in ['Preflight', 'RolledBack', 'Failed'] || self.spec.blue == oldSelf.spec.blue").message("spec.blue can no longer be changed: abort the migration (annotation rabbitmq-migration.io/abort), correct it, then retry").field_path(".spec.blue"),
    validation = Rule::new("!has(self.status) || !has(self.status.phase) || self.status.phase in ['Preflight', 'RolledBack', 'Failed'] || self.spec.services == oldSelf.spec.services").message("spec.services can no longer be changed: abort the migration (annotation rabbitmq-migration.io/abort), correct it, then retry").field_path(".spec.services")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.services.all(s, !(s.name in self.leaveServices))").message("a Service may stand in services or in leaveServices, not in both").field_path(".leaveServices"),
    validation = Rule::new("!has(self.green.existing) || self.green.existing.statefulSetName != self.blue.statefulSetName").message("green must be another StatefulSet than blue").field_path(".green"),
    validation = Rule::new("!has(self.gate) || self.gate.deadlineSeconds >= self.gate.minimumDurationSeconds").message("deadlineSeconds must be at least minimumDurationSeconds").field_path(".gate.deadlineSeconds")
)]
pub struct RabbitMQMigrationSpec {
    /// `Migrate` (default) does the whole migration. `Check` runs the checks, prints the plan and changes nothing.
    #[serde(default)]
    pub mode: Mode,
    /// `Migrated` (default) or `RolledBack`: the end that is wanted. Setting `RolledBack` takes traffic back to
    /// blue for as long as going back is possible (condition `Reversible`).
    #[serde(default)]
    pub desired_outcome: Outcome,
    /// `true`: go on measuring and reporting, change nothing. Inside a switch it takes effect at the next point
    /// where no client is refused. Default `false`.
    #[serde(default)]
    pub paused: bool,
    /// The digest of the plan that is approved (`status.plan.digest`); needed with `cutover.approval: Manual`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 80))]
    pub approved_plan: Option<String>,
    /// The cluster that serves now.
    pub blue: Broker,
    /// The cluster to move to: made from `template`, or `existing`.
    pub green: Green,
    /// The Services that move: every Service that leads to blue stands here or in `leaveServices`.
    #[schemars(length(min = 1, max = 8))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".to_string()]))]
    pub services: Vec<MovedService>,
    /// Names of the Services that lead to blue and stay there, for example one for metrics. Default none.
    #[serde(default)]
    #[schemars(length(max = 32), inner(length(min = 1, max = 253)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub leave_services: Vec<String>,
    /// How good green must be before traffic moves.
    #[serde(default)]
    pub gate: Gate,
    /// How changes of blue's definitions are followed until the switch.
    #[serde(default)]
    pub topology: Topology,
    /// How traffic moves.
    #[serde(default)]
    pub cutover: Cutover,
    /// The watch after the switch.
    #[serde(default)]
    pub soak: Soak,
    /// What happens to blue in the end.
    #[serde(default)]
    pub retirement: Retirement,
    /// Checks that may block no longer, each by name and with a reason. Default none.
    #[serde(default)]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["check".to_string()]))]
    pub waivers: Vec<Waiver>,
}

/// Whether to migrate or only to check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Mode {
    /// Do the migration.
    #[default]
    Migrate,
    /// Check and plan, then stop; nothing is changed.
    Check,
}

/// The end that is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Outcome {
    /// Green serves.
    #[default]
    Migrated,
    /// Blue serves.
    RolledBack,
}

/// A broker that runs as a StatefulSet in the migration's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Broker {
    /// Name of the StatefulSet whose pods are the rabbit nodes.
    #[schemars(length(min = 1, max = 253))]
    pub stateful_set_name: String,
    /// Name of the headless Service that reaches this broker's pods only.
    #[schemars(length(min = 1, max = 253))]
    pub service_name: String,
    /// The Secret with an administrator's credentials.
    pub credentials_secret: CredentialsSecret,
}

/// Where an administrator's user name and password are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.username) != has(self.usernameKey)").message("set exactly one of username, usernameKey"))]
pub struct CredentialsSecret {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Key of the password. Default `password`.
    #[serde(default = "default_password_key")]
    #[schemars(length(min = 1, max = 253))]
    pub password_key: String,
    /// The user name itself, where the Secret does not hold it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub username: Option<String>,
    /// Key of the user name in the Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub username_key: Option<String>,
}

fn default_password_key() -> String {
    "password".to_owned()
}

/// The cluster to move to: exactly one of `template`, `existing`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.template) != has(self.existing)").message("set exactly one of template, existing"))]
pub struct Green {
    /// The operator installs green from this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<GreenTemplate>,
    /// Green runs already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub existing: Option<Broker>,
}

/// What green is made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct GreenTemplate {
    /// Number of rabbit nodes; odd, so that a majority exists. Default 3.
    #[serde(default = "three")]
    #[schemars(range(min = 1, max = 9))]
    #[x_kube(validation = Rule::new("self % 2 == 1").message("replicas must be odd: 1, 3, 5, 7 or 9"))]
    pub replicas: i32,
    /// The image, with the official image's layout (user 999, home /var/lib/rabbitmq).
    #[schemars(length(min = 1, max = 512))]
    pub image: String,
    /// `IfNotPresent` (default), `Always` or `Never`.
    #[serde(default)]
    pub image_pull_policy: PullPolicy,
    /// Names of Secrets with which the image is pulled. Default none.
    #[serde(default)]
    #[schemars(length(max = 8), inner(length(min = 1, max = 253)))]
    pub image_pull_secrets: Vec<String>,
    /// The volume of each replica.
    pub storage: Storage,
    /// CPU and memory of each replica. Without a memory limit the broker's watermark is set for 1 GiB.
    #[serde(default)]
    pub resources: Resources,
    /// Labels that a node must have. Default none.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 16, "additionalProperties" = {"type": "string", "maxLength": 63}))]
    pub node_selector: BTreeMap<String, String>,
    /// Lines added to rabbitmq.conf. They win over ours. Default none.
    #[serde(default)]
    #[schemars(length(max = 16384))]
    pub config: String,
    /// Plugins besides management, prometheus, peer discovery, shovel and federation. Default none.
    #[serde(default)]
    #[schemars(length(max = 32), inner(length(min = 1, max = 64)))]
    pub plugins: Vec<String>,
    /// Extra environment variables of the broker. Default none.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 32, "additionalProperties" = {"type": "string", "maxLength": 4096}))]
    pub env: BTreeMap<String, String>,
}

fn three() -> i32 {
    3
}

/// When the image is pulled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PullPolicy {
    /// Only where the node lacks it.
    #[default]
    IfNotPresent,
    /// At each start.
    Always,
    /// Never: the node has it.
    Never,
}

/// The volume of each replica of green.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// Name of the StorageClass. It must exist; there is no default, so that nobody gets a surprise.
    #[schemars(length(min = 1, max = 253))]
    pub class_name: String,
    /// Size, as a Kubernetes quantity, for example `64Gi`.
    #[schemars(length(min = 1, max = 32))]
    #[x_kube(validation = Rule::new("isQuantity(self)").message("size must be a quantity such as 64Gi"))]
    pub size: String,
}

/// CPU and memory of one rabbit node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resources {
    /// Requested amounts, for example `{cpu: 500m, memory: 2Gi}`. Default none.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 8, "additionalProperties" = {"type": "string", "maxLength": 32}))]
    pub requests: BTreeMap<String, String>,
    /// Limits, for example `{memory: 2Gi}`. Default none.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 8, "additionalProperties" = {"type": "string", "maxLength": 32}))]
    pub limits: BTreeMap<String, String>,
}

/// A Service that moves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MovedService {
    /// Name of the Service.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// `Adopt` (default): the Service exists and only its selector is changed.
    #[serde(default)]
    pub mode: ServiceMode,
    /// `All` (default): publishers and consumers use it.
    #[serde(default)]
    pub role: ServiceRole,
}

/// How a Service is moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ServiceMode {
    /// Its selector is applied by us.
    #[default]
    Adopt,
}

/// Who uses a Service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ServiceRole {
    /// Publishers and consumers.
    #[default]
    All,
}

/// How good green must be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Gate {
    /// The load of the A/B probe, the same on both sides.
    pub load: ProbeLoad,
    /// A load test of green alone before the A/B probe. Default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_test: Option<LoadTest>,
    /// What green must keep. Default: P99 at most 100 ms and at most 150 % of blue's.
    #[schemars(length(min = 1, max = 12))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub objectives: Vec<Objective>,
    /// Seconds that the probe must have measured before traffic moves. Default 600.
    #[schemars(range(min = 0, max = 2_592_000))]
    pub minimum_duration_seconds: i32,
    /// Seconds of probing that are not judged. Default 30.
    #[schemars(range(min = 0, max = 3600))]
    pub warm_up_seconds: i32,
    /// Seconds of one window; each valid window casts one vote per rule. Default 5; less is for tests.
    #[schemars(range(min = 1, max = 60))]
    pub window_seconds: i32,
    /// Windows that must be valid before the gate may pass. Default 24; less is for tests.
    #[schemars(range(min = 1, max = 10_000))]
    pub minimum_windows: i32,
    /// The probe's own lateness (P99, in milliseconds) above which a window is not judged. Default 10.
    #[schemars(range(min = 1, max = 1000))]
    pub max_send_lag_millis: i32,
    /// Seconds after which a gate without verdict ends in `Stalled`. Default 604800 (7 days).
    #[schemars(range(min = 1, max = 2_592_000))]
    pub deadline_seconds: i32,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            load: ProbeLoad::default(),
            load_test: None,
            objectives: vec![Objective {
                name: "p99".to_owned(),
                percentile: Percentile::P99,
                metric: Metric::EndToEnd,
                max_millis: Some(100),
                max_percent_of_blue: Some(150),
                enforcement: Enforcement::Enforced,
            }],
            minimum_duration_seconds: 600,
            warm_up_seconds: 30,
            window_seconds: 5,
            minimum_windows: 24,
            max_send_lag_millis: 10,
            deadline_seconds: 604_800,
        }
    }
}

/// The load of the A/B probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ProbeLoad {
    /// Messages per second on each side. Default 50.
    #[schemars(range(min = 1, max = 5000))]
    pub rate_per_second: i32,
    /// Bytes of each message. Default 3000.
    #[schemars(range(min = 64, max = 1_048_576))]
    pub size_bytes: i32,
    /// `Quorum` (default) or `Classic`.
    pub queue_type: ProbeQueueType,
}

impl Default for ProbeLoad {
    fn default() -> Self {
        Self { rate_per_second: 50, size_bytes: 3000, queue_type: ProbeQueueType::Quorum }
    }
}

/// The type of the probe's queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ProbeQueueType {
    /// Replicated by Raft.
    #[default]
    Quorum,
    /// On one rabbit node.
    Classic,
}

/// A load test of green alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadTest {
    /// Messages per second.
    #[schemars(range(min = 1, max = 50_000))]
    pub rate_per_second: i32,
    /// How long, in seconds.
    #[schemars(range(min = 1, max = 3600))]
    pub duration_seconds: i32,
}

/// One promise that green must keep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.maxMillis) || has(self.maxPercentOfBlue)").message("set maxMillis, maxPercentOfBlue or both"))]
pub struct Objective {
    /// Name, shown in status.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// `P50`, `P95`, `P99` or `P999`.
    pub percentile: Percentile,
    /// `EndToEnd` (default: intended send time to delivery) or `Confirm` (to the publisher confirm).
    #[serde(default)]
    pub metric: Metric,
    /// Green's percentile may be at most this many milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 60_000))]
    pub max_millis: Option<i32>,
    /// Green's percentile may be at most this many percent of blue's, measured at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub max_percent_of_blue: Option<i32>,
    /// `Enforced` (default) decides; `Advisory` is only shown.
    #[serde(default)]
    pub enforcement: Enforcement,
}

/// Which quantile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Percentile {
    /// The median.
    P50,
    /// 95 %.
    P95,
    /// 99 %.
    P99,
    /// 99.9 %.
    P999,
}

/// Which latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Metric {
    /// From the intended send time to delivery.
    #[default]
    EndToEnd,
    /// From the intended send time to the publisher confirm.
    Confirm,
}

/// Whether an objective decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Enforcement {
    /// It decides.
    #[default]
    Enforced,
    /// It is only shown.
    Advisory,
}

/// How blue's definitions are followed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Topology {
    /// `Resync` (default): a change that needs no decision is applied and keeps the approval. `Block`: any
    /// change stops the migration.
    pub on_change: OnChange,
    /// Objects that come and go by themselves: followed and counted, not compared. Default none.
    #[schemars(length(max = 16))]
    pub dynamic: Vec<DynamicObjects>,
}

/// What a change of blue's definitions does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnChange {
    /// Follow it.
    #[default]
    Resync,
    /// Stop.
    Block,
}

/// A class of objects that come and go by themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DynamicObjects {
    /// What kind of object.
    pub kind: DynamicKind,
    /// A regular expression (PCRE, unanchored) on the name, for example `^v-`.
    #[schemars(length(min = 1, max = 256))]
    pub pattern: String,
}

/// Kinds that may be dynamic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DynamicKind {
    /// Users, as Vault makes them.
    User,
    /// Queues.
    Queue,
}

/// How traffic moves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Cutover {
    /// `Manual` (default): a person approves the plan by its digest. `Automatic`: the gate alone decides.
    pub approval: Approval,
    /// `Auto` (default) or `Handover`.
    pub strategy: Strategy,
    /// `Strict` (default): consumers move when blue is empty. `Relaxed`: some may move early.
    pub ordering: Ordering,
    /// Seconds within which traffic must have moved. Default 300.
    #[schemars(range(min = 10, max = 3600))]
    pub timeout_seconds: i32,
    /// After the time-out and after the Services were pointed: `Continue` (default, carry the rest) or `Back`.
    pub on_timeout: OnTimeout,
    /// When somebody else takes a Service back again after one repair: `Follow` (default, the side that it leads
    /// to is opened) or `Hold` (the fence stays until a person acts).
    pub on_contest: OnContest,
    /// Seconds within which a closed client should be seen again. Default 60.
    #[schemars(range(min = 1, max = 3600))]
    pub client_grace_seconds: i32,
}

impl Default for Cutover {
    fn default() -> Self {
        Self {
            approval: Approval::Manual,
            strategy: Strategy::Auto,
            ordering: Ordering::Strict,
            timeout_seconds: 300,
            on_timeout: OnTimeout::Continue,
            on_contest: OnContest::Follow,
            client_grace_seconds: 60,
        }
    }
}

/// Who approves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Approval {
    /// A person.
    #[default]
    Manual,
    /// The gate alone.
    Automatic,
}

/// How a unit moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Strategy {
    /// Chosen per unit.
    #[default]
    Auto,
    /// Publishers first; blue's own consumers finish blue; then consumers.
    Handover,
}

/// Whether consumers wait for blue to be empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Ordering {
    /// They wait.
    #[default]
    Strict,
    /// Some may move early.
    Relaxed,
}

/// What a time-out does once the Services were pointed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnTimeout {
    /// Carry blue's rest forward.
    #[default]
    Continue,
    /// Go back.
    Back,
}

/// What happens to the fence when somebody else takes a Service back and again after one repair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnContest {
    /// The side that the Service leads to is opened: nobody is refused where his route leads.
    #[default]
    Follow,
    /// The fence stays until a person acts: clients of that Service are refused meanwhile.
    Hold,
}

/// The watch after the switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Soak {
    /// Seconds. Default 3600.
    #[schemars(range(min = 0, max = 2_592_000))]
    pub duration_seconds: i32,
    /// When green fails while soaking: `Pause` (default) or `Rollback`.
    pub on_failure: SoakFailure,
}

impl Default for Soak {
    fn default() -> Self {
        Self { duration_seconds: 3600, on_failure: SoakFailure::Pause }
    }
}

/// What a failing soak does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SoakFailure {
    /// Stop and say so.
    #[default]
    Pause,
    /// Take traffic back to blue.
    Rollback,
}

/// What happens to blue in the end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Retirement {
    /// `Retain` (default): blue stays as it is. `ScaleToZero`: its StatefulSet is scaled to zero once blue is
    /// proven empty.
    pub policy: RetirementPolicy,
    /// Seconds to wait first. Default 0.
    #[schemars(range(min = 0, max = 2_592_000))]
    pub delay_seconds: i32,
}

/// What happens to blue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RetirementPolicy {
    /// It stays.
    #[default]
    Retain,
    /// It is scaled to zero.
    ScaleToZero,
}

/// A check that may block no longer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Waiver {
    /// The id of the check, as `status.findings` shows it.
    #[schemars(length(min = 1, max = 63))]
    pub check: String,
    /// Why; kept in the plan.
    #[schemars(length(min = 1, max = 512))]
    pub reason: String,
}
