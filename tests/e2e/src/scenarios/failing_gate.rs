//! A gate that cannot pass: green's disks are slow. It says so, and traffic stays where it is.

use crate::cluster::{Cluster, NAMESPACE};
use crate::demo::GREEN;
use crate::error::{Result, expect};
use crate::migration::{self, Migration};
use crate::shop;
use crate::show::Show;
use api::Phase;

/// Writes per second that each disk of green may do: far fewer than the probe's messages need.
const WRITES: &str = "8";
/// Windows that are measured before the disks become slow: the probe is at work then.
const WINDOWS: i64 = 2;
/// How long the gate may take to fail.
const SECONDS: u64 = 120;
/// So many messages must be confirmed afterwards.
const MESSAGES: u64 = shop::RATE * 5;

/// Throttles green's disks while the migration probes, and expects the gate to fail. The disks are as before
/// when it returns.
pub async fn run(cluster: &Cluster, migration: &Migration, show: &mut Show) -> Result<()> {
    migration
        .wait_until("the first windows of the gate", 60, &mut |s| show.status(s), &|s| {
            s.gate.as_ref().is_some_and(|gate| gate.windows_valid >= WINDOWS)
        })
        .await?;
    show.say(&format!("green's disks are limited to {WRITES} writes per second"));
    throttle(cluster, WRITES).await?;
    let outcome = fails(cluster, migration, show).await;
    throttle(cluster, "0").await?;
    outcome
}

async fn throttle(cluster: &Cluster, writes: &str) -> Result<()> {
    for member in 0..3 {
        let pod = format!("{GREEN}-{member}");
        cluster.lab(&["disk", "throttle", &pod, writes, "--namespace", NAMESPACE]).await?;
    }
    Ok(())
}

async fn fails(cluster: &Cluster, migration: &Migration, show: &mut Show) -> Result<()> {
    let status = migration
        .wait_until("the gate to fail", SECONDS, &mut |s| show.status(s), &|s| {
            s.gate.as_ref().is_some_and(|gate| gate.verdict == "Fail")
        })
        .await?;
    let gate = status.gate.clone().unwrap_or_default();
    show.say(&format!("the gate: {}", gate.reason));
    expect(
        migration::condition(&status, api::conditions::SLO_MET) == "False",
        "condition SLOMet to be False",
    )?;
    let said = status.wait.map(|wait| wait.detail).unwrap_or_default();
    let rule = gate.rules.first().cloned().unwrap_or_default();
    let names_numbers = said.contains(&rule.name) && said.contains("ms");
    expect(names_numbers, format!("the wait to name the rule and its numbers: {said}"))?;
    let described = cluster.kubectl(&["-n", NAMESPACE, "describe", "rmqm", "orders"]).await?;
    let head: String = said.chars().take(40).collect();
    expect(described.contains(&head), "kubectl describe to tell why it waits")?;
    let before = shop::confirmed(cluster).await?;
    cluster
        .wait("the load to go on", 60, || async {
            let more = shop::confirmed(cluster).await? - before;
            Ok(if more >= MESSAGES { Ok(()) } else { Err(format!("{more} confirms of {MESSAGES}")) })
        })
        .await?;
    let status = migration.status().await?;
    expect(status.phase == Some(Phase::Probing), "to stay in Probing")?;
    expect(status.serving_side.as_deref() == Some("Blue"), "blue to serve")
}
