//! What placement reads: nodes, volumes, replicas and classes, trimmed to what the scheduler looks at.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a requirement does with its values. Unheard-of words make the term malformed, never a match.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operator {
    /// The label exists and its value is listed.
    In,
    /// The label is missing or its value is not listed.
    NotIn,
    /// The label exists.
    Exists,
    /// The label is missing.
    DoesNotExist,
    /// The label is a larger whole number.
    Gt,
    /// The label is a smaller whole number.
    Lt,
    /// A word we do not know.
    #[serde(untagged)]
    Other(String),
}

/// One requirement of a node selector term.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requirement {
    /// The label's key, or `metadata.name` among fields.
    pub key: String,
    /// What to do with the values.
    pub operator: Operator,
    /// The values.
    #[serde(default)]
    pub values: Vec<String>,
}

/// A node selector term: all requirements must hold; one without any matches nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Term {
    /// Requirements on labels.
    #[serde(rename = "matchExpressions")]
    pub expressions: Vec<Requirement>,
    /// Requirements on fields.
    #[serde(rename = "matchFields")]
    pub fields: Vec<Requirement>,
}

/// A node's taint.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Taint {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: String,
    /// `NoSchedule`, `NoExecute` or `PreferNoSchedule`.
    pub effect: String,
}

/// A pod's toleration.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Toleration {
    /// The taint's key; empty with `Exists` tolerates every key.
    pub key: String,
    /// `Exists` or `Equal`; empty means `Equal`.
    pub operator: String,
    /// The taint's value, for `Equal`.
    pub value: String,
    /// The taint's effect; empty means every effect.
    pub effect: String,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeView {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// Whether it is cordoned.
    pub unschedulable: bool,
    /// Whether its condition `Ready` is true.
    pub ready: bool,
    /// Per CSI driver, how many more volumes it can attach; no entry means no limit is known.
    pub free_attachments: BTreeMap<String, u32>,
}

/// What provides a volume. The in-tree kinds are translated to CSI by the scheduler before it compares.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Source {
    /// A CSI driver, by name.
    Csi(String),
    /// `awsElasticBlockStore`.
    AwsElasticBlockStore,
    /// `azureDisk`.
    AzureDisk,
    /// `gcePersistentDisk`.
    GcePersistentDisk,
    /// `cinder`.
    Cinder,
    /// `local` or `hostPath`: one machine's disk.
    Local,
    /// Anything else, or not known.
    #[default]
    Other,
}

/// Where a claim and its volume stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Phase {
    /// The claim waits for a volume.
    Pending,
    /// Claim and volume belong together.
    Bound,
    /// The claim's volume is gone.
    Lost,
    /// The volume's claim was deleted.
    Released,
    /// Reclaiming the volume failed.
    Failed,
    /// Not read.
    #[default]
    Unknown,
}

/// A claim with the volume it is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumeView {
    /// The claim's name.
    pub claim: String,
    /// The volume's name, once bound.
    pub volume: Option<String>,
    /// Where both stand.
    pub phase: Phase,
    /// `nodeAffinity.required.nodeSelectorTerms`; none means every node.
    pub node_affinity: Option<Vec<Term>>,
    /// The volume's labels.
    pub labels: BTreeMap<String, String>,
    /// The class's name.
    pub storage_class: Option<String>,
    /// What provides it.
    pub source: Source,
}

/// A replica of the StatefulSet, as it runs or as it will.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplicaView {
    /// Its ordinal.
    pub ordinal: u32,
    /// The pod's name.
    pub pod: String,
    /// The node it runs on.
    pub node: Option<String>,
    /// The pod's `nodeSelector`.
    pub node_selector: BTreeMap<String, String>,
    /// The pod's required node affinity; none means every node.
    pub affinity: Option<Vec<Term>>,
    /// The pod's tolerations.
    pub tolerations: Vec<Toleration>,
    /// Topology keys of required anti-affinity among the replicas.
    pub apart_by: Vec<String>,
    /// The claim that holds its data.
    pub claim: Option<String>,
}

/// When a class binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum BindingMode {
    /// At once, before anybody knows where the pod goes. Kubernetes' default.
    #[default]
    Immediate,
    /// Once the pod is placed.
    WaitForFirstConsumer,
}

/// A storage class.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StorageClassView {
    /// Its name.
    pub name: String,
    /// When it binds.
    pub binding_mode: BindingMode,
    /// `allowedTopologies`: OR-ed terms of AND-ed key and values; empty means anywhere.
    pub allowed_topologies: Vec<Vec<Topology>>,
    /// The provisioner.
    pub provisioner: String,
    /// Whether its volumes can grow.
    pub allow_expansion: bool,
    /// `Delete` or `Retain`.
    pub reclaim_policy: String,
}

/// A key and the values a class allows for it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Topology {
    /// The label's key.
    pub key: String,
    /// The allowed values.
    pub values: Vec<String>,
}
