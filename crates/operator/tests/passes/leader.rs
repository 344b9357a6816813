//! The lease: one leads, and a former leader that wakes up writes nothing (invariant 13).

use crate::scene::{Leader, MIGRATIONS, NAME, NAMESPACE, migration, put_migration, server, settings, spec};
use crate::server::call::Call;
use crate::server::{HOME, Server};
use operator::lease::{LEASE, acquire};
use operator::settings::Timing;
use serde_json::Value;
use std::time::Duration;

/// No address: nobody answers there.
const NOBODY: [&str; 3] = ["127.99.0.1", "127.99.0.2", "127.99.0.3"];

/// A leader whose clock stands still: it believes in its term for as long as the test runs, and others need
/// not wait long. What is waited for are conditions; this only says how soon they come.
const STANDING: Timing = Timing {
    lease: Duration::from_secs(1),
    deadline: Duration::from_hours(1),
    renew: Duration::from_millis(200),
    retry: Duration::from_millis(50),
    gap: Duration::from_secs(1),
    review: Duration::from_mins(3),
};

fn lease(server: &Server) -> Value {
    server.get("leases", HOME, LEASE).unwrap()
}

fn holder(server: &Server) -> String {
    lease(server)["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
}

fn is_lease(call: &Call) -> bool {
    call.resource == "leases"
}

#[tokio::test]
async fn of_two_contenders_one_leads() {
    let server = server(NOBODY);
    let (a, gate_a) = server.client("a");
    let (b, gate_b) = server.client("b");
    // Both are held at the same write, so that both have found the Lease free.
    gate_a.hold(|call| is_lease(call) && call.is_write());
    gate_b.hold(|call| is_lease(call) && call.is_write());
    let (of_a, of_b) = (settings("a"), settings("b"));
    let timing = Timing { retry: Duration::from_millis(50), ..Timing::default() };
    let mut contending = Box::pin(futures::future::select(
        Box::pin(acquire(a, &of_a, timing)),
        Box::pin(acquire(b, &of_b, timing)),
    ));
    let both_held = futures::future::join(gate_a.holds("create leases"), gate_b.holds("create leases"));
    tokio::select! {
        _ = &mut contending => panic!("nobody can lead before a write"),
        _ = both_held => {}
    }
    gate_a.open();
    gate_b.open();
    let (epoch, loser) = contending.await.factor_first();
    assert!(epoch.is_held());
    // The loser sees the Lease held, again and again, and stays one who waits.
    let who = if holder(&server).starts_with("a_") { "b" } else { "a" };
    let looked =
        |server: &Server| server.calls().iter().filter(|call| call.who == who && is_lease(call)).count();
    tokio::select! {
        _ = loser => panic!("two lead"),
        () = server.until(|server| looked(server) >= 4) => {}
    }
    let refused = server.calls().iter().filter(|call| call.who == who && call.code == 409).count();
    assert_eq!(refused, 1, "the later write was refused by the server");
    assert_eq!(lease(&server)["spec"]["leaseTransitions"], 1);
}

#[tokio::test]
async fn a_frozen_leader_that_wakes_up_can_write_neither_lease_nor_status() {
    let server = server(NOBODY);
    put_migration(&server, &spec(), None);
    let old = Leader::new(&server, "old", STANDING).await;
    old.claim(&server).await;
    // Frozen in the middle: its status is computed and on its way, and so is a renewal.
    old.gate.hold(Call::is_write);
    let shared = old.shared.clone();
    let cached = migration(&server);
    let pass = tokio::spawn(async move {
        operator::reconcile::reconcile(std::sync::Arc::new(cached), shared).await.map(|_| ())
    });
    old.gate.holds("update rabbitmqmigrations/status").await;
    old.gate.holds("update leases").await;
    old.gate.hold(|_| true);

    let new = Leader::new(&server, "new", Timing::default()).await;
    assert!(holder(&server).starts_with("new_"));
    assert_ne!(old.epoch.tag(), new.epoch.tag());
    new.claim(&server).await;
    let (claimed, held) = (server.get(MIGRATIONS, NAMESPACE, NAME), holder(&server));

    server.forget_calls();
    old.gate.open();
    let outcome = pass.await.unwrap();
    assert!(outcome.unwrap_err().is_conflict());
    assert!(!old.epoch.is_held(), "refused means led no longer");
    server.until(|server| writes_of(server, "old").len() >= 2).await;
    let mut writes = writes_of(&server, "old");
    writes.sort();
    let refused = ["update leases 409", "update rabbitmqmigrations/status 409"];
    assert_eq!(writes, refused, "each was refused by the server, and nothing came after");
    assert_eq!(server.get(MIGRATIONS, NAMESPACE, NAME), claimed);
    assert_eq!(holder(&server), held);
    assert!(new.epoch.is_held());
}

fn writes_of(server: &Server, who: &str) -> Vec<String> {
    let calls = server.calls();
    let writes = calls.iter().filter(|call| call.who == who && call.is_write());
    writes.map(|call| format!("{} {}", call.what(), call.code)).collect()
}

/// The clock alone would not do: a leader may be frozen between a look at it and the write. Here the old leader
/// still believes in its term.
#[tokio::test]
async fn a_refused_status_makes_a_believer_look_at_the_lease() {
    let server = server(NOBODY);
    put_migration(&server, &spec(), None);
    // It does not renew while the test runs.
    let quiet =
        Timing { renew: Duration::from_hours(1), deadline: Duration::from_hours(1), ..Timing::default() };
    let old = Leader::new(&server, "old", quiet).await;
    old.claim(&server).await;
    old.gate.hold(|call| call.is_on("update", "rabbitmqmigrations/status"));
    let shared = old.shared.clone();
    let cached = migration(&server);
    let pass = tokio::spawn(async move {
        operator::reconcile::reconcile(std::sync::Arc::new(cached), shared).await.map(|_| ())
    });
    old.gate.holds("update rabbitmqmigrations/status").await;
    // Somebody took the Lease away by hand.
    server.change("leases", HOME, LEASE, |lease| lease["spec"]["holderIdentity"] = Value::Null);
    let new = Leader::new(&server, "new", Timing::default()).await;
    new.claim(&server).await;
    assert!(old.epoch.is_held(), "it has not heard of it");
    old.gate.open();
    assert!(pass.await.unwrap().unwrap_err().is_conflict());
    assert!(!old.epoch.is_held());
    assert!(new.epoch.is_held());
}

/// A conflict with a person is none with a leader.
#[tokio::test]
async fn a_status_that_a_person_came_between_ends_no_leadership() {
    let server = server(NOBODY);
    put_migration(&server, &spec(), None);
    let leader = Leader::new(&server, "a", Timing::default()).await;
    leader.claim(&server).await;
    let outcome = leader.pass_interrupted(&server).await;
    assert!(outcome.unwrap_err().is_conflict());
    assert!(leader.epoch.is_held());
}
