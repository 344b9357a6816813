//! What placement answers, per replica, per zone, and as a whole.

use serde::{Deserialize, Serialize};

/// Whether the replicas survive the loss of any one zone, and can all run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Safety {
    /// Yes.
    Safe,
    /// No, for these reasons.
    Unsafe(Vec<String>),
    /// Cannot be said, for these reasons. Never as good as safe.
    Unknown(Vec<String>),
}

/// One replica: where it is, and where it could be.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReplicaPlacement {
    /// Its ordinal.
    pub ordinal: u32,
    /// The node it runs on.
    pub node: Option<String>,
    /// The zone of that node.
    pub zone: Option<String>,
    /// Zones its volume allows; `no zone` where the value is empty.
    pub allowed_zones: Vec<String>,
    /// Nodes its volume can be used on, whatever else they say.
    pub fitting_nodes: Vec<String>,
    /// Those among them that fit only if the scheduler does not translate the volume's kind to CSI.
    pub uncertain_nodes: Vec<String>,
    /// Nodes that could host it now.
    pub eligible_nodes: Vec<String>,
    /// Its volume, once bound.
    pub volume: Option<String>,
    /// What makes it unsafe.
    pub problems: Vec<String>,
    /// What cannot be said about it.
    pub unknowns: Vec<String>,
    /// What is worth knowing.
    pub notes: Vec<String>,
}

/// What the loss of one zone would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneLoss {
    /// The zone.
    pub zone: String,
    /// Replicas certainly left.
    pub survivors: usize,
    /// Replicas in all.
    pub of: usize,
    /// Whether a majority is left.
    pub quorum: bool,
    /// Ordinals that were in it and could run elsewhere afterwards.
    pub could_move: Vec<u32>,
}

/// The whole answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// Every replica, by ordinal.
    pub replicas: Vec<ReplicaPlacement>,
    /// Every zone, by name.
    pub zone_loss: Vec<ZoneLoss>,
    /// Whether it is safe.
    pub verdict: Safety,
    /// The same in one line.
    pub summary: String,
}

impl Placement {
    /// Joins the parts, deriving the verdict: any problem is unsafe, any unknown is unknown.
    pub(super) fn of(replicas: Vec<ReplicaPlacement>, zone_loss: Vec<ZoneLoss>, found: Findings) -> Self {
        let problems = all(&replicas, |replica| &replica.problems, found.problems);
        let unknowns = all(&replicas, |replica| &replica.unknowns, found.unknowns);
        let verdict = if !problems.is_empty() {
            Safety::Unsafe(problems)
        } else if !unknowns.is_empty() {
            Safety::Unknown(unknowns)
        } else {
            Safety::Safe
        };
        let summary = summary(&verdict, replicas.len(), zone_loss.len());
        Self { replicas, zone_loss, verdict, summary }
    }
}

/// What was found beside the replicas' own findings.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// What makes it unsafe.
    pub problems: Vec<String>,
    /// What cannot be said.
    pub unknowns: Vec<String>,
}

fn all(
    replicas: &[ReplicaPlacement],
    of: fn(&ReplicaPlacement) -> &Vec<String>,
    others: Vec<String>,
) -> Vec<String> {
    let own = replicas
        .iter()
        .flat_map(|replica| of(replica).iter().map(|text| format!("replica {}: {text}", replica.ordinal)));
    others.into_iter().chain(own).collect()
}

fn summary(verdict: &Safety, replicas: usize, zones: usize) -> String {
    let first = |reasons: &[String]| {
        let more = reasons.len().saturating_sub(1);
        let first = reasons.first().map(String::as_str).unwrap_or_default();
        if more == 0 { first.to_owned() } else { format!("{first} (and {more} more)") }
    };
    match verdict {
        Safety::Safe => format!("safe: {replicas} replicas in {zones} zones, any one zone may fail"),
        Safety::Unsafe(reasons) => format!("unsafe: {}", first(reasons)),
        Safety::Unknown(reasons) => format!("unknown: {}", first(reasons)),
    }
}
