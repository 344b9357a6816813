//! Everything the brain can ask to be done. Each effect is idempotent and can be cut anywhere.

use crate::record::SwitchRecord;
use crate::side::Side;
use std::collections::BTreeMap;

/// A queue by its full name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct QueueRef {
    /// The vhost.
    pub vhost: String,
    /// The name.
    pub name: String,
}

/// Where one Service shall lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointing {
    /// The Service.
    pub service: String,
    /// Its uid: identity is uid, never name.
    pub uid: String,
    /// The whole selector.
    pub selector: BTreeMap<String, String>,
    /// Whether the field may be taken from another manager: the first write of a heading, and its one repair.
    pub force: bool,
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Makes the user of our epoch on a side and deletes older ones: the receiver then refuses a former leader.
    EnsureEpochUser(Side),
    /// Proves on blue, with a user of our own, that a limit of 0 refuses a login.
    RehearseFence,
    /// Installs green's objects as the template says.
    EnsureGreen,
    /// Removes green, its claims and Secret. Only while no Service has ever led to it.
    RemoveGreen,
    /// Enables all stable feature flags of a side.
    EnableFeatureFlags(Side),
    /// Spreads queue leaders over a side's members.
    RebalanceLeaders(Side),
    /// Brings blue's rewritten definitions to green.
    ImportDefinitions,
    /// Starts the probe on the given sides, with the load test of green first if the plan asks for one.
    StartProbe {
        /// Which sides.
        sides: Vec<Side>,
    },
    /// Stops the probe and removes what it made.
    StopProbe,
    /// Stores the SwitchRecord.
    StoreRecord(Box<SwitchRecord>),
    /// Starts the canary through the moved Services.
    StartCanary,
    /// Stops the canary.
    StopCanary,
    /// Points Services.
    Point(Vec<Pointing>),
    /// Refuses new connections of these users on a side.
    Fence {
        /// Where.
        side: Side,
        /// Whom.
        users: Vec<String>,
    },
    /// Gives these users their original limits back.
    Unfence {
        /// Where.
        side: Side,
        /// Whom, with the limit they had; `None` means no limit.
        users: Vec<(String, Option<i64>)>,
    },
    /// Closes connections by name.
    Close {
        /// Where.
        side: Side,
        /// Which.
        connections: Vec<String>,
    },
    /// Moves what is left in these queues to the other side.
    Carry {
        /// The side that is emptied.
        from: Side,
        /// Which queues.
        queues: Vec<QueueRef>,
    },
    /// Removes what we made on a side: vhosts and users of probe, canary and rehearsal.
    CleanBroker(Side),
    /// Removes the operator's own users from a side; the last thing done there.
    RemoveEpochUsers(Side),
    /// Scales blue to zero.
    ScaleBlueToZero,
    /// Removes the SwitchRecord.
    RemoveRecord,
}

impl Effect {
    /// The name, for logs, metrics and transcripts.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::EnsureEpochUser(_) => "EnsureEpochUser",
            Self::RehearseFence => "RehearseFence",
            Self::EnsureGreen => "EnsureGreen",
            Self::RemoveGreen => "RemoveGreen",
            Self::EnableFeatureFlags(_) => "EnableFeatureFlags",
            Self::RebalanceLeaders(_) => "RebalanceLeaders",
            Self::ImportDefinitions => "ImportDefinitions",
            Self::StartProbe { .. } => "StartProbe",
            Self::StopProbe => "StopProbe",
            Self::StoreRecord(_) => "StoreRecord",
            Self::StartCanary => "StartCanary",
            Self::StopCanary => "StopCanary",
            Self::Point(_) => "Point",
            Self::Fence { .. } => "Fence",
            Self::Unfence { .. } => "Unfence",
            Self::Close { .. } => "Close",
            Self::Carry { .. } => "Carry",
            Self::CleanBroker(_) => "CleanBroker",
            Self::RemoveEpochUsers(_) => "RemoveEpochUsers",
            Self::ScaleBlueToZero => "ScaleBlueToZero",
            Self::RemoveRecord => "RemoveRecord",
        }
    }

    /// True for what cannot be undone: the lease is checked once more right before.
    pub const fn is_irreversible(&self) -> bool {
        matches!(
            self,
            Self::RemoveGreen
                | Self::Point(_)
                | Self::Fence { .. }
                | Self::Close { .. }
                | Self::Carry { .. }
                | Self::ScaleBlueToZero
        )
    }
}
