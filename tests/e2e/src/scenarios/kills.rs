//! A gate that fails, an abort in Probing, then a second run in which the operator that leads is killed once in
//! each phase, and twice in the switch. Phases that would be over in a moment are held by what holds them in
//! real life: a mistake in the spec, nodes that take no pods, an approval that is not there yet.

use crate::brokers::{definitions, nothing_of_ours};
use crate::cluster::{Cluster, NAMESPACE};
use crate::demo::{self, GREEN};
use crate::error::{Error, Result, expect};
use crate::migration::{self, Migration, describe};
use crate::operator;
use crate::scenarios::{failing_gate, quick_gate};
use crate::shop;
use crate::show::Show;
use api::{Phase, RabbitMQMigrationStatus};
use serde_json::json;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Where the operator is killed: everywhere before the end.
const PHASES: [Phase; 9] = [
    Phase::Preflight,
    Phase::ProvisioningGreen,
    Phase::VerifyingPlacement,
    Phase::SyncingTopology,
    Phase::Probing,
    Phase::AwaitingApproval,
    Phase::Switching,
    Phase::Soaking,
    Phase::Retiring,
];
/// How long the second run may take, kills and take-overs included.
const SECONDS: u64 = 600;

/// Aborts, retries, kills, audits.
pub async fn run(cluster: Cluster, root: PathBuf) -> Result<()> {
    let mut show = Show::default();
    demo::begin_under_load(&cluster, &root).await?;
    let blue = shop::administrator();
    let before = definitions(&cluster, "rabbitmq-0", &blue).await?;
    let mut patch = quick_gate();
    if let Some(spec) = patch.as_object_mut() {
        spec.insert("cutover".to_owned(), json!({"approval": "Manual"}));
        spec.insert("retirement".to_owned(), json!({"delaySeconds": 10}));
    }
    cluster.apply(&migration::manifest(&cluster, &patch).await?).await?;
    let migration = Migration::new(&cluster, "orders");
    migration.wait_for(Phase::Probing, 120, &mut |s| show.status(s)).await?;
    failing_gate::run(&cluster, &migration, &mut show).await?;
    show.say("aborting in Probing");
    migration.annotate(api::ABORT, "by-the-suite").await?;
    migration.wait_for(Phase::RolledBack, 120, &mut |s| show.status(s)).await?;
    nothing_of_ours(&cluster, "rabbitmq-0", &blue).await?;
    let after = definitions(&cluster, "rabbitmq-0", &blue).await?;
    expect(before == after, "blue's definitions to be as they were before the aborted migration")?;
    nothing_of_green(&cluster).await?;
    show.say("retrying, with a mistake in the spec; the operator is killed in each phase");
    migration.patch(storage_class("golden")).await?;
    migration.annotate(api::RETRY, "1").await?;
    let killed = Killing::new(&cluster, &migration).run(&mut show).await;
    // Whatever happened: the next scenario needs its nodes.
    cordon(&cluster, "uncordon").await?;
    let killed = killed?;
    for phase in PHASES {
        let times = killed.iter().filter(|hit| **hit == phase).count();
        let wanted = if phase == Phase::Switching { 2 } else { 1 };
        let what = format!("{wanted} kills in {phase}, got {times}: this run proves nothing ({killed:?})");
        expect(times == wanted, what)?;
    }
    audit(&cluster, &mut show).await
}

fn storage_class(name: &str) -> serde_json::Value {
    json!({"spec": {"green": {"template": {"storage": {"className": name}}}}})
}

async fn cordon(cluster: &Cluster, verb: &str) -> Result<()> {
    cluster.kubectl(&[verb, "--selector", "kubernetes.io/os=linux"]).await.map(|_| ())
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

/// The kills of one migration.
struct Killing<'a> {
    cluster: &'a Cluster,
    migration: &'a Migration,
    killed: Vec<Phase>,
    first_in_switch: Option<(String, RabbitMQMigrationStatus)>,
}

impl<'a> Killing<'a> {
    const fn new(cluster: &'a Cluster, migration: &'a Migration) -> Self {
        Self { cluster, migration, killed: Vec::new(), first_in_switch: None }
    }

    /// Follows the migration to its end. Tells in which phases a kill hit.
    async fn run(mut self, show: &mut Show) -> Result<Vec<Phase>> {
        let end = Instant::now() + Duration::from_secs(SECONDS);
        loop {
            let status = self.migration.status().await?;
            show.status(&status);
            let phase = status.phase.unwrap_or_default();
            if phase == Phase::Completed {
                return Ok(self.killed);
            }
            if self.is_due(phase, &status).await? {
                self.kill(show).await?;
            }
            if Instant::now() >= end {
                let what = "the end of the second run".to_owned();
                return Err(Error::TimedOut { what, seconds: SECONDS, last: describe(&status) });
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Once in each phase; in the switch once more when a successor has recorded what it did there.
    async fn is_due(&self, phase: Phase, status: &RabbitMQMigrationStatus) -> Result<bool> {
        let times = self.killed.iter().filter(|hit| **hit == phase).count();
        match &self.first_in_switch {
            Some((dead, then)) if phase == Phase::Switching && times == 1 => {
                let leader = operator::leader(self.cluster).await?;
                Ok(leader.is_some_and(|pod| pod != *dead) && status != then)
            }
            _ => Ok(PHASES.contains(&phase) && times == 0),
        }
    }

    /// Kills. A successor takes over only when the lease expires, so what is read now is where it hit.
    async fn kill(&mut self, show: &mut Show) -> Result<()> {
        let Some(pod) = operator::kill_leader(self.cluster).await? else { return Ok(()) };
        let status = self.migration.status().await?;
        let phase = status.phase.unwrap_or_default();
        show.say(&format!("kill -9 in {phase}: {pod}"));
        self.killed.push(phase);
        match phase {
            Phase::Preflight => self.migration.patch(storage_class("zonal")).await,
            Phase::ProvisioningGreen => {
                self.wait_for_nodes_of_green().await?;
                cordon(self.cluster, "cordon").await
            }
            Phase::VerifyingPlacement => cordon(self.cluster, "uncordon").await,
            Phase::AwaitingApproval => {
                let digest = status.plan.map(|plan| plan.digest).unwrap_or_default();
                self.migration.annotate(api::APPROVE, &digest).await
            }
            Phase::Switching => {
                self.first_in_switch.get_or_insert((pod, status));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn wait_for_nodes_of_green(&self) -> Result<()> {
        let labels = format!("app.kubernetes.io/name={GREEN}");
        self.cluster
            .wait("a node for each pod of green", 60, || async {
                let pods = self.cluster.pods(NAMESPACE, &labels).await?;
                let placed = |pod: &&k8s_openapi::api::core::v1::Pod| {
                    pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())
                };
                let on_nodes = pods.iter().filter(placed).count();
                Ok(if on_nodes == 3 { Ok(()) } else { Err(format!("{on_nodes} of 3")) })
            })
            .await
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
