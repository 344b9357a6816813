//! Members, versions, alarms and flags, as every pod tells them.

use crate::body::{Memory, Scene};
use crate::broker_link::BrokerLink;
use decide::side::Side;
use decide::world::{BrokerView, PodView, Reading};
use rabbit::management::{FeatureFlag, Node, Overview};
use std::time::Duration;

/// How long one pod may take to answer.
const POD: Duration = Duration::from_secs(3);

/// The flag without which users cannot be limited.
const USER_LIMITS: &str = "user_limits";

/// Asks every pod at once: lists that differ mean more than one cluster. A pod that does not answer is silent,
/// not a failure.
pub async fn broker(_scene: &Scene<'_>, memory: &mut Memory, side: Side) -> Reading<BrokerView> {
    let link = memory.link(side);
    if link.pods().is_empty() {
        return Reading::Failed(format!("no pod of {side} is known"));
    }
    if !link.has_admin() {
        return Reading::Failed(format!("no credentials for {side} yet"));
    }
    let asked = link.pods().iter().map(|pod| async { (pod.name.clone(), ask(link, pod).await) });
    let (answers, flags) = futures::join!(futures::future::join_all(asked), flags(link));
    let mut view = BrokerView::default();
    let mut strain = None;
    let mut exchange_types = None;
    for (pod, answer) in answers {
        match answer {
            Ok((overview, nodes)) => {
                strain = strain.or_else(|| nodes.iter().find_map(near_alarm));
                add(&mut view, pod, &overview, &nodes);
                exchange_types = Some(overview.exchange_types);
            }
            Err(why) => {
                view.silent.insert(pod, why);
            }
        }
    }
    if let Some(flags) = flags {
        view.user_limits = flags.iter().find(|flag| flag.name == USER_LIMITS).map(FeatureFlag::is_enabled);
        view.flags_off = flags.into_iter().filter(FeatureFlag::is_missing).map(|flag| flag.name).collect();
    }
    view.alarms.sort();
    view.alarms.dedup();
    let link = memory.link(side);
    link.strain = strain;
    if exchange_types.is_some() {
        link.exchange_types = exchange_types;
    }
    Reading::Seen(view)
}

async fn ask(link: &BrokerLink, pod: &PodView) -> Result<(Overview, Vec<Node>), String> {
    let client = link.client_for(pod).map_err(|error| error.report())?;
    let both = async { futures::join!(client.overview(), client.nodes()) };
    match tokio::time::timeout(POD, both).await {
        Ok((overview, nodes)) => {
            Ok((overview.map_err(|error| error.report())?, nodes.map_err(|error| error.report())?))
        }
        Err(_) => Err(format!("no answer within {} s", POD.as_secs())),
    }
}

/// The feature flags, from one pod: they are the cluster's.
async fn flags(link: &BrokerLink) -> Option<Vec<FeatureFlag>> {
    let asked = link.ask(|client| async move { client.feature_flags().await });
    tokio::time::timeout(POD, asked).await.ok()?.ok()
}

fn add(view: &mut BrokerView, pod: String, overview: &Overview, nodes: &[Node]) {
    view.versions.insert(overview.rabbitmq_version.clone());
    view.erlang.insert(overview.erlang_version.clone());
    view.cluster_names.insert(pod.clone(), overview.cluster_name.clone());
    let names = |nodes: &mut dyn Iterator<Item = &Node>| nodes.map(|node| node.name.clone()).collect();
    view.running.insert(pod.clone(), names(&mut nodes.iter().filter(|node| node.running)));
    view.members.insert(pod, names(&mut nodes.iter()));
    for node in nodes {
        view.plugins.extend(node.enabled_plugins.iter().flatten().cloned());
        let partitioned = node.partitions.as_ref().is_some_and(|others| !others.is_empty());
        let alarms = [
            (node.mem_alarm == Some(true), "memory"),
            (node.disk_free_alarm == Some(true), "disk"),
            (partitioned, "network partition"),
        ];
        let on = alarms.into_iter().filter(|(on, _)| *on);
        view.alarms.extend(on.map(|(_, alarm)| format!("{alarm} on {}", node.name)));
    }
}

/// Why the probe must rest: memory at 80 % of the watermark, or free disk below twice the limit.
fn near_alarm(node: &Node) -> Option<String> {
    let near = |used: Option<u64>, limit: Option<u64>, test: fn(u128, u128) -> bool| {
        used.zip(limit).is_some_and(|(used, limit)| limit > 0 && test(used.into(), limit.into()))
    };
    if near(node.mem_used, node.mem_limit, |used, limit| used * 5 >= limit * 4) {
        return Some(format!("memory of {} is at 80 % of its watermark", node.name));
    }
    near(node.disk_free, node.disk_free_limit, |free, limit| free < limit * 2)
        .then(|| format!("free disk of {} is below twice its limit", node.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(text: &str) -> Node {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn strain_comes_before_the_alarm_and_unknown_is_none() {
        let near = |text| near_alarm(&node(text));
        assert!(near(r#"{"name":"a","running":true,"mem_used":80,"mem_limit":100}"#).is_some());
        assert!(near(r#"{"name":"a","running":true,"mem_used":79,"mem_limit":100}"#).is_none());
        assert!(near(r#"{"name":"a","running":true,"disk_free":199,"disk_free_limit":100}"#).is_some());
        assert!(near(r#"{"name":"a","running":false}"#).is_none());
    }
}
