//! Every listing of a real broker parses, and says what it should.

use std::time::Duration;

use futures::StreamExt;
use lapin::options::BasicConsumeOptions;
use lapin::types::FieldTable;
use rabbit::amqp::Session;
use rabbit::management::{Binding, Policy};
use rabbit::{Kind, Timeouts, metrics};
use serde_json::{Map, json};

use crate::world::{LIMIT, World, publish, until};

#[tokio::test]
async fn the_broker_describes_itself() {
    let Some(world) = World::enter("self").await else { return };
    let admin = &world.admin;
    let overview = admin.overview().await.unwrap();
    assert_eq!(overview.statistics_enabled(), Some(true));
    assert!(overview.exchange_types.iter().any(|t| t == "topic"));
    assert!(overview.listeners.iter().any(|l| l.protocol == "amqp"));
    assert_eq!(overview.cluster_name, admin.cluster_name().await.unwrap());
    let nodes = admin.nodes().await.unwrap();
    assert!(nodes.iter().all(|n| n.running && n.mem_used.is_some_and(|used| used > 0)), "{nodes:?}");
    assert!(nodes.iter().all(|n| n.mem_alarm == Some(false) && n.disk_free_alarm == Some(false)));
    assert!(nodes[0].enabled_plugins.as_ref().unwrap().iter().any(|p| p == "rabbitmq_management"));
    let members = admin.members().await.unwrap();
    assert!(members.all.contains(&overview.node) && members.all == members.running);
    assert!(admin.check_alarms().await.unwrap().ok);
    println!("quorum critical: {:?}", admin.check_quorum_critical().await.unwrap());
    let flags = admin.feature_flags().await.unwrap();
    assert!(flags.iter().any(|f| f.name == "quorum_queue" || f.name == "user_limits"));
    println!("flags enabled: {:?}", admin.enable_stable_feature_flags().await.unwrap());
    println!("deprecated in use: {:?}", admin.deprecated_features_used().await.unwrap());
    assert_eq!(admin.whoami().await.unwrap().name, admin.username());
    admin.set_cluster_name(&overview.cluster_name).await.unwrap();
    admin.rebalance_leaders().await.unwrap();
    assert!(admin.vhosts().await.unwrap().iter().any(|v| v.name == world.vhost));
    let mut vhost = admin.vhost(&world.vhost).await.unwrap().unwrap();
    assert_eq!(admin.start_vhost(&vhost).await.unwrap(), 0, "{:?}", vhost.cluster_state);
    // Starting one that runs is accepted: between look and call it may have come.
    let nodes = vhost.cluster_state.len();
    vhost.cluster_state.values_mut().for_each(|state| "stopped".clone_into(state));
    assert_eq!(admin.start_vhost(&vhost).await.unwrap(), nodes);
    assert_eq!(admin.vhost("no such vhost").await.unwrap(), None);
    assert!(admin.permissions().await.unwrap().iter().any(|p| p.vhost == world.vhost));
    world.leave().await;
}

#[tokio::test]
async fn connections_channels_and_consumers_show_roles() {
    let Some(world) = World::enter("roles").await else { return };
    world.queue("q", "classic").await;
    let (_connection, channel) = world.application().await;
    let consume = BasicConsumeOptions { no_ack: true, ..BasicConsumeOptions::default() };
    let mut consumer =
        channel.basic_consume("q".into(), "tag".into(), consume, FieldTable::default()).await.unwrap();
    let session = Session::connect(&world.amqp, &world.vhost, &world.user, "watcher", LIMIT).await.unwrap();
    let live = until("live", LIMIT, async || world.open_connections().await.len() == 2).await;
    println!("two connections listed live after {live:?}");
    let statistics = Duration::from_secs(12);
    let mine = |user: &Option<String>| user.as_deref() == Some(&world.user.username);
    let took = until("publisher seen", statistics, async || {
        publish(&channel, "q", 1).await;
        consumer.next().await.unwrap().unwrap();
        let channels = world.admin.channels().await.unwrap();
        channels.iter().any(|c| {
            mine(&c.user)
                && c.consumers == Some(1)
                && c.confirms == Some(true)
                && c.message_stats.as_ref().is_some_and(|s| s.count("publish").is_some())
        })
    })
    .await;
    println!("publisher and consumer seen in channel statistics after {took:?}");
    let connections = world.admin.connections().await.unwrap();
    let ours: Vec<_> = connections.into_iter().filter(|c| mine(&c.user)).collect();
    let watcher = ours.iter().find(|c| c.user_provided_name.as_deref() == Some("watcher")).unwrap();
    assert_eq!(watcher.product.as_deref(), Some("lapin"));
    assert!(watcher.connected_at.is_some() && watcher.peer_host.is_some(), "{watcher:?}");
    assert_eq!(watcher.protocol.as_deref(), Some("AMQP 0-9-1"));
    let consumers = world.admin.consumers_in(&world.vhost).await.unwrap();
    assert_eq!((consumers[0].queue.as_str(), consumers[0].tag.as_str()), ("q", "tag"));
    assert_eq!(consumers[0].ack_required, Some(false));
    assert!(world.admin.consumers().await.unwrap().iter().any(|c| c.vhost == world.vhost));
    session.close().await;
    world.leave().await;
}

#[tokio::test]
async fn totals_of_classic_queues_are_live_and_statistics_follow() {
    let Some(world) = World::enter("totals").await else { return };
    world.queue("q", "classic").await;
    world.queue("r", "quorum").await;
    let (_connection, channel) = world.application().await;
    publish(&channel, "q", 3).await;
    publish(&channel, "r", 4).await;
    for (queue, count) in [("q", 3), ("r", 4)] {
        let took = until("total", Duration::from_secs(12), async || {
            let totals = world.admin.queues_totals().await.unwrap();
            let row = totals.iter().find(|q| q.vhost == world.vhost && q.name == queue).unwrap();
            assert!(row.located_at().is_some() && row.durable == Some(true), "{row:?}");
            row.messages_ready == Some(count)
                && row.messages == Some(count)
                && row.messages_unacked == Some(0)
        })
        .await;
        println!("{queue}: totals true after {took:?}");
        let took = until("statistics", Duration::from_secs(15), async || {
            let rows = world.admin.queues_stats().await.unwrap();
            let row = rows.iter().find(|q| q.queue.vhost == world.vhost && q.queue.name == queue).unwrap();
            row.queue.messages_ready == Some(count) && row.message_stats.count("publish") == Some(count)
        })
        .await;
        println!("{queue}: statistics true after {took:?}");
    }
    world.leave().await;
}

#[tokio::test]
async fn topology_and_policies_are_made_and_listed() {
    let Some(world) = World::enter("topology").await else { return };
    let (admin, vhost) = (&world.admin, &world.vhost);
    world.queue("q/1", "classic").await;
    let body = json!({ "type": "topic", "durable": true });
    admin.put_exchange(vhost, "e?x", &body).await.unwrap();
    let binding = Binding {
        vhost: vhost.clone(),
        source: "e?x".into(),
        destination: "q/1".into(),
        destination_type: "queue".into(),
        routing_key: "a.#".into(),
        arguments: Map::new(),
    };
    for _ in 0..2 {
        admin.put_binding(&binding).await.unwrap();
    }
    assert!(admin.bindings_in(vhost).await.unwrap().contains(&binding));
    assert!(admin.bindings().await.unwrap().contains(&binding));
    assert!(admin.exchanges().await.unwrap().iter().any(|e| e.vhost == *vhost && e.name == "e?x"));
    let definition = json!({ "max-length": 10 }).as_object().unwrap().clone();
    let policy = Policy {
        vhost: vhost.clone(),
        name: "cap".into(),
        pattern: ".*".into(),
        apply_to: "queues".into(),
        priority: 2,
        definition,
    };
    admin.put_policy(&policy).await.unwrap();
    admin.put_operator_policy(&policy).await.unwrap();
    assert!(admin.policies().await.unwrap().contains(&policy));
    assert!(admin.operator_policies().await.unwrap().contains(&policy));
    assert!(admin.parameters().await.unwrap().iter().all(|p| p.component != "policy"));
    for _ in 0..2 {
        admin.delete_policy(vhost, "cap").await.unwrap();
        admin.delete_operator_policy(vhost, "cap").await.unwrap();
        admin.delete_exchange(vhost, "e?x").await.unwrap();
        admin.delete_unused_queue(vhost, "q/1").await.unwrap();
    }
    let conflict = admin.put_exchange(vhost, "amq.topic", &json!({ "type": "direct" })).await.unwrap_err();
    assert_eq!(conflict.kind(), Kind::Conflict, "{}", conflict.report());
    world.leave().await;
}

#[tokio::test]
async fn global_counters_are_live() {
    let Some(world) = World::enter("metrics").await else { return };
    let Ok(url) = std::env::var("RABBIT_CONTRACT_METRICS") else {
        println!("skipped metrics: RABBIT_CONTRACT_METRICS names no endpoint");
        return world.leave().await;
    };
    let metrics = metrics::Client::new(&url, Timeouts::default()).unwrap();
    let before = metrics.global_counters().await.unwrap();
    let (_connection, channel) = world.application().await;
    publish(&channel, "absent", 5).await;
    let took = until("counted", LIMIT, async || {
        let now = metrics.global_counters().await.unwrap();
        // Other tests publish too: at least ours.
        now.received >= before.received.map(|n| n + 5)
            && now.unroutable_dropped >= before.unroutable_dropped.map(|n| n + 5)
    })
    .await;
    println!("five unroutable messages counted after {took:?}");
    world.leave().await;
}
