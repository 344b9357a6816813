//! Why this exists: two clusters on ephemeral disks are rolled in the same way, pod by pod, and every pod comes
//! back Ready. The old version is one cluster again; the new one is several, and its quorum queue is gone.

use crate::cluster::{Cluster, NAMESPACE, is_ready};
use crate::demo;
use crate::error::{Error, Result, expect};
use crate::migration::Migration;
use crate::shop;
use crate::show::Show;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;

/// A cluster of the demo, with @NAME@ and @VERSION@ to be replaced.
const EPHEMERAL: &str = include_str!("../manifests/ephemeral.yaml");
/// Members of each cluster.
const MEMBERS: usize = 3;
/// The quorum queue that is looked for afterwards.
const QUEUE: &str = "orders";
/// How long a roll may take.
const SECONDS: u64 = 240;

/// A cluster that is rolled.
#[derive(Clone, Copy)]
struct Specimen {
    name: &'static str,
    version: &'static str,
}

const OLD: Specimen = Specimen { name: "old", version: "3.10.8" };
const NEW: Specimen = Specimen { name: "new", version: "4.0.5" };

/// What one member says.
struct Member {
    pod: String,
    /// The members that it counts as running.
    lists: BTreeSet<String>,
    /// Whether it knows the queue.
    queue: bool,
}

/// Rolls both clusters and shows what became of them.
pub async fn run(cluster: &Cluster, root: &Path) -> Result<()> {
    let show = Show::default();
    show.say("cleaning up, installing the operator and two clusters of three members on emptyDir");
    demo::begin(cluster, root).await?;
    cluster.make_namespace().await?;
    let both = [OLD, NEW];
    for specimen in both {
        let manifest = EPHEMERAL.replace("@NAME@", specimen.name).replace("@VERSION@", specimen.version);
        cluster.apply(&manifest).await?;
    }
    for specimen in both {
        shop::wait_for_members(cluster, specimen.name, MEMBERS).await?;
        declare(cluster, specimen).await?;
    }
    show.say("what preflight says before anybody rolls them:");
    for specimen in both {
        preflight(cluster, specimen).await?;
    }
    show.say("kubectl rollout restart, one pod after the other");
    futures::future::try_join_all(both.map(|specimen| roll(cluster, specimen))).await?;
    show.say("both rolls are over: every pod is Ready");
    let mut after = Vec::new();
    for specimen in both {
        let members = settled(cluster, specimen).await?;
        table(specimen, &members);
        after.push(members);
    }
    show.say("what preflight says now:");
    for specimen in both {
        preflight(cluster, specimen).await?;
    }
    judge(&after)
}

/// The old version survived, and the new one did not.
fn judge(after: &[Vec<Member>]) -> Result<()> {
    let [old, new] = after else {
        return Err(Error::Malformed("two clusters".to_owned()));
    };
    expect(clusters(old) == 1, format!("{} to be one cluster, got {}", OLD.version, clusters(old)))?;
    expect(old.iter().all(|m| m.queue), format!("the queue of {} to be there", OLD.version))?;
    expect(clusters(new) > 1, format!("{} to be several clusters, got {}", NEW.version, clusters(new)))?;
    expect(new.iter().all(|m| !m.queue), format!("the queue of {} to be gone", NEW.version))
}

/// As many clusters as there are different lists of members.
fn clusters(members: &[Member]) -> usize {
    members.iter().map(|member| &member.lists).collect::<BTreeSet<_>>().len()
}

/// A quorum queue on all members.
async fn declare(cluster: &Cluster, specimen: Specimen) -> Result<()> {
    let pod = format!("{}-0", specimen.name);
    let broker = shop::management(cluster, &pod, &shop::administrator()).await?;
    let queue = json!({"durable": true, "arguments": {"x-queue-type": "quorum"}});
    broker.put_queue("/", QUEUE, &queue).await.map_err(shop::broker("declare the queue"))
}

/// A rolling restart, as an upgrade does it; over when every pod is another one and Ready.
async fn roll(cluster: &Cluster, specimen: Specimen) -> Result<()> {
    let labels = format!("app.kubernetes.io/name={}", specimen.name);
    let before = uids(&cluster.pods(NAMESPACE, &labels).await?);
    let set = format!("statefulset/{}", specimen.name);
    cluster.kubectl(&["-n", NAMESPACE, "rollout", "restart", &set]).await?;
    cluster
        .wait(&format!("the roll of {}", specimen.name), SECONDS, || async {
            let pods = cluster.pods(NAMESPACE, &labels).await?;
            let renewed = pods.iter().filter(|pod| is_ready(pod));
            let renewed: Vec<Pod> = renewed.cloned().collect();
            let renewed = uids(&renewed).difference(&before).count();
            Ok(if renewed == MEMBERS { Ok(()) } else { Err(format!("{renewed} of {MEMBERS} pods")) })
        })
        .await
}

fn uids(pods: &[Pod]) -> BTreeSet<String> {
    pods.iter().filter_map(|pod| pod.metadata.uid.clone()).collect()
}

/// What the members say once all of them answer and say the same twice.
async fn settled(cluster: &Cluster, specimen: Specimen) -> Result<Vec<Member>> {
    let last = std::sync::Mutex::new(None);
    cluster
        .wait(&format!("the members of {} to settle", specimen.name), 60, || async {
            let members = match look(cluster, specimen).await {
                Ok(members) => members,
                Err(error) => return Ok(Err(crate::error::chain(&error))),
            };
            let said = said(&members);
            tokio::time::sleep(std::time::Duration::from_secs(3)).await;
            let Ok(again) = look(cluster, specimen).await else {
                return Ok(Err("a member does not answer".to_owned()));
            };
            let same = self::said(&again) == said;
            if let Ok(mut last) = last.lock() {
                *last = Some(again);
            }
            Ok(if same { Ok(()) } else { Err(said) })
        })
        .await?;
    let found = last.into_inner().ok().flatten();
    found.ok_or_else(|| Error::Malformed(format!("the members of {}", specimen.name)))
}

async fn look(cluster: &Cluster, specimen: Specimen) -> Result<Vec<Member>> {
    let mut members = Vec::new();
    for number in 0..MEMBERS {
        let pod = format!("{}-{number}", specimen.name);
        let broker = shop::management(cluster, &pod, &shop::administrator()).await?;
        let nodes = broker.nodes().await.map_err(shop::broker("list members"))?;
        let queues = broker.queues_totals().await.map_err(shop::broker("list queues"))?;
        members.push(Member {
            lists: nodes.iter().filter(|node| node.running).map(|node| short(&node.name)).collect(),
            queue: queues.iter().any(|queue| queue.name == QUEUE),
            pod,
        });
    }
    Ok(members)
}

/// `rabbit@new-0.new-headless...` as people say it.
fn short(node: &str) -> String {
    let host = node.split_once('@').map_or(node, |(_, host)| host);
    host.split('.').next().unwrap_or(host).to_owned()
}

fn said(members: &[Member]) -> String {
    let line = |member: &Member| format!("{} lists {:?}, queue {}", member.pod, member.lists, member.queue);
    members.iter().map(line).collect::<Vec<_>>().join("; ")
}

fn table(specimen: Specimen, members: &[Member]) {
    let count = clusters(members);
    let word = if count == 1 { "cluster" } else { "clusters" };
    println!("\n  RabbitMQ {}: {count} {word}", specimen.version);
    println!("  {:<8} {:<8} {:<28} quorum queue {QUEUE}", "pod", "state", "lists as running");
    for member in members {
        let lists: Vec<&str> = member.lists.iter().map(String::as_str).collect();
        let queue = if member.queue { "there" } else { "GONE" };
        println!("  {:<8} {:<8} {:<28} {queue}", member.pod, "Ready", lists.join(", "));
    }
    println!();
}

/// Lets the operator check this cluster, and prints what it finds about how blue keeps its data and whether it
/// is one cluster. `mode: Check` changes nothing.
async fn preflight(cluster: &Cluster, specimen: Specimen) -> Result<()> {
    let name = specimen.name;
    let secret = json!({"name": name, "passwordKey": "rabbitmq-password", "username": "user"});
    let storage = json!({"className": "zonal", "size": "1Gi"});
    let template = json!({"image": "registry.local/rabbitmq:4.0.5", "storage": storage});
    let object = json!({
        "apiVersion": "rabbitmq-migration.io/v1alpha1", "kind": "RabbitMQMigration",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "mode": "Check",
            "blue": {"statefulSetName": name, "serviceName": format!("{name}-headless"),
                     "credentialsSecret": secret},
            "green": {"template": template},
            "services": [{"name": name}],
        },
    });
    cluster.apply(&object.to_string()).await?;
    let migration = Migration::new(cluster, name);
    let about_blue = ["blue-storage", "blue-one-cluster"];
    let status = migration
        .wait_until("preflight's verdict", 60, &mut |_| {}, &|status| {
            status.findings.iter().any(|finding| about_blue.contains(&finding.check.as_str()))
        })
        .await?;
    println!("  {name} ({}):", specimen.version);
    for finding in status.findings.iter().filter(|f| about_blue.contains(&f.check.as_str())) {
        println!("    {} {}: {}", finding.severity, finding.check, finding.evidence);
        println!("      -> {}", finding.remedy);
    }
    migration.delete().await
}

#[cfg(test)]
mod tests {
    use super::{Member, clusters, short};

    #[test]
    fn members_that_list_each_other_are_one_cluster() {
        let member = |pod: &str, lists: &[&str]| Member {
            pod: pod.to_owned(),
            lists: lists.iter().map(|name| (*name).to_owned()).collect(),
            queue: true,
        };
        let all = ["a", "b", "c"];
        assert_eq!(clusters(&[member("a", &all), member("b", &all), member("c", &all)]), 1);
        let split = [member("a", &["a", "c"]), member("b", &["b"]), member("c", &["a", "c"])];
        assert_eq!(clusters(&split), 2);
        assert_eq!(short("rabbit@new-0.new-headless.messaging.svc.cluster.local"), "new-0");
    }
}
