//! Runs scenarios one after another and says how each ended and how long it took.

use crate::cluster::Cluster;
use crate::error::{Error, Result, chain};
use crate::scenarios;
use std::path::Path;
use std::time::Instant;

/// Runs every scenario whose name contains `filter`; `Ok` where none failed.
pub async fn run(cluster: &Cluster, root: &Path, filter: &str) -> Result<()> {
    let mut failed = Vec::new();
    let mut passed = 0;
    for scenario in scenarios::ALL.iter().filter(|s| s.name.contains(filter)) {
        println!("\n== {}: {}", scenario.name, scenario.promise);
        let begun = Instant::now();
        let outcome = (scenario.run)(cluster.clone(), root.to_path_buf()).await;
        let seconds = begun.elapsed().as_secs();
        match outcome {
            Ok(()) => {
                passed += 1;
                println!("== {} passed in {seconds} s", scenario.name);
            }
            Err(error) => {
                println!("== {} FAILED after {seconds} s: {}", scenario.name, chain(&error));
                keep_evidence(cluster, root, scenario.name).await;
                failed.push(scenario.name);
            }
        }
    }
    println!("\n{passed} passed, {} failed", failed.len());
    if failed.is_empty() && passed > 0 {
        return Ok(());
    }
    Err(Error::Expected(format!("every scenario to pass; failed: {}", failed.join(", "))))
}

/// Keeps what a person needs to find out why: the migrations, events, pods and the operator's log.
async fn keep_evidence(cluster: &Cluster, root: &Path, name: &str) {
    let directory = root.join("target/e2e").join(name);
    if std::fs::create_dir_all(&directory).is_err() {
        return;
    }
    let looks: [(&str, &[&str]); 4] = [
        ("migrations.yaml", &["get", "rmqm", "-A", "-o", "yaml"]),
        ("events.txt", &["get", "events", "-A", "--sort-by=.lastTimestamp"]),
        ("pods.txt", &["get", "pods", "-A", "-o", "wide"]),
        (
            "operator.log",
            &[
                "-n",
                "rabbitmq-migration",
                "logs",
                "-l",
                "app.kubernetes.io/name=rabbitmq-migration-operator",
                "--tail=-1",
            ],
        ),
    ];
    for (file, arguments) in looks {
        if let Ok(text) = cluster.kubectl(arguments).await
            && std::fs::write(directory.join(file), text).is_err()
        {
            println!("   {file} could not be kept");
        }
    }
    println!("   evidence: {}", directory.display());
}
