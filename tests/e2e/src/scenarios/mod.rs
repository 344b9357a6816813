//! The scenarios of the suite, in the order in which they run: each leaves what the next one needs.

mod bad_input;
mod happy_path;

use crate::cluster::Cluster;
use crate::error::Result;
use std::path::PathBuf;
use std::pin::Pin;

type Run = fn(Cluster, PathBuf) -> Pin<Box<dyn Future<Output = Result<()>> + Send>>;

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
pub const ALL: [Scenario; 2] = [
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
];
