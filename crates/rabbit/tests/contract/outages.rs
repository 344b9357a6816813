//! A frozen broker and a broker under alarm. Both stop everybody else: run these alone, by name.
//!
//! `RABBIT_CONTRACT_PID` is the broker's process (it is stopped and continued), `RABBIT_CONTRACT_CTL` a command
//! that runs `rabbitmqctl` with the arguments given.

use std::process::Command;
use std::time::Duration;

use rabbit::Kind;
use rabbit::amqp::{Canary, CanaryConfig, CarryOptions, Depth, Probe, Session, carry, handshake};

use crate::world::{LIMIT, World, publish, until};

/// Short, so that a test takes seconds; far below the heartbeat of 10 s.
const SHORT: Duration = Duration::from_millis(700);

fn signal(pid: &str, signal: &str) {
    assert!(Command::new("kill").args([signal, pid]).status().unwrap().success());
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

#[tokio::test]
async fn a_frozen_broker_is_no_answer_and_nothing_else() {
    let Ok(pid) = std::env::var("RABBIT_CONTRACT_PID") else {
        return println!("skipped frozen: RABBIT_CONTRACT_PID names no process");
    };
    let Some(world) = World::enter("frozen").await else { return };
    world.queue("q", "quorum").await;
    let (_connection, channel) = world.application().await;
    publish(&channel, "q", 5).await;
    let session = Session::connect(&world.amqp, &world.vhost, &world.user, "frozen", SHORT).await.unwrap();
    assert_eq!(session.depth("q").await.unwrap(), Depth { ready: 5, consumers: 0 });
    let before = threads();
    signal(&pid, "-STOP");
    let depth = session.depth("q").await;
    let probe = session.get_probe_empty("q").await;
    let shake = handshake(&world.amqp, SHORT).await;
    let mut logins = Vec::new();
    for _ in 0..3 {
        logins.push(Session::connect(&world.amqp, &world.vhost, &world.user, "frozen", SHORT).await);
    }
    let members = world.admin.members().await;
    tokio::time::sleep(SHORT).await;
    let after = threads();
    signal(&pid, "-CONT");
    assert_eq!(depth.unwrap_err().kind(), Kind::Unreachable);
    assert_eq!(probe.unwrap(), Probe::NoAnswer);
    assert_eq!(shake.unwrap_err().kind(), Kind::Unreachable);
    assert!(logins.into_iter().all(|login| login.unwrap_err().kind() == Kind::Unreachable));
    assert_eq!(members.unwrap_err().kind(), Kind::Unreachable);
    // tokio may start a thread to resolve names; a login given up must not keep one.
    assert!(after <= before + 1, "{before} threads before, {after} after");
    until("thawed", LIMIT, async || session.depth("q").await.is_ok_and(|d| d.ready == 5)).await;
    assert!(session.is_open());
    world.leave().await;
}

#[tokio::test]
async fn an_alarm_blocks_carrying_and_the_canary_but_not_reading() {
    let Ok(ctl) = std::env::var("RABBIT_CONTRACT_CTL") else {
        return println!("skipped alarm: RABBIT_CONTRACT_CTL names no command");
    };
    let watermark = |value: &str| {
        let command = format!("{ctl} set_vm_memory_high_watermark {value}");
        assert!(Command::new("sh").args(["-c", &command]).status().unwrap().success());
    };
    let (Some(from), Some(to)) = (World::enter("alarm-from").await, World::enter("alarm-to").await) else {
        return;
    };
    for world in [&from, &to] {
        world.queue("q", "classic").await;
    }
    let (_connection, channel) = from.application().await;
    publish(&channel, "q", 20).await;
    let connect = |world| Session::connect(&from.amqp, world, &from.user, "alarm", SHORT);
    let source = connect(&from.vhost).await.unwrap();
    let target = Session::connect(&to.amqp, &to.vhost, &to.user, "alarm", SHORT).await.unwrap();
    let mut config = CanaryConfig::new(&from.amqp, &from.vhost, from.user.clone(), "canary", "run-1");
    config.timeout = SHORT;
    let canary = Canary::start(config);
    until("delivers", LIMIT, async || canary.ledger().delivered.len() > 5).await;

    watermark("absolute 1MB");
    until("alarm", LIMIT, async || !from.admin.check_alarms().await.unwrap().ok).await;
    assert_eq!(source.depth("q").await.unwrap().ready, 20);
    let blocked = carry(&source, &target, "q", CarryOptions::everything_within(LIMIT)).await;
    println!("carry under alarm: {:?}", blocked.as_ref().map_err(rabbit::Error::report));
    from.admin.set_user_max_connections(&from.user.username, 0).await.unwrap();
    assert_eq!(connect(&from.vhost).await.unwrap_err().kind(), Kind::Refused, "the fence works under alarm");
    from.admin.clear_user_max_connections(&from.user.username).await.unwrap();
    until("canary stalls", LIMIT, async || canary.ledger().publisher.closes > 0).await;
    watermark("absolute 2GB");
    until("no alarm", LIMIT, async || from.admin.check_alarms().await.unwrap().ok).await;

    let source = connect(&from.vhost).await.unwrap();
    let target = Session::connect(&to.amqp, &to.vhost, &to.user, "alarm", SHORT).await.unwrap();
    until("carried", LIMIT, async || {
        carry(&source, &target, "q", CarryOptions::everything_within(LIMIT)).await.unwrap();
        source.depth("q").await.unwrap().ready == 0
    })
    .await;
    println!("20 messages became {}", target.depth("q").await.unwrap().ready);
    assert!(target.depth("q").await.unwrap().ready >= 20);
    let confirmed = canary.ledger().confirmed.len();
    until("canary goes on", LIMIT, async || canary.ledger().confirmed.len() > confirmed + 10).await;
    let end = canary.stop().await;
    println!("canary: {:?} lost {}, explained {}", end.publisher, end.lost(), end.duplicates_explained);
    assert!(end.is_balanced(), "{end:?}");
    from.leave().await;
    to.leave().await;
}
