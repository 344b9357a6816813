//! At rest a woken pass asks no broker more often than the facts allow (invariant 17). The broker here is a
//! listener that counts requests and answers none of them well.

use crate::scene::{BLUE_PASSWORD, Leader, MIGRATIONS, NAME, NAMESPACE, logs, put_migration, server, spec};
use api::RETRY;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use operator::settings::Timing;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// Addresses of this test's own: the port of the management API is fixed.
const ADDRESSES: [&str; 3] = ["127.77.0.1", "127.77.0.2", "127.77.0.3"];

/// Requests by path.
type Counts = Arc<Mutex<BTreeMap<String, usize>>>;

async fn refuse(State(counts): State<Counts>, request: Request) -> (StatusCode, String) {
    *counts.lock().unwrap().entry(request.uri().path().to_owned()).or_default() += 1;
    // A proxy may quote what it was sent: the operator shows it to nobody.
    let quoted = format!("{{\"error\":\"bad\",\"reason\":\"user:{BLUE_PASSWORD} may not\"}}");
    (StatusCode::SERVICE_UNAVAILABLE, quoted)
}

async fn brokers() -> Counts {
    let counts = Counts::default();
    for address in ADDRESSES {
        let listener = TcpListener::bind((address, 15672)).await.unwrap();
        let router = Router::new().fallback(refuse).with_state(counts.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
    }
    counts
}

#[tokio::test]
async fn a_storm_of_wakes_asks_no_broker_twice() {
    let counts = brokers().await;
    let server = server(ADDRESSES);
    put_migration(&server, &spec(), None);
    let leader = Leader::new(&server, "a", Timing::default()).await;
    leader.claim(&server).await;
    let begun = tokio::time::Instant::now();
    leader.pass(&server).await.unwrap();
    let first = counts.lock().unwrap().clone();
    assert!(first.contains_key("/api/overview"), "blue was asked: {first:?}");

    let services = |verb: &str| server.calls().iter().filter(|call| call.is_on(verb, "services")).count();
    let read = services("get");
    for _ in 0..20 {
        let uid = crate::scene::migration(&server).metadata.uid.unwrap();
        leader.shared.marks.add(&uid, &[decide::fact::Fact::Services].into());
        leader.pass(&server).await.unwrap();
    }
    assert_eq!(services("get"), read + 20, "each woke and read what had changed");
    // Each fact of the broker is due every ten seconds.
    if begun.elapsed().as_secs() < 10 {
        assert_eq!(*counts.lock().unwrap(), first, "and asked no broker");
    } else {
        panic!("void: twenty passes took {:?}", begun.elapsed());
    }
    assert!(!logs().contains(BLUE_PASSWORD));
    let status = serde_json::to_string(&crate::scene::migration(&server).status).unwrap();
    assert!(status.contains("user:*** may not"), "the refusal is told: {status}");
    assert!(!status.contains(BLUE_PASSWORD), "{status}");

    // The counter counts: a fresh memory asks all of it again.
    let uid = crate::scene::migration(&server).metadata.uid.unwrap();
    leader.shared.forget(&uid).await;
    server.change(MIGRATIONS, NAMESPACE, NAME, |migration| {
        migration["metadata"]["annotations"][RETRY] = json!("1");
    });
    leader.pass(&server).await.unwrap();
    let twice: BTreeMap<String, usize> =
        first.iter().map(|(path, count)| (path.clone(), count * 2)).collect();
    assert_eq!(*counts.lock().unwrap(), twice);
}
