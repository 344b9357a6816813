//! The toy's facts: what a limit of 0, a close and a passive declare really do.

use std::time::Duration;

use futures::StreamExt;
use lapin::options::{BasicConsumeOptions, BasicGetOptions, BasicQosOptions};
use lapin::types::FieldTable;
use rabbit::amqp::{Depth, Probe, handshake};
use rabbit::management::Closed;
use rabbit::{Cause, Kind};

use crate::world::{LIMIT, World, publish, until};

/// Time enough for statistics: 4 s by SWITCH.md §9, with a margin for a busy machine.
const STATISTICS: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_limit_of_zero_refuses_new_connections_and_open_ones_stay() {
    let Some(world) = World::enter("fence").await else { return };
    world.queue("q", "classic").await;
    let open = world.session().await.unwrap();
    world.admin.set_user_max_connections(&world.user.username, 0).await.unwrap();

    let refused = world.session().await.unwrap_err();
    assert_eq!(refused.kind(), Kind::Refused, "{}", refused.report());
    assert!(matches!(refused.cause(), Cause::Amqp { code: 530, .. }), "{}", refused.report());
    assert!(open.is_open());
    assert_eq!(open.depth("q").await.unwrap(), Depth { ready: 0, consumers: 0 });
    // The handshake needs no login: it passes the fence.
    handshake(&world.amqp, LIMIT).await.unwrap();
    let limits = world.admin.user_limits().await.unwrap();
    let ours = limits.iter().find(|l| l.name == world.user.username).unwrap();
    assert_eq!(ours.max_connections(), Some(0));

    for _ in 0..2 {
        world.admin.clear_user_max_connections(&world.user.username).await.unwrap();
    }
    world.session().await.unwrap().close().await;
    assert!(open.is_open());
    world.leave().await;
}

#[tokio::test]
async fn a_close_by_user_ends_connections_of_any_age() {
    let Some(world) = World::enter("close-user").await else { return };
    for age in [0, 1500] {
        let session = world.session().await.unwrap();
        tokio::time::sleep(Duration::from_millis(age)).await;
        let mut calls = 0;
        let took = until("closed", LIMIT, async || {
            calls += 1;
            world.admin.close_user_connections(&world.user.username, "contract").await.unwrap();
            !session.is_open()
        })
        .await;
        until("absent", LIMIT, async || world.open_connections().await.is_empty()).await;
        println!("close by user at {age} ms: closed after {took:?} and {calls} calls");
        let error = session.depth("q").await.unwrap_err();
        assert_eq!(error.kind(), Kind::Unreachable, "{}", error.report());
    }
    world.admin.close_user_connections("contract-nobody", "contract").await.unwrap();
    world.leave().await;
}

#[tokio::test]
async fn a_close_by_name_works_once_statistics_know_it() {
    let Some(world) = World::enter("close-name").await else { return };
    let session = world.session().await.unwrap();
    until("listed", LIMIT, async || world.open_connections().await.len() == 1).await;
    let [name] = world.open_connections().await.try_into().unwrap();
    let took = until("known", STATISTICS, async || {
        let answer =
            world.admin.close_connection(&name, "contract: moving, d\u{e9}j\u{e0} vu").await.unwrap();
        if answer == Closed::NotKnownYet {
            assert!(session.is_open(), "404 leaves it open");
        }
        answer == Closed::Asked
    })
    .await;
    until("closed", LIMIT, async || !session.is_open()).await;
    println!("close by name: known after {took:?}");
    assert_eq!(world.admin.close_connection("10.0.0.1:1 -> x", "").await.unwrap(), Closed::NotKnownYet);
    world.leave().await;
}

#[tokio::test]
async fn a_close_makes_unacked_ready_and_a_passive_declare_counts_ready_only() {
    let Some(world) = World::enter("unacked").await else { return };
    let watcher = world.session().await.unwrap();
    for kind in ["classic", "quorum"] {
        world.queue(kind, kind).await;
        let (connection, channel) = world.application().await;
        publish(&channel, kind, 5).await;
        assert_eq!(watcher.depth(kind).await.unwrap(), Depth { ready: 5, consumers: 0 });
        channel.basic_qos(3, BasicQosOptions::default()).await.unwrap();
        let consume = BasicConsumeOptions::default();
        let mut consumer =
            channel.basic_consume(kind.into(), "".into(), consume, FieldTable::default()).await.unwrap();
        for _ in 0..3 {
            consumer.next().await.unwrap().unwrap();
        }
        assert_eq!(watcher.depth(kind).await.unwrap(), Depth { ready: 2, consumers: 1 }, "{kind}");

        connection.close(200, "bye".into()).await.unwrap();
        let took = until("ready again", LIMIT, async || watcher.depth(kind).await.unwrap().ready == 5).await;
        println!("{kind}: unacked ready again {took:?} after the close");
        assert_eq!(watcher.depth(kind).await.unwrap().consumers, 0);
    }
    world.leave().await;
}

#[tokio::test]
async fn a_missing_queue_is_not_found_and_costs_only_its_channel() {
    let Some(world) = World::enter("depths").await else { return };
    let hostile = "a/b?c#%2F d\u{e9}*..";
    world.queue(hostile, "classic").await;
    let session = world.session().await.unwrap();
    let names: Vec<String> =
        (0..40).map(|n| if n % 2 == 0 { hostile.to_owned() } else { format!("absent {n}") }).collect();
    let start = std::time::Instant::now();
    for (n, depth) in session.depths(&names).await.into_iter().enumerate() {
        match depth {
            Ok(depth) => assert_eq!((n % 2, depth), (0, Depth { ready: 0, consumers: 0 })),
            Err(error) => assert_eq!((n % 2, error.kind()), (1, Kind::NotFound), "{}", error.report()),
        }
    }
    println!("40 depths, half of them absent: {:?}", start.elapsed());
    let present = vec![hostile.to_owned(); 1000];
    let start = std::time::Instant::now();
    assert!(session.depths(&present).await.iter().all(Result::is_ok));
    println!("1000 depths: {:?}", start.elapsed());
    assert!(session.is_open());
    let long = session.depth(&"q".repeat(256)).await.unwrap_err();
    assert_eq!(long.kind(), Kind::Refused);
    world.leave().await;
}

#[tokio::test]
async fn basic_get_tells_empty_from_ready_and_gives_the_message_back() {
    let Some(world) = World::enter("get").await else { return };
    let session = world.session().await.unwrap();
    let (_connection, channel) = world.application().await;
    for kind in ["classic", "quorum"] {
        world.queue(kind, kind).await;
        assert_eq!(session.get_probe_empty(kind).await.unwrap(), Probe::Empty);
        publish(&channel, kind, 2).await;
        assert_eq!(session.get_probe_empty(kind).await.unwrap(), Probe::Message { behind: 1 });
        until("given back", LIMIT, async || session.depth(kind).await.unwrap().ready == 2).await;
        let first = channel.basic_get(kind.into(), BasicGetOptions { no_ack: true }).await.unwrap().unwrap();
        let id = first.properties.message_id().as_ref().map(ToString::to_string);
        assert_eq!((id.as_deref(), first.redelivered), (Some("0"), true), "{kind}: in its place");
    }
    assert_eq!(session.get_probe_empty("absent").await.unwrap_err().kind(), Kind::NotFound);
    world.leave().await;
}

#[tokio::test]
async fn the_handshake_says_who_it_is_without_credentials() {
    let Some(world) = World::enter("handshake").await else { return };
    let identity = handshake(&world.amqp, LIMIT).await.unwrap();
    let overview = world.admin.overview().await.unwrap();
    assert_eq!(identity.cluster_name.as_deref(), Some(overview.cluster_name.as_str()));
    assert_eq!(identity.version.as_deref(), Some(overview.rabbitmq_version.as_str()));
    assert_eq!(identity.product.as_deref(), Some("RabbitMQ"));
    assert!(identity.mechanisms.contains("PLAIN"));
    // The management port is no AMQP port.
    let http = world.admin.base_url().trim_start_matches("http://").to_owned();
    assert!(handshake(&http, LIMIT).await.is_err());
    world.leave().await;
}

#[tokio::test]
async fn wrong_passwords_and_vhosts_are_told_apart() {
    let Some(world) = World::enter("login").await else { return };
    let wrong = rabbit::Credentials::new(world.user.username.clone(), "PLANTED-wrong");
    let login = rabbit::amqp::Session::connect(&world.amqp, &world.vhost, &wrong, "contract", LIMIT);
    let error = login.await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unauthorized, "{}", error.report());
    assert!(!error.report().contains("PLANTED"));
    let elsewhere = rabbit::amqp::Session::connect(&world.amqp, "nowhere", &world.user, "contract", LIMIT);
    let error = elsewhere.await.unwrap_err();
    assert_eq!(error.kind(), Kind::Refused, "{}", error.report());
    let url = world.admin.base_url();
    let stranger = rabbit::management::Client::new(url, wrong, rabbit::Timeouts::default()).unwrap();
    assert_eq!(stranger.whoami().await.unwrap_err().kind(), Kind::Unauthorized);
    world.leave().await;
}
