//! Carrying: order, properties, and what a refusal leaves behind. Two vhosts stand for two brokers.

use std::time::Instant;

use futures::StreamExt;
use lapin::options::{BasicConsumeOptions, BasicGetOptions, BasicPublishOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel};
use rabbit::amqp::{CarryEnd, CarryOptions, Depth, Probe, carry};
use rabbit::{Cause, Error, Kind};

use crate::world::{LIMIT, World, publish, until};

async fn two(name: &str) -> Option<(World, World)> {
    Some((World::enter(&format!("{name}-from")).await?, World::enter(&format!("{name}-to")).await?))
}

async fn ids(channel: &Channel, queue: &str) -> Vec<String> {
    let mut ids = Vec::new();
    let no_ack = BasicGetOptions { no_ack: true };
    while let Some(message) = channel.basic_get(queue.into(), no_ack).await.unwrap() {
        ids.push(message.properties.message_id().as_ref().unwrap().to_string());
    }
    ids
}

/// As [`ids`], by a consumer: single active consumer queues refuse basic.get.
async fn consumed(channel: &Channel, queue: &str, count: usize) -> Vec<String> {
    let options = BasicConsumeOptions { no_ack: true, ..BasicConsumeOptions::default() };
    let consume = channel.basic_consume(queue.into(), "".into(), options, FieldTable::default());
    let deliveries = consume.await.unwrap().take(count);
    deliveries.map(|d| d.unwrap().properties.message_id().as_ref().unwrap().to_string()).collect().await
}

#[tokio::test]
async fn a_queue_is_carried_whole_and_in_order() {
    let Some((from, to)) = two("carry").await else { return };
    let (source, target) = (from.session().await.unwrap(), to.session().await.unwrap());
    let (_a, publisher) = from.application().await;
    let (_b, reader) = to.application().await;
    for (kind, count) in [("classic", 2_000), ("quorum", 1_000)] {
        from.queue(kind, kind).await;
        to.queue(kind, kind).await;
        publish(&publisher, kind, count).await;
        let start = Instant::now();
        let carried = carry(&source, &target, kind, CarryOptions::everything_within(LIMIT)).await.unwrap();
        println!("{kind}: {count} carried in {:?}", start.elapsed());
        assert_eq!((carried.moved, carried.end), (u64::from(count), CarryEnd::Empty));
        assert_eq!(source.depth(kind).await.unwrap().ready, 0);
        let expected: Vec<String> = (0..count).map(|n| n.to_string()).collect();
        assert_eq!(ids(&reader, kind).await, expected);
        let again = carry(&source, &target, kind, CarryOptions::everything_within(LIMIT)).await.unwrap();
        assert_eq!((again.moved, again.end), (0, CarryEnd::Empty));
    }
    from.leave().await;
    to.leave().await;
}

#[tokio::test]
async fn a_limit_leaves_the_rest_in_order() {
    let Some((from, to)) = two("limit").await else { return };
    let (source, target) = (from.session().await.unwrap(), to.session().await.unwrap());
    let (_a, application) = from.application().await;
    for kind in ["classic", "quorum"] {
        from.queue(kind, kind).await;
        to.queue(kind, kind).await;
        publish(&application, kind, 50).await;
        let options = CarryOptions { limit: 10, window: 7, ..CarryOptions::everything_within(LIMIT) };
        let carried = carry(&source, &target, kind, options).await.unwrap();
        assert_eq!((carried.moved, carried.end), (10, CarryEnd::Limit));
        until("rest ready", LIMIT, async || source.depth(kind).await.unwrap().ready == 40).await;
        assert_eq!(target.depth(kind).await.unwrap().ready, 10);
        let expected: Vec<String> = (10..50).map(|n| n.to_string()).collect();
        assert_eq!(ids(&application, kind).await, expected, "{kind}");
        let past = CarryOptions { deadline: Instant::now(), ..options };
        assert_eq!(carry(&source, &target, kind, past).await.unwrap().end, CarryEnd::Deadline);
    }
    from.leave().await;
    to.leave().await;
}

#[tokio::test]
async fn a_missing_target_queue_stops_and_loses_nothing() {
    let Some((from, to)) = two("missing").await else { return };
    let (source, target) = (from.session().await.unwrap(), to.session().await.unwrap());
    from.queue("q", "quorum").await;
    let (_a, application) = from.application().await;
    publish(&application, "q", 20).await;
    let error = carry(&source, &target, "q", CarryOptions::everything_within(LIMIT)).await.unwrap_err();
    assert!(matches!(error.cause(), Cause::Returned { code: 312, .. }), "{}", error.report());
    assert!(matches!(error, Error::Carry { moved: 0, .. }), "{}", error.report());
    until("all ready", LIMIT, async || source.depth("q").await.unwrap().ready == 20).await;
    let nowhere = carry(&source, &target, "absent", CarryOptions::everything_within(LIMIT)).await;
    assert_eq!(nowhere.unwrap_err().kind(), Kind::NotFound);
    assert!(source.is_open() && target.is_open());
    from.leave().await;
    to.leave().await;
}

#[tokio::test]
async fn a_full_target_refuses_and_what_fits_is_moved() {
    let Some((from, to)) = two("full").await else { return };
    let (source, target) = (from.session().await.unwrap(), to.session().await.unwrap());
    from.queue("q", "classic").await;
    let full = serde_json::json!({ "durable": true, "arguments": { "x-max-length": 5, "x-overflow": "reject-publish" } });
    to.admin.put_queue(&to.vhost, "q", &full).await.unwrap();
    let (_a, application) = from.application().await;
    publish(&application, "q", 12).await;
    let error = carry(&source, &target, "q", CarryOptions::everything_within(LIMIT)).await.unwrap_err();
    assert_eq!(error.cause(), &Cause::Nacked, "{}", error.report());
    assert!(matches!(error, Error::Carry { moved: 5, .. }), "{}", error.report());
    until("rest ready", LIMIT, async || source.depth("q").await.unwrap().ready == 7).await;
    assert_eq!(target.depth("q").await.unwrap().ready, 5);
    from.leave().await;
    to.leave().await;
}

#[tokio::test]
async fn properties_stay_but_what_would_route_or_be_refused() {
    let Some((from, to)) = two("props").await else { return };
    let (source, target) = (from.session().await.unwrap(), to.session().await.unwrap());
    for (world, queues) in [(&from, ["q", "copy"]), (&to, ["q", "copy"])] {
        for queue in queues {
            world.queue(queue, "classic").await;
        }
    }
    let (_a, application) = from.application().await;
    let (_b, reader) = to.application().await;
    let mut headers = FieldTable::default();
    headers.insert("CC".into(), AMQPValue::FieldArray(vec![AMQPValue::LongString("copy".into())].into()));
    headers.insert("x".into(), AMQPValue::LongInt(7));
    let properties = BasicProperties::default()
        .with_headers(headers)
        .with_user_id(from.user.username.as_str().into())
        .with_message_id("0".into())
        .with_priority(3)
        .with_expiration("600000".into())
        .with_timestamp(1_700_000_000)
        .with_content_encoding("gzip".into())
        .with_reply_to("r".into());
    let options = BasicPublishOptions::default();
    let publish = application.basic_publish("".into(), "q".into(), options, b"x", properties.clone());
    publish.await.unwrap().await.unwrap();
    let carried = carry(&source, &target, "q", CarryOptions::everything_within(LIMIT)).await.unwrap();
    assert_eq!((carried.moved, carried.user_ids_cleared, carried.ccs_renamed), (1, 1, 1));
    assert_eq!(target.depth("copy").await.unwrap().ready, 0, "CC must not route again");
    let message = reader.basic_get("q".into(), BasicGetOptions { no_ack: true }).await.unwrap().unwrap();
    let got = &message.properties;
    assert_eq!(got.user_id(), &None);
    assert_eq!((got.priority(), got.expiration()), (properties.priority(), properties.expiration()));
    assert_eq!((got.timestamp(), got.reply_to()), (properties.timestamp(), properties.reply_to()));
    assert_eq!(got.content_encoding(), properties.content_encoding());
    let headers = got.headers().as_ref().unwrap();
    assert_eq!(headers.inner().get("x"), Some(&AMQPValue::LongInt(7)));
    assert!(headers.contains_key("x-original-cc") && !headers.contains_key("CC"));
    from.leave().await;
    to.leave().await;
}

#[tokio::test]
async fn a_cut_of_the_target_loses_nothing() {
    let Some((from, to)) = two("cut-target").await else { return };
    cut_in_the_middle(&from, &to, &to).await;
    from.leave().await;
    to.leave().await;
}

#[tokio::test]
async fn a_cut_of_the_source_loses_nothing() {
    let Some((from, to)) = two("cut-source").await else { return };
    cut_in_the_middle(&from, &to, &from).await;
    from.leave().await;
    to.leave().await;
}

async fn cut_in_the_middle(from: &World, to: &World, victim: &World) {
    const COUNT: u32 = 3_000;
    let (source, target) = (from.session().await.unwrap(), to.session().await.unwrap());
    for world in [from, to] {
        world.queue("q", "quorum").await;
    }
    let (a, application) = from.application().await;
    publish(&application, "q", COUNT).await;
    a.close(200, "bye".into()).await.unwrap();
    let options = CarryOptions { window: 50, ..CarryOptions::everything_within(LIMIT) };
    let cut = async {
        until("half way", LIMIT, async || target.depth("q").await.is_ok_and(|d| d.ready > COUNT / 3)).await;
        victim.admin.close_user_connections(&victim.user.username, "cut").await.unwrap();
    };
    let (carried, ()) = tokio::join!(carry(&source, &target, "q", options), cut);
    let Err(Error::Carry { moved, in_doubt, .. }) = carried else {
        unreachable!("cut too late: {carried:?}")
    };
    assert!(in_doubt <= 50 + 2 * 500, "{in_doubt}");
    let (source, target) = (from.session().await.unwrap(), to.session().await.unwrap());
    let depth = async || u64::from(source.depth("q").await.unwrap().ready);
    let (least, most) = (u64::from(COUNT) - moved - in_doubt, u64::from(COUNT) - moved);
    until("rest ready", LIMIT, async || (least..=most).contains(&depth().await)).await;
    let there = u64::from(target.depth("q").await.unwrap().ready);
    assert!((moved..=moved + in_doubt).contains(&there), "{there} there, moved {moved}, in doubt {in_doubt}");
    carry(&source, &target, "q", CarryOptions::everything_within(LIMIT)).await.unwrap();
    let (_b, reader) = to.application().await;
    let mut ids = ids(&reader, "q").await;
    let all = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), usize::try_from(COUNT).unwrap(), "none lost");
    let duplicates = u64::try_from(all - ids.len()).unwrap();
    println!("cut: moved {moved}, in doubt {in_doubt}, {duplicates} duplicates");
    assert!(duplicates <= in_doubt);
}

#[tokio::test]
async fn a_single_active_consumer_queue_is_carried() {
    let Some((from, to)) = two("sac").await else { return };
    let (source, target) = (from.session().await.unwrap(), to.session().await.unwrap());
    let (_a, application) = from.application().await;
    let (_b, reader) = to.application().await;
    for kind in ["classic", "quorum"] {
        let body = serde_json::json!({ "durable": true, "arguments": { "x-queue-type": kind, "x-single-active-consumer": true } });
        for world in [&from, &to] {
            world.admin.put_queue(&world.vhost, kind, &body).await.unwrap();
        }
        publish(&application, kind, 30).await;
        assert_eq!(source.get_probe_empty(kind).await.unwrap(), Probe::Message { behind: 29 }, "{kind}");
        let carried = carry(&source, &target, kind, CarryOptions::everything_within(LIMIT)).await.unwrap();
        assert_eq!((carried.moved, carried.end), (30, CarryEnd::Empty), "{kind}");
        assert_eq!(source.get_probe_empty(kind).await.unwrap(), Probe::Empty, "{kind}");
        assert_eq!(source.depth(kind).await.unwrap(), Depth { ready: 0, consumers: 0 });
        let expected: Vec<String> = (0..30).map(|n| n.to_string()).collect();
        assert_eq!(consumed(&reader, kind, 30).await, expected, "{kind}");
    }
    let consume = BasicConsumeOptions::default();
    let active = application.basic_consume("quorum".into(), "".into(), consume, FieldTable::default()).await;
    assert_eq!(source.get_probe_empty("quorum").await.unwrap(), Probe::Taken);
    let taken = carry(&source, &target, "quorum", CarryOptions::everything_within(LIMIT)).await.unwrap_err();
    assert_eq!(taken.kind(), Kind::Conflict, "{}", taken.report());
    drop(active);
    from.leave().await;
    to.leave().await;
}
