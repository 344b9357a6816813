//! The phases of a migration: what must be remembered between passes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a migration stands. A column for people; conditions are the contract for machines.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum Phase {
    /// Runs every check on blue, the Kubernetes cluster and the plan. Leaves when no finding blocks.
    #[default]
    Preflight,
    /// Installs or adopts green. Leaves when all members are ready in one cluster.
    ProvisioningGreen,
    /// Checks where green's volumes let it run. Leaves when the verdict is safe or waived.
    VerifyingPlacement,
    /// Brings blue's definitions to green and compares. Leaves when no difference matters.
    SyncingTopology,
    /// Probes both sides and judges the gate. Leaves when the gate passes and the minimum time is over.
    Probing,
    /// Waits for a person to approve the plan by its digest; the gate goes on judging.
    AwaitingApproval,
    /// Moves the traffic and proves the old side empty. Leaves to Soaking, or to RollingBack.
    Switching,
    /// Watches green after the switch. Leaves when the soak time is over.
    Soaking,
    /// Does what `retirement` asks for. There is no way back from here.
    Retiring,
    /// Green serves and the retirement is done.
    Completed,
    /// Switching with the other heading: traffic goes back to blue.
    RollingBack,
    /// Blue serves again, or never stopped serving; what we made is undone.
    RolledBack,
    /// Nothing more will happen without a person; the conditions say why.
    Failed,
}

impl Phase {
    /// All phases, in the order of a migration that goes well.
    pub const ALL: [Self; 13] = [
        Self::Preflight,
        Self::ProvisioningGreen,
        Self::VerifyingPlacement,
        Self::SyncingTopology,
        Self::Probing,
        Self::AwaitingApproval,
        Self::Switching,
        Self::Soaking,
        Self::Retiring,
        Self::Completed,
        Self::RollingBack,
        Self::RolledBack,
        Self::Failed,
    ];

    /// The name as it stands in status.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Preflight => "Preflight",
            Self::ProvisioningGreen => "ProvisioningGreen",
            Self::VerifyingPlacement => "VerifyingPlacement",
            Self::SyncingTopology => "SyncingTopology",
            Self::Probing => "Probing",
            Self::AwaitingApproval => "AwaitingApproval",
            Self::Switching => "Switching",
            Self::Soaking => "Soaking",
            Self::Retiring => "Retiring",
            Self::Completed => "Completed",
            Self::RollingBack => "RollingBack",
            Self::RolledBack => "RolledBack",
            Self::Failed => "Failed",
        }
    }

    /// True where nothing moves any more without a person.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::RolledBack | Self::Failed)
    }

    /// True while traffic is being moved: the sprint runs only here.
    pub const fn is_switch(self) -> bool {
        matches!(self, Self::Switching | Self::RollingBack)
    }

    /// True before any Service was pointed to green.
    pub const fn is_before_switch(self) -> bool {
        matches!(
            self,
            Self::Preflight
                | Self::ProvisioningGreen
                | Self::VerifyingPlacement
                | Self::SyncingTopology
                | Self::Probing
                | Self::AwaitingApproval
        )
    }
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
