//! The small shop and its blue broker: installed, watched, stopped and audited.

use crate::cluster::{Cluster, NAMESPACE, ip, is_ready};
use crate::error::{Error, Result};
use crate::ledger::{Report, check};
use client::document::{Document, QueueId, Stats};
use rabbit::management::Client as Management;
use rabbit::{Credentials, Timeouts};
use std::collections::BTreeMap;
use std::time::Duration;

/// The manifests.
pub mod manifests {
    /// Blue, as an old Helm release leaves it.
    pub const BLUE: &str = include_str!("../manifests/blue.yaml");
    /// Vhosts, users, exchanges, queues and policies.
    pub const DEFINITIONS: &str = include_str!("../manifests/shop-definitions.json");
    /// Publishers and consumers.
    pub const SHOP: &str = include_str!("../manifests/shop.yaml");
    /// The migration of the demo.
    pub const MIGRATION: &str = include_str!("../manifests/migration.yaml");
}

/// Labels of all the shop's pods.
const SHOP: &str = "app.kubernetes.io/part-of=shop";
/// Labels of its publishers.
const PUBLISHERS: &str = "app.kubernetes.io/part-of=shop,shop/role=publisher";
/// Blue's administrator, as the manifests have it.
const ADMINISTRATOR: (&str, &str) = ("user", "blue-admin-pass");
/// The rate of all publishers together, messages per second.
pub const RATE: u64 = 550;

/// Installs blue and waits until its members are one cluster with the shop's definitions.
pub async fn install_blue(cluster: &Cluster) -> Result<()> {
    cluster.apply(manifests::BLUE).await?;
    wait_for_members(cluster, "rabbitmq", 3).await?;
    let management = management(cluster, "rabbitmq-0", &administrator()).await?;
    let imported = management.import_definitions(manifests::DEFINITIONS.as_bytes()).await;
    imported.map_err(broker("import the shop's definitions"))
}

/// Blue's administrator.
pub fn administrator() -> Credentials {
    Credentials::new(ADMINISTRATOR.0, ADMINISTRATOR.1)
}

/// Green's administrator, from the Secret that the operator made.
pub async fn green_administrator(cluster: &Cluster, green: &str) -> Result<Credentials> {
    use k8s_openapi::api::core::v1::Secret;
    let secrets: kube::Api<Secret> = kube::Api::namespaced(cluster.client.clone(), NAMESPACE);
    let name = format!("{green}-credentials");
    let secret = secrets.get(&name).await.map_err(|source| Error::Kubernetes {
        attempt: format!("get secret {name}"),
        source: Box::new(source),
    })?;
    let key = |key: &str| {
        let bytes = secret.data.as_ref().and_then(|d| d.get(key)).map(|b| b.0.clone()).unwrap_or_default();
        String::from_utf8(bytes)
            .map_err(|_| Error::Malformed(format!("key {key} of secret {name} is no text")))
    };
    Ok(Credentials::new(key("username")?, key("password")?))
}

/// Waits until all pods of a StatefulSet are ready and list each other.
pub async fn wait_for_members(cluster: &Cluster, set: &str, members: usize) -> Result<()> {
    let administrator = administrator();
    cluster
        .wait(&format!("{members} members of {set}"), 180, || async {
            let first = match management(cluster, &format!("{set}-0"), &administrator).await {
                Ok(first) => first,
                Err(error) => return Ok(Err(error.to_string())),
            };
            Ok(match first.nodes().await {
                Ok(nodes) if nodes.iter().filter(|n| n.running).count() == members => Ok(()),
                Ok(nodes) => Err(format!("{} members", nodes.len())),
                Err(error) => Err(error.to_string()),
            })
        })
        .await
}

/// The management API of one pod.
pub async fn management(cluster: &Cluster, pod: &str, credentials: &Credentials) -> Result<Management> {
    let pods: kube::Api<k8s_openapi::api::core::v1::Pod> =
        kube::Api::namespaced(cluster.client.clone(), NAMESPACE);
    let found = pods.get(pod).await.map_err(|source| Error::Kubernetes {
        attempt: format!("get pod {pod}"),
        source: Box::new(source),
    })?;
    let ip = ip(&found).ok_or_else(|| Error::Malformed(format!("pod {pod} has no address yet")))?;
    Management::new(&format!("http://{ip}:15672"), credentials.clone(), Timeouts::default())
        .map_err(broker("make a management client"))
}

/// Names a failed broker call.
pub fn broker(attempt: &str) -> impl FnOnce(rabbit::Error) -> Error {
    let attempt = attempt.to_owned();
    move |source| Error::Broker { attempt, source: Box::new(source) }
}

/// Starts publishers and consumers and waits until they reach their rate.
pub async fn open(cluster: &Cluster) -> Result<()> {
    cluster.apply(manifests::SHOP).await?;
    cluster
        .wait("the shop's clients", 120, || async {
            let pods = cluster.pods(NAMESPACE, SHOP).await?;
            let ready = pods.iter().filter(|pod| is_ready(pod)).count();
            Ok(if !pods.is_empty() && ready == pods.len() {
                Ok(())
            } else {
                Err(format!("{ready} of {} ready", pods.len()))
            })
        })
        .await?;
    cluster
        .wait(&format!("a load of about {RATE} msg/s"), 60, || async {
            let before = confirmed(cluster).await?;
            tokio::time::sleep(Duration::from_secs(3)).await;
            let rate = (confirmed(cluster).await? - before) / 3;
            Ok(if rate * 10 >= RATE * 8 { Ok(()) } else { Err(format!("{rate} msg/s")) })
        })
        .await
}

/// Messages confirmed so far.
pub async fn confirmed(cluster: &Cluster) -> Result<u64> {
    Ok(stats(cluster).await?.iter().map(|s| s.confirmed).sum())
}

/// What all clients say of themselves.
pub async fn stats(cluster: &Cluster) -> Result<Vec<Stats>> {
    ask(cluster, SHOP, "stats").await
}

async fn ask<T: serde::de::DeserializeOwned>(cluster: &Cluster, labels: &str, path: &str) -> Result<Vec<T>> {
    let mut answers = Vec::new();
    for pod in cluster.pods(NAMESPACE, labels).await? {
        let Some(ip) = ip(&pod) else { continue };
        let attempt = format!("GET {path} of {}", pod.metadata.name.as_deref().unwrap_or_default());
        let failed = |source| Error::Http { attempt: attempt.clone(), source };
        let answer = cluster.http.get(format!("http://{ip}:8080/{path}")).send().await.map_err(failed)?;
        let failed = |source| Error::Http { attempt: attempt.clone(), source };
        answers.push(answer.json().await.map_err(failed)?);
    }
    Ok(answers)
}

/// Gaps count from now on.
pub async fn reset_gaps(cluster: &Cluster) -> Result<()> {
    post(cluster, SHOP, "reset-gaps").await
}

async fn post(cluster: &Cluster, labels: &str, path: &str) -> Result<()> {
    let calls = cluster.pods(NAMESPACE, labels).await?.into_iter().filter_map(|pod| {
        let ip = ip(&pod)?;
        let name = pod.metadata.name.unwrap_or_default();
        Some(async move {
            let attempt = format!("POST {path} to {name}");
            let failed = |source| Error::Http { attempt: attempt.clone(), source };
            let answer =
                cluster.http.post(format!("http://{ip}:8080/{path}")).send().await.map_err(failed)?;
            let failed = |source| Error::Http { attempt: attempt.clone(), source };
            answer.error_for_status().map(|_| ()).map_err(failed)
        })
    });
    futures::future::try_join_all(calls).await.map(|_| ())
}

/// Everything that a run is judged by, kept so that it can be judged again.
#[derive(Debug, serde::Serialize)]
pub struct Evidence {
    /// The ledgers of all clients.
    pub documents: Vec<Document>,
    /// What was left in each queue, on both sides together.
    pub remaining: Vec<(QueueId, u64)>,
}

/// Stops the publishers, lets the consumers finish on the side that serves, and checks every ledger. What is
/// still in a queue counts by its depth.
pub async fn audit(cluster: &Cluster, serving: &[(String, Credentials)]) -> Result<Report> {
    let evidence = close(cluster, serving).await?;
    Ok(check(&evidence.documents, &evidence.remaining.into_iter().collect()))
}

/// Stops the publishers, lets the consumers finish, and takes every ledger.
pub async fn close(cluster: &Cluster, serving: &[(String, Credentials)]) -> Result<Evidence> {
    post(cluster, PUBLISHERS, "stop?timeout_ms=60000").await?;
    let mut remaining: BTreeMap<QueueId, u64> = BTreeMap::new();
    for (pod, credentials) in serving {
        let side = management(cluster, pod, credentials).await?;
        for (queue, left) in settled(cluster, &side, pod).await? {
            *remaining.entry(queue).or_default() += left;
        }
    }
    Ok(Evidence {
        documents: ask(cluster, SHOP, "ledger").await?,
        remaining: remaining.into_iter().collect(),
    })
}

/// The depths of the shop's queues once consumers have finished: only dead letters may be left.
async fn settled(cluster: &Cluster, side: &Management, pod: &str) -> Result<BTreeMap<QueueId, u64>> {
    let last = std::sync::Mutex::new(BTreeMap::new());
    cluster
        .wait(&format!("the end of the queues on {pod}"), 60, || async {
            let queues = side.queues_totals().await.map_err(broker("list queues"))?;
            let mut depths = BTreeMap::new();
            let mut busy = Vec::new();
            for queue in
                queues.iter().filter(|q| !q.name.starts_with("rmqm.") && !q.vhost.starts_with("rmqm."))
            {
                let Some(messages) = queue.messages else {
                    busy.push(format!("{} unknown", queue.name));
                    continue;
                };
                if messages > 0 && queue.name.rsplit('.').next() != Some("dead") {
                    busy.push(format!("{} {messages}", queue.name));
                }
                depths.insert(QueueId::new(queue.vhost.clone(), queue.name.clone()), messages);
            }
            // Totals of quorum queues lag by up to five seconds: two listings must agree.
            let before = last.lock().map(|mut last| std::mem::replace(&mut *last, depths.clone()));
            let same = before.is_ok_and(|before| before == depths);
            if busy.is_empty() && same {
                return Ok(Ok(()));
            }
            tokio::time::sleep(Duration::from_secs(5)).await;
            Ok(Err(busy.join(", ")))
        })
        .await?;
    last.into_inner().map_err(|_| Error::Malformed("a poisoned lock".to_owned()))
}
