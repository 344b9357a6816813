//! The canary lives through closes and a fence, and its books balance.

use std::time::Duration;

use rabbit::amqp::{Canary, CanaryConfig, Declare};

use crate::world::{LIMIT, World, until};

#[tokio::test]
async fn a_canary_survives_closes_without_a_loss() {
    let Some(world) = World::enter("canary").await else { return };
    let mut config = CanaryConfig::new(&world.amqp, &world.vhost, world.user.clone(), "canary", "run-1");
    config.declare = Declare::Quorum;
    config.interval = Duration::from_millis(5);
    let canary = Canary::start(config.clone());
    for round in 1..=5 {
        until("both connected", LIMIT, async || {
            let now = canary.ledger();
            now.publisher.connects >= round && now.consumer.connects >= round
        })
        .await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        world.admin.close_user_connections(&world.user.username, "contract").await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let end = canary.stop().await;
    println!(
        "attempted {}, confirmed {}, lost {}, explained {}, recovered {}, gaps {} and {} ms",
        end.attempted,
        end.confirmed.len(),
        end.lost(),
        end.duplicates_explained,
        end.recovered,
        end.publisher.longest_gap_ms,
        end.consumer.longest_gap_ms
    );
    assert!(end.is_balanced(), "{end:?}");
    assert_eq!((end.lost(), end.reordered, end.returned), (0, 0, 0), "{end:?}");
    // A close by user can meet one that has come back while it runs.
    assert!(end.publisher.closes >= 5 && end.consumer.closes >= 5, "{end:?}");
    assert_eq!(end.confirmed.len(), end.attempted, "a stop waits for the last confirms");
    until("a stop hangs up", LIMIT, async || world.open_connections().await.is_empty()).await;

    config.resume = Some(end.clone());
    let resumed = Canary::start(config);
    until("goes on", LIMIT, async || resumed.ledger().attempted > end.attempted + 10).await;
    let end = resumed.stop().await;
    assert!(end.is_balanced() && end.publisher.closes >= 5, "{end:?}");
    world.leave().await;
}

#[tokio::test]
async fn a_fenced_canary_counts_refusals_and_comes_back() {
    let Some(world) = World::enter("canary-fence").await else { return };
    let config = CanaryConfig::new(&world.amqp, &world.vhost, world.user.clone(), "canary", "run-1");
    let canary = Canary::start(config);
    until("delivers", LIMIT, async || canary.ledger().delivered.len() > 5).await;
    world.admin.set_user_max_connections(&world.user.username, 0).await.unwrap();
    world.admin.close_user_connections(&world.user.username, "contract").await.unwrap();
    until("refused", LIMIT, async || canary.ledger().publisher.refused > 2).await;
    let confirmed = canary.ledger().confirmed.len();
    world.admin.clear_user_max_connections(&world.user.username).await.unwrap();
    until("back", LIMIT, async || canary.ledger().confirmed.len() > confirmed + 5).await;
    let end = canary.stop().await;
    println!("refused {} times, {:?}", end.publisher.refused, end.publisher.last_error);
    assert!(end.is_balanced(), "{end:?}");
    assert!(end.publisher.longest_gap_ms >= 50);
    world.leave().await;
}

#[tokio::test]
async fn a_dropped_canary_hangs_up() {
    let Some(world) = World::enter("canary-drop").await else { return };
    let config = CanaryConfig::new(&world.amqp, &world.vhost, world.user.clone(), "canary", "run-1");
    let canary = Canary::start(config);
    until("delivers", LIMIT, async || canary.ledger().delivered.len() > 2).await;
    drop(canary);
    until("gone", LIMIT, async || world.open_connections().await.is_empty()).await;
    world.leave().await;
}
