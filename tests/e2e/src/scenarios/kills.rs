//! An abort in Probing, then a second run in which the operator is killed in every phase that a watcher can
//! catch, and twice in the switch.

use crate::brokers::{definitions, nothing_of_ours};
use crate::cluster::{Cluster, NAMESPACE, OPERATOR_NAMESPACE};
use crate::demo::{self, GREEN, OPERATOR};
use crate::error::{Error, Result, expect};
use crate::migration::{self, Migration, describe};
use crate::scenarios::quick_gate;
use crate::shop;
use crate::show::Show;
use api::Phase;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Phases that last long enough for a kill to land in them.
const MUST_BE_HIT: [Phase; 4] = [Phase::ProvisioningGreen, Phase::Probing, Phase::Switching, Phase::Soaking];
/// How long the second run may take, kills and take-overs included.
const SECONDS: u64 = 600;

/// Aborts, retries, kills, audits.
pub async fn run(cluster: Cluster, root: PathBuf) -> Result<()> {
    let mut show = Show::default();
    demo::begin_under_load(&cluster, &root).await?;
    let blue = shop::administrator();
    let before = definitions(&cluster, "rabbitmq-0", &blue).await?;
    cluster.apply(&migration::manifest(&cluster, &quick_gate()).await?).await?;
    let migration = Migration::new(&cluster, "orders");
    migration.wait_for(Phase::Probing, 120, &mut |s| show.status(s)).await?;
    show.say("aborting in Probing");
    migration.annotate(api::ABORT, "by-the-suite").await?;
    migration.wait_for(Phase::RolledBack, 120, &mut |s| show.status(s)).await?;
    nothing_of_ours(&cluster, "rabbitmq-0", &blue).await?;
    let after = definitions(&cluster, "rabbitmq-0", &blue).await?;
    expect(before == after, "blue's definitions to be as they were before the aborted migration")?;
    nothing_of_green(&cluster).await?;
    show.say("retrying; the operator is killed as often as a phase can be caught");
    migration.annotate(api::RETRY, "1").await?;
    let killed = kill_on_the_way(&cluster, &migration, &mut show).await?;
    show.say(&format!("killed in {killed:?}"));
    for phase in MUST_BE_HIT {
        expect(killed.contains(&phase), format!("a kill in {phase}, or this run proves nothing"))?;
    }
    let in_switch = killed.iter().filter(|phase| **phase == Phase::Switching).count();
    expect(in_switch == 2, format!("two kills in the switch, got {in_switch}"))?;
    audit(&cluster, &mut show).await
}

/// Green is gone; its claims follow as soon as no pod uses them any more.
async fn nothing_of_green(cluster: &Cluster) -> Result<()> {
    let kinds = "statefulset,pod,pvc,service,configmap,secret,role,rolebinding,networkpolicy,pdb";
    cluster
        .wait("the end of green", 60, || async {
            let left = cluster.kubectl(&["-n", NAMESPACE, "get", kinds, "-o", "name"]).await?;
            let green: Vec<&str> = left.lines().filter(|name| name.contains(GREEN)).collect();
            Ok(if green.is_empty() { Ok(()) } else { Err(green.join(", ")) })
        })
        .await
}

/// Kills the operator in each phase when it is first seen, and in the switch once more after two seconds.
async fn kill_on_the_way(cluster: &Cluster, migration: &Migration, show: &mut Show) -> Result<Vec<Phase>> {
    let mut killed: Vec<Phase> = Vec::new();
    let mut again_at: Option<Instant> = None;
    let end = Instant::now() + Duration::from_secs(SECONDS);
    loop {
        let status = migration.status().await?;
        show.status(&status);
        let phase = status.phase.unwrap_or_default();
        if phase == Phase::Completed {
            return Ok(killed);
        }
        let second = phase == Phase::Switching
            && again_at.is_some_and(|at| Instant::now() >= at)
            && killed.iter().filter(|p| **p == phase).count() == 1;
        if phase != Phase::RolledBack && (!killed.contains(&phase) || second) {
            cluster.kill_pods(OPERATOR_NAMESPACE, OPERATOR).await?;
            show.say(&format!("kill -9 in {phase}"));
            killed.push(phase);
            if phase == Phase::Switching {
                // The successor needs the lease first: the second kill shall meet it at work.
                again_at = Some(Instant::now() + Duration::from_secs(20));
            }
        }
        if Instant::now() >= end {
            let what = "the end of the second run".to_owned();
            return Err(Error::TimedOut { what, seconds: SECONDS, last: describe(&status) });
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Every message is accounted for, and nothing of ours is left on either side.
pub async fn audit(cluster: &Cluster, show: &mut Show) -> Result<()> {
    let green = shop::green_administrator(cluster, GREEN).await?;
    let green_pod = format!("{GREEN}-0");
    let sides = [("rabbitmq-0".to_owned(), shop::administrator()), (green_pod.clone(), green.clone())];
    let report = shop::audit(cluster, &sides).await?;
    show.say(&format!(
        "{} confirmed, {} lost, {} duplicated of which {} unexplained, {} reordered, publish gap {} ms",
        report.published,
        report.lost,
        report.duplicated_explained + report.duplicated_unexplained,
        report.duplicated_unexplained,
        report.reordered,
        report.publish_gap_millis
    ));
    expect(report.is_clean(), format!("a clean ledger: {:?} {:?}", report.examples, report.void))?;
    nothing_of_ours(cluster, "rabbitmq-0", &shop::administrator()).await?;
    nothing_of_ours(cluster, &green_pod, &green).await
}
