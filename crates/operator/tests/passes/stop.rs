//! A stop ends the slice after the effect at hand and gives the lease back.

use crate::scene::{put_migration, server, settings, spec};
use crate::server::HOME;
use operator::lease::{LEASE, acquire};
use operator::metrics::Metrics;
use operator::settings::Timing;
use std::sync::Arc;
use std::time::Instant;
use tokio_util::sync::CancellationToken;

const NOBODY: [&str; 3] = ["127.99.5.1", "127.99.5.2", "127.99.5.3"];

#[tokio::test]
async fn a_stop_finishes_the_effect_and_gives_the_lease_back() {
    let server = server(NOBODY);
    put_migration(&server, &spec(), Some("ProvisioningGreen"));
    let (client, gate) = server.client("a");
    // In the middle of one effect: green's Secret is made, the rest of green is not.
    gate.hold(|call| call.is_on("patch", "serviceaccounts"));
    let stop = CancellationToken::new();
    let led =
        operator::lead(client, settings("a"), Timing::default(), Arc::new(Metrics::new()), stop.clone());
    let led = tokio::spawn(led);
    gate.holds("patch serviceaccounts").await;
    stop.cancel();
    server.forget_calls();
    gate.open();
    led.await.unwrap().unwrap();

    let calls = server.calls();
    let writes: Vec<String> = calls
        .iter()
        .filter(|call| call.is_write() && call.who == "a" && call.resource != "events")
        .map(|call| format!("{} {}", call.what(), call.code))
        .filter(|what| what != "update leases 409")
        .collect();
    let effect = [
        "patch serviceaccounts 200",
        "patch roles 200",
        "patch rolebindings 200",
        "patch configmaps 200",
        "patch services 200",
        "patch services 200",
        "patch poddisruptionbudgets 200",
        "patch networkpolicies 200",
        "patch statefulsets 200",
    ];
    let (done, after) = writes.split_at(effect.len().min(writes.len()));
    let done: Vec<_> = done.iter().filter(|what| !what.contains("leases")).collect();
    assert!(done.iter().zip(effect).all(|(done, want)| *done == want), "the effect was finished: {writes:?}");
    let after: Vec<_> = after.iter().filter(|what| !what.contains("leases")).collect();
    assert!(after.len() <= 1, "nothing is begun any more: {after:?}");
    let lease = server.get("leases", HOME, LEASE).unwrap();
    assert!(lease["spec"].get("holderIdentity").is_none_or(serde_json::Value::is_null), "{lease}");

    // The successor takes it at its first look, long before it would expire.
    server.forget_calls();
    let begun = Instant::now();
    let (client, _) = server.client("b");
    let epoch = acquire(client, &settings("b"), Timing::default()).await;
    let took = begun.elapsed();
    assert!(epoch.is_held());
    assert!(epoch.tag().ends_with(".2"), "a leadership of its own: {}", epoch.tag());
    let looks = server.calls().iter().filter(|call| call.who == "b" && call.is_on("get", "leases")).count();
    assert_eq!(looks, 1, "it took {took:?}");
}
