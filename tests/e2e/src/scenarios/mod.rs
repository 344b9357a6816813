//! The scenarios of the suite, in the order in which they run: each leaves what the next one needs.

mod bad_input;
mod happy_path;
mod kills;
mod rollback;

use crate::cluster::Cluster;
use crate::error::Result;
use std::path::PathBuf;
use std::pin::Pin;

type Run = fn(Cluster, PathBuf) -> Pin<Box<dyn Future<Output = Result<()>> + Send>>;

/// A gate that comes to its verdict in about half a minute: 34 windows of a second on the median. Only tests
/// have so short a gate.
pub fn quick_gate() -> serde_json::Value {
    serde_json::json!({
        "gate": {
            "objectives": [{"name": "p50", "percentile": "P50", "maxMillis": 500}],
            "minimumDurationSeconds": 10, "windowSeconds": 1, "warmUpSeconds": 5,
        },
        "soak": {"durationSeconds": 20},
    })
}

/// One scenario.
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// What it shows.
    pub promise: &'static str,
    /// Whether it runs unasked.
    pub turn: Turn,
    /// Runs it.
    pub run: Run,
}

/// When a scenario runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// In every run.
    Always,
    /// Only when a filter names it.
    Named,
}

/// All scenarios.
pub const ALL: [Scenario; 4] = [
    Scenario {
        name: "bad-input",
        promise: "a mistake in the spec gets a clear condition and blue is untouched",
        turn: Turn::Always,
        run: |cluster, root| Box::pin(bad_input::run(cluster, root)),
    },
    Scenario {
        name: "happy-path",
        promise: "a migration under load loses, duplicates and reorders nothing",
        turn: Turn::Always,
        run: |cluster, root| Box::pin(happy_path::run(cluster, root)),
    },
    Scenario {
        name: "rollback",
        promise: "rollback in Soaking under load takes everything back to blue and loses nothing",
        turn: Turn::Always,
        run: |cluster, root| Box::pin(rollback::run(cluster, root)),
    },
    Scenario {
        name: "kills",
        promise: "an abort leaves blue as it was; a second run completes though the operator is killed",
        turn: Turn::Named,
        run: |cluster, root| Box::pin(kills::run(cluster, root)),
    },
];
