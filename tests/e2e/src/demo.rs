//! The demo: a whole migration under load, shown as it happens.

use crate::cluster::{Cluster, NAMESPACE};
use crate::error::{Error, Result, expect};
use crate::migration::{self, Migration};
use crate::operator;
use crate::shop::{self, manifests};
use crate::show::Show;
use crate::summary::Summary;
use api::Phase;
use std::path::Path;

/// The name of green in the demo.
pub const GREEN: &str = "orders-green";

/// From whatever an earlier run left to an operator that has nothing to do. First the operator: without one a
/// migration that an earlier run left would never go.
pub async fn begin(cluster: &Cluster, root: &Path) -> Result<()> {
    operator::install(cluster, root).await?;
    clean(cluster).await
}

/// From whatever an earlier run left to a blue under load, with an operator that has nothing to do yet.
pub async fn begin_under_load(cluster: &Cluster, root: &Path) -> Result<()> {
    begin(cluster, root).await?;
    shop::install_blue(cluster).await?;
    shop::open(cluster).await
}

/// Removes everything that a run made, but not the operator.
pub async fn clean(cluster: &Cluster) -> Result<()> {
    for name in migration::names(cluster).await? {
        Migration::new(cluster, &name).delete().await?;
    }
    // The namespace controller sleeps for half of the longest grace period that it meets: pods go first.
    cluster
        .kubectl(&["-n", NAMESPACE, "delete", "statefulsets,deployments", "--all", "--ignore-not-found"])
        .await?;
    let now =
        ["-n", NAMESPACE, "delete", "pods", "--all", "--ignore-not-found", "--grace-period=0", "--force"];
    cluster.kubectl(&now).await?;
    cluster.kubectl(&["delete", "namespace", NAMESPACE, "--ignore-not-found", "--timeout=120s"]).await?;
    // The lab has as many disks as it has: those of claims that are gone are offered anew.
    if cluster.is_lab() { cluster.lab(&["volumes", "recycle"]).await } else { Ok(()) }
}

/// Runs the demo and writes `target/demo/summary.json`.
pub async fn run(cluster: &Cluster, root: &Path) -> Result<()> {
    let mut show = Show::default();
    show.say("installing the operator from deploy/");
    operator::install(cluster, root).await?;
    show.say("cleaning up what an earlier run left");
    clean(cluster).await?;
    show.say("installing blue: RabbitMQ 3.10.8, three members on emptyDir, as an old chart leaves it");
    shop::install_blue(cluster).await?;
    show.say("opening the shop: publishers and consumers at 550 msg/s through Service rabbitmq");
    shop::open(cluster).await?;
    shop::reset_gaps(cluster).await?;
    show.say("kubectl apply -f tests/e2e/manifests/migration.yaml");
    cluster.apply(manifests::MIGRATION).await?;
    let migration = Migration::new(cluster, "orders");
    let status = follow(cluster, &migration, Phase::Completed, 420, &mut show).await?;
    show.say("closing the shop and checking every message");
    let green = shop::green_administrator(cluster, GREEN).await?;
    let sides = [("rabbitmq-0".to_owned(), shop::administrator()), (format!("{GREEN}-0"), green)];
    let report = shop::audit(cluster, &sides).await?;
    let summary = Summary::of(&status, &report);
    summary.print();
    let path = write(root, "demo/summary.json", &summary)?;
    println!("\nThe same as JSON: {path}");
    println!(
        "Look around: make kubectl ARGS='-n {NAMESPACE} describe rmqm orders'; take it away: make demo-clean"
    );
    expect(report.is_clean(), format!("a clean ledger: {:?} {:?}", report.examples, report.void))
}

/// Follows a migration to `phase`, showing its progress with the clients' beside it.
pub async fn follow(
    cluster: &Cluster,
    migration: &Migration,
    phase: Phase,
    seconds: u64,
    show: &mut Show,
) -> Result<api::RabbitMQMigrationStatus> {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(seconds);
    loop {
        let status = migration.status().await?;
        if let Ok(stats) = shop::stats(cluster).await {
            let connections: u64 =
                stats.iter().filter(|s| s.last_confirm_age_ms.is_some()).map(|s| s.in_flight).sum();
            let confirmed: u64 = stats.iter().map(|s| s.confirmed).sum();
            let delivered: u64 = stats.iter().map(|s| s.delivered).sum();
            show.traffic(format!("{confirmed} confirmed, {connections} in flight, {delivered} delivered"));
        }
        show.status(&status);
        if status.phase == Some(phase) {
            return Ok(status);
        }
        if std::time::Instant::now() > end {
            let last = crate::migration::describe(&status);
            return Err(Error::TimedOut { what: format!("phase {phase}"), seconds, last });
        }
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    }
}

/// Writes a file under target/.
pub fn write(root: &Path, name: &str, value: &impl serde::Serialize) -> Result<String> {
    let path = root.join("target").join(name);
    let failed = |source| Error::File { path: path.display().to_string(), source };
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(failed)?;
    }
    let text = serde_json::to_string_pretty(value).map_err(|e| Error::Malformed(e.to_string()))?;
    let failed = |source| Error::File { path: path.display().to_string(), source };
    std::fs::write(&path, text).map_err(failed)?;
    Ok(path.display().to_string())
}
