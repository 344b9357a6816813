//! The condition types: the contract for machines.

/// `True`: the migration reached the end that the spec asks for.
pub const READY: &str = "Ready";
/// `True`: the operator is working.
pub const RECONCILING: &str = "Reconciling";
/// `True`: nothing will change without a person.
pub const STALLED: &str = "Stalled";
/// `True`: paused by spec or annotation.
pub const PAUSED: &str = "Paused";
/// `True`: waits for an approval that names the plan digest.
pub const AWAITING_APPROVAL: &str = "AwaitingApproval";
/// `True`: no check blocks.
pub const PREFLIGHT_PASSED: &str = "PreflightPassed";
/// `True`: green runs as one cluster with all members.
pub const GREEN_AVAILABLE: &str = "GreenAvailable";
/// `True`: every replica of green can run where its volume is, and quorum survives each zone.
pub const PLACEMENT_SAFE: &str = "PlacementSafe";
/// `True`: green holds all definitions that should be there.
pub const TOPOLOGY_IN_SYNC: &str = "TopologyInSync";
/// `True`: the gate passes.
pub const SLO_MET: &str = "SLOMet";
/// `True`: the Services lead to green.
pub const TRAFFIC_SHIFTED: &str = "TrafficShifted";
/// `True`: blue is proven empty.
pub const BLUE_DRAINED: &str = "BlueDrained";
/// `True`: the canary ledger has no loss and no unexplained duplicate.
pub const LEDGER_BALANCED: &str = "LedgerBalanced";
/// `True`: no consumer came to green before its queues were empty on blue.
pub const ORDER_KEPT: &str = "OrderKept";
/// `True`: somebody else writes the selector of a moved Service.
pub const ROUTING_CONTESTED: &str = "RoutingContested";
/// `True`: going back is still possible.
pub const REVERSIBLE: &str = "Reversible";

/// All types, in the order in which `kubectl describe` shows them.
pub const ALL: [&str; 16] = [
    READY,
    RECONCILING,
    STALLED,
    PAUSED,
    AWAITING_APPROVAL,
    PREFLIGHT_PASSED,
    GREEN_AVAILABLE,
    PLACEMENT_SAFE,
    TOPOLOGY_IN_SYNC,
    SLO_MET,
    TRAFFIC_SHIFTED,
    BLUE_DRAINED,
    LEDGER_BALANCED,
    ORDER_KEPT,
    ROUTING_CONTESTED,
    REVERSIBLE,
];
