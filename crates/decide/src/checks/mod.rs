//! Preflight's checks: one file each. All run and all findings are shown; unknown is never a pass.

mod blue_healthy;
mod blue_one_cluster;
mod blue_storage;
mod credentials;
mod entrances_listed;
mod fence_rehearsed;
mod green_names;
mod names_free;
mod permissions;
mod placement_possible;
mod queue_types;
mod services_adoptable;
mod storage_class;
mod users_fenceable;
mod versions;

use crate::plan::Plan;
use crate::world::World;
use api::status::FindingStatus;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The migration would do harm or cannot work.
    Block,
    /// It could not be told; blocks too.
    Unknown,
    /// A person should know.
    Warn,
    /// Said for completeness.
    Info,
}

impl Severity {
    /// The word in status.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Block => "Block",
            Self::Unknown => "Unknown",
            Self::Warn => "Warn",
            Self::Info => "Info",
        }
    }

    /// True where it stops Preflight.
    pub const fn stops(self) -> bool {
        matches!(self, Self::Block | Self::Unknown)
    }
}

/// What one check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// What was seen.
    pub evidence: String,
    /// What a person can do.
    pub remedy: String,
}

impl Finding {
    /// A finding.
    pub fn new(severity: Severity, evidence: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { severity, evidence: evidence.into(), remedy: remedy.into() }
    }

    /// Something could not be read.
    pub fn unknown(evidence: impl Into<String>) -> Self {
        Self::new(Severity::Unknown, evidence, "the operator tries again; see its log if this stays")
    }
}

/// One check.
pub struct Check {
    /// Its id, kebab-case, the good state. Waivers name it.
    pub id: &'static str,
    /// Runs it: no finding means good.
    pub run: fn(&Plan, &World) -> Vec<Finding>,
}

/// All checks, in the order in which they are shown: what a person must fix first comes first, since later
/// checks cannot see anything without it.
pub const ALL: [Check; 15] = [
    permissions::CHECK,
    credentials::CHECK,
    blue_one_cluster::CHECK,
    blue_healthy::CHECK,
    blue_storage::CHECK,
    versions::CHECK,
    queue_types::CHECK,
    entrances_listed::CHECK,
    services_adoptable::CHECK,
    names_free::CHECK,
    green_names::CHECK,
    storage_class::CHECK,
    placement_possible::CHECK,
    users_fenceable::CHECK,
    fence_rehearsed::CHECK,
];

/// Runs all checks. Blocking findings come first, then in the order of [`ALL`].
pub fn run(plan: &Plan, world: &World) -> Vec<(Severity, FindingStatus)> {
    let mut findings: Vec<(Severity, FindingStatus)> = ALL
        .iter()
        .flat_map(|check| (check.run)(plan, world).into_iter().map(|finding| status(plan, check.id, finding)))
        .collect();
    findings.sort_by_key(|(severity, status)| (status.waived, *severity));
    findings
}

fn status(plan: &Plan, check: &str, finding: Finding) -> (Severity, FindingStatus) {
    let status = FindingStatus {
        check: check.to_owned(),
        severity: finding.severity.as_str().to_owned(),
        evidence: finding.evidence,
        remedy: finding.remedy,
        waived: plan.waives(check),
    };
    (finding.severity, status)
}

#[cfg(test)]
mod tests;
