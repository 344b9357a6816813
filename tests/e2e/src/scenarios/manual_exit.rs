//! The operator is deleted in the middle of the switch: a person without it restores service by the commands
//! that `status.manualExit` gives, run as they stand.

use crate::cluster::Cluster;
use crate::demo::GREEN;
use crate::error::{Error, Result, expect};
use crate::migration::Migration;
use crate::operator;
use crate::shop;
use crate::show::Show;
use api::Phase;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a client may take to be back.
const SECONDS: u64 = 30;
/// How long the fence is waited for, and how often it is looked at: the middle of a switch is short.
const FENCE: Duration = Duration::from_mins(1);
const LOOK: Duration = Duration::from_millis(20);
/// Over how long a rate is taken.
const MEASURED: Duration = Duration::from_secs(3);

/// Waits for the fence, ends every operator, leaves by hand. The migration must be about to switch.
pub async fn run(cluster: &Cluster, root: &Path, migration: &Migration, show: &mut Show) -> Result<()> {
    migration.wait_for(Phase::Switching, 300, &mut |s| show.status(s)).await?;
    until_fenced(cluster).await?;
    operator::destroy(cluster).await?;
    let status = migration.status().await?;
    show.say(&format!("the operator is gone; phase {}", status.phase.unwrap_or_default()));
    expect(status.phase == Some(Phase::Switching), "the operator to be gone in the middle of the switch")?;
    expect(!fenced(cluster).await?.is_empty(), "a fence that nobody takes down, or this run proves nothing")?;
    expect(!status.manual_exit.is_empty(), "status.manualExit to have commands")?;
    for command in &status.manual_exit {
        println!("$ {command}");
        let output = cluster.shell(command).await?;
        output.lines().for_each(|line| println!("  {line}"));
    }
    served_by_green(cluster).await?;
    show.say("service is restored: every client is on green and at work");
    operator::install(cluster, root).await
}

/// The shop's users that blue refuses.
async fn fenced(cluster: &Cluster) -> Result<Vec<String>> {
    let blue = shop::management(cluster, "rabbitmq-0", &shop::administrator()).await?;
    let limits = blue.user_limits().await.map_err(shop::broker("list user limits"))?;
    let refused = limits.into_iter().filter(|limits| limits.max_connections() == Some(0));
    Ok(refused.map(|limits| limits.name).filter(|user| user.starts_with("shop-")).collect())
}

async fn until_fenced(cluster: &Cluster) -> Result<()> {
    let end = Instant::now() + FENCE;
    while fenced(cluster).await?.is_empty() {
        if Instant::now() >= end {
            let what = "a fence on blue".to_owned();
            return Err(Error::TimedOut {
                what,
                seconds: FENCE.as_secs(),
                last: "no user is fenced".to_owned(),
            });
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

/// Every client is connected to green, and messages flow at the shop's rate.
async fn served_by_green(cluster: &Cluster) -> Result<()> {
    let green = shop::green_administrator(cluster, GREEN).await?;
    let name = shop::management(cluster, &format!("{GREEN}-0"), &green).await?;
    let name = name.cluster_name().await.map_err(shop::broker("read green's cluster name"))?;
    cluster
        .wait("every client to be on green", SECONDS, || async {
            let stats = shop::stats(cluster).await?;
            let elsewhere: Vec<String> = stats
                .iter()
                .filter(|s| s.connected_to.iter().any(|on| on.as_deref() != Some(&*name)))
                .map(|s| format!("{} on {:?}", s.client, s.connected_to))
                .collect();
            Ok(if !stats.is_empty() && elsewhere.is_empty() { Ok(()) } else { Err(elsewhere.join(", ")) })
        })
        .await?;
    cluster
        .wait("the shop's rate on green", SECONDS, || async {
            let before = shop::confirmed(cluster).await?;
            let begun = Instant::now();
            tokio::time::sleep(MEASURED).await;
            let count = shop::confirmed(cluster).await? - before;
            let rate = count * 1000 / u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            let enough = rate * 10 >= shop::RATE * 8;
            Ok(if enough { Ok(()) } else { Err(format!("{rate} of {} msg/s", shop::RATE)) })
        })
        .await
}
