//! The scenarios of the suite, in the order in which they run: each leaves what the next one needs.

mod bad_input;
mod failing_gate;
mod happy_path;
mod kills;
mod manual_exit;
mod rollback;
mod rules;

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
    /// Runs it.
    pub run: Run,
}

/// All scenarios.
pub const ALL: [Scenario; 5] = [
    Scenario {
        name: "bad-input",
        promise: "a mistake in the spec gets a clear condition and blue is untouched",
        run: |cluster, root| Box::pin(bad_input::run(cluster, root)),
    },
    Scenario {
        name: "happy-path",
        promise: "a migration under load loses, duplicates and reorders nothing",
        run: |cluster, root| Box::pin(happy_path::run(cluster, root)),
    },
    Scenario {
        name: "rollback",
        promise: "with the operator deleted in the switch a person restores service; later all goes back to blue",
        run: |cluster, root| Box::pin(rollback::run(cluster, root)),
    },
    Scenario {
        name: "kills",
        promise: "a slow green never gets traffic; an abort leaves blue as it was; kill -9 in each phase is survived",
        run: |cluster, root| Box::pin(kills::run(cluster, root)),
    },
    Scenario {
        name: "why",
        promise: "rolled on ephemeral disks 3.10.8 stays one cluster, 4.0.5 does not, and preflight says so",
        run: |cluster, root| Box::pin(async move { crate::why::run(&cluster, &root).await }),
    },
];
