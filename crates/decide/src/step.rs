//! What a pass decides.

use crate::effect::Effect;
use api::{Phase, RabbitMQMigrationStatus};
use std::time::Duration;

/// One decision: to act, to move, to wait or to stop, never two at once.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Do these in order; stop at the first failure; then look again.
    Do(Vec<Effect>),
    /// Store this phase; do nothing of it yet.
    Go(Phase),
    /// Nothing to do now.
    Wait(Wait),
    /// Nothing will happen without a person.
    Stop(Wait),
}

impl Step {
    /// One effect.
    pub fn act(effect: Effect) -> Self {
        Self::Do(vec![effect])
    }

    /// Waits for `reason`; `detail` tells for what, with numbers, and what a person can do.
    pub fn wait(reason: Reason, detail: impl Into<String>) -> Self {
        Self::Wait(Wait { reason, detail: detail.into() })
    }

    /// Stops for `reason`.
    pub fn stop(reason: Reason, detail: impl Into<String>) -> Self {
        Self::Stop(Wait { reason, detail: detail.into() })
    }
}

/// What is waited for, or why nothing more happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// A word from a closed list.
    pub reason: Reason,
    /// A sentence with numbers, and what a person can do.
    pub detail: String,
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Why a migration waits or stops: reasons of conditions and labels of metrics.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Reason { $($(#[$doc])* $name),* }
        impl Reason {
            /// The word, as conditions and metrics carry it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),* }
            }
            /// All reasons.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];
        }
    };
}

reasons! {
    /// A check of Preflight blocks or could not be made.
    PreflightBlocked,
    /// Mode Check: all was looked at, nothing will be changed.
    Checked,
    /// The spec cannot be used.
    InvalidSpec,
    /// Status was written by a newer operator.
    NewerStatus,
    /// Another migration uses the same blue, green or Service and is older.
    Conflict,
    /// Paused by a person.
    Paused,
    /// Green's members are not all there yet.
    GreenStarting,
    /// Green cannot come up: another's object has its name, or a pod is in trouble.
    GreenFailed,
    /// Green's volumes pin it to places that are not safe.
    PlacementUnsafe,
    /// Where green's volumes can go could not be told.
    PlacementUnknown,
    /// Green's definitions differ after the import.
    TopologyDiffers,
    /// A rewrite needs consent.
    RewriteNeedsConsent,
    /// Definitions are compared once more before traffic moves.
    ComparingDefinitions,
    /// Definitions could not be read or compared.
    TopologyUnknown,
    /// The probe connects, warms up or measures.
    Probing,
    /// The gate says that green is not good enough.
    GateFailed,
    /// The gate found no verdict in time.
    GateDeadline,
    /// A person must approve the plan.
    AwaitingApproval,
    /// Something that is needed could not be read.
    CannotSee,
    /// The Services are not seen to lead to the new side yet.
    RouteNotSeen,
    /// Somebody else writes the selector.
    RoutingContested,
    /// A binding is missing on the new side, which drops messages.
    BindingMissing,
    /// Publishers are still connected to the old side.
    PublishersLeaving,
    /// The old side's consumers finish its queues.
    Draining,
    /// What was delivered and not acked is given time.
    Settling,
    /// Consumers are still connected to the old side.
    ConsumersLeaving,
    /// Totals of the old side must be zero for a while.
    ProvingEmpty,
    /// Messages cannot be carried.
    CarryFailed,
    /// Watching green after the switch.
    Soaking,
    /// Green fails while soaking.
    SoakFailed,
    /// Blue cannot be retired yet.
    RetirementDelayed,
    /// Going back is not possible.
    Irreversible,
    /// Done: green serves.
    Completed,
    /// Blue serves because the spec asks for it.
    RolledBackAsAsked,
    /// Blue serves because a person aborted.
    Aborted,
    /// Blue serves because the switch or the soak failed.
    RolledBackOnFailure,
    /// Cleaning up.
    CleaningUp,
    /// Effects are being carried out.
    Working,
}

/// What a pass ends with.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The decision.
    pub step: Step,
    /// The whole status to be recorded. `record` writes it and computes nothing.
    pub status: RabbitMQMigrationStatus,
    /// When to look again at the latest.
    pub again_in: Duration,
}
