//! Everything the brain can ask.

use crate::side::Side;
use std::time::Duration;

/// A question about the world. It carries at most a side; per-queue data is one table per side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fact {
    /// What we may not do in Kubernetes though we need to (access reviews).
    Permissions,
    /// Whether the Secret with an administrator's credentials is there, with its keys.
    Credentials(Side),
    /// The StatefulSet of a side.
    StatefulSet(Side),
    /// The pods of a side.
    Pods(Side),
    /// The other migrations of the namespace.
    Others,
    /// The Services that move.
    Services,
    /// All Services in the namespace that lead to blue's pods.
    Entrances,
    /// Green's StorageClass.
    StorageClass,
    /// The Kubernetes nodes.
    Nodes,
    /// Green's claims and volumes.
    Volumes,
    /// The stored SwitchRecord.
    Record,
    /// Members, versions, alarms and flags, as every pod of a side tells them.
    Broker(Side),
    /// Whether the user of our epoch is the only operator's user on a side.
    Epoch(Side),
    /// Users of a side and their connection limits.
    Users(Side),
    /// What the rehearsal of the fence showed.
    Rehearsal,
    /// Blue's definitions, rewritten, compared with green's.
    Definitions,
    /// Where each moved Service leads: endpoints per port, and who answers the handshake.
    Routes,
    /// Client connections of a side.
    Connections(Side),
    /// Totals of all queues of a side, from listings.
    Queues(Side),
    /// Depths of all queues of a side, by passive declare.
    Depths(Side),
    /// Whether each queue of a side is empty, by `basic.get`.
    Emptiness(Side),
    /// Publishes received and dropped as unroutable, live.
    Traffic(Side),
    /// The bindings of a side that lead to what lasts, live.
    Bindings(Side),
    /// The latency probe and its windows.
    Probe,
    /// The canary ledger.
    Ledger,
    /// What of ours is left on a side.
    Leftovers(Side),
}

/// A fact, and how old a reading of it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    /// What is asked.
    pub fact: Fact,
    /// A younger reading need not be repeated: blue serves customers.
    pub max_age: Duration,
}

/// Asks for `fact` anew each pass.
pub const fn fresh(fact: Fact) -> Want {
    Want { fact, max_age: Duration::ZERO }
}

/// Asks for `fact`, at most every `seconds`.
pub const fn every(seconds: u64, fact: Fact) -> Want {
    Want { fact, max_age: Duration::from_secs(seconds) }
}
