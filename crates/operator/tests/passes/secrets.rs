//! Secrets are in no status, event, log, metric or object but Secrets (invariant 11), and a pass that can do
//! nothing writes nothing.

use crate::scene::{BLUE_PASSWORD, Leader, MIGRATIONS, NAME, NAMESPACE};
use crate::scene::{logs, migration, put_migration, secret, server, spec};
use crate::server::Server;
use crate::server::call::Call;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use operator::settings::Timing;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const NOBODY: [&str; 3] = ["127.99.3.1", "127.99.3.2", "127.99.3.3"];
/// What a pass may write that can do nothing yet.
const HARMLESS: [&str; 6] = [
    "patch rabbitmqmigrations",
    "update rabbitmqmigrations/status",
    "create events",
    "patch events",
    "create leases",
    "update leases",
];

/// Every secret text in any Secret, as it is and as it stands in JSON. Names of users are none.
fn secret_texts(server: &Server) -> BTreeSet<String> {
    let mut texts = BTreeSet::new();
    for found in server.all("secrets") {
        for (key, value) in found["data"].as_object().into_iter().flatten() {
            if key == "username" {
                continue;
            }
            let encoded = value.as_str().unwrap();
            texts.insert(encoded.to_owned());
            texts.insert(String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap());
        }
    }
    texts
}

/// Looks for all of them in everything that leaves the operator: what it writes, logs and serves.
fn assert_nothing_leaks(server: &Server, leader: &Leader) {
    let texts = secret_texts(server);
    assert!(texts.contains(BLUE_PASSWORD), "nothing is looked for");
    let calls = server.calls();
    let mut places: Vec<(String, String)> = calls
        .iter()
        .filter(|call| call.is_write() && call.resource != "secrets")
        .map(|call| (call.what(), call.body.to_string()))
        .collect();
    assert!(
        places.iter().any(|(what, _)| what == "update rabbitmqmigrations/status"),
        "no status was written"
    );
    assert!(places.iter().any(|(what, _)| what == "create events"), "no event was told");
    places.extend(
        calls.iter().map(|call| ("a request's path".to_owned(), format!("{} {}", call.name, call.query))),
    );
    let logs = logs();
    assert!(logs.contains("leading"), "logs are not captured");
    places.push(("the log".to_owned(), logs));
    let metrics = leader.shared.metrics.text().unwrap();
    assert!(metrics.contains("rabbitmq_migration_phase"), "metrics are empty");
    places.push(("metrics".to_owned(), metrics));
    for (place, text) in places {
        for secret in &texts {
            assert!(!text.contains(secret.as_str()), "{place} holds {secret}: {text}");
        }
    }
}

fn writes(server: &Server) -> BTreeSet<String> {
    server.calls().iter().filter(|call| call.is_write()).map(Call::what).collect()
}

fn assert_harmless(server: &Server) {
    let writes = writes(server);
    let others: Vec<_> = writes.iter().filter(|what| !HARMLESS.contains(&what.as_str())).collect();
    assert!(others.is_empty(), "{others:?}");
    assert!(writes.contains("update rabbitmqmigrations/status"));
    assert!(writes.contains("create events"));
}

fn condition(server: &Server, kind: &str) -> (String, String) {
    let conditions = migration(server).status.unwrap().conditions;
    let found = conditions.into_iter().find(|condition| condition.type_ == kind).unwrap();
    (found.status, found.message)
}

#[tokio::test]
async fn a_pass_on_an_unreachable_blue_writes_nothing_but_what_it_tells() {
    let server = server(NOBODY);
    put_migration(&server, &spec(), None);
    let leader = Leader::new(&server, "a", Timing::default()).await;
    leader.claim(&server).await;
    leader.pass(&server).await.unwrap();
    leader.pass(&server).await.unwrap();
    assert_harmless(&server);
    let (passed, message) = condition(&server, "PreflightPassed");
    assert_eq!(passed, "False", "{message}");
    assert_nothing_leaks(&server, &leader);
}

#[tokio::test]
async fn a_pass_on_an_invalid_spec_writes_nothing_but_what_it_tells() {
    let server = server(NOBODY);
    let mut spec = spec();
    // The API server's rules would refuse it; an older CRD may not have them.
    spec["green"]["existing"] = spec["blue"].clone();
    put_migration(&server, &spec, None);
    let leader = Leader::new(&server, "a", Timing::default()).await;
    leader.claim(&server).await;
    leader.pass(&server).await.unwrap();
    assert_harmless(&server);
    let (stalled, message) = condition(&server, "Stalled");
    assert_eq!(stalled, "True");
    assert!(message.contains("spec.green"), "{message}");
    assert_nothing_leaks(&server, &leader);
}

/// The wrong key: the error names it, and shows nothing of what stands under others.
#[tokio::test]
async fn credentials_under_another_key_are_not_told() {
    let server = server(NOBODY);
    server.put("secrets", secret("rabbitmq", &[("other", BLUE_PASSWORD)]));
    put_migration(&server, &spec(), None);
    let leader = Leader::new(&server, "a", Timing::default()).await;
    leader.claim(&server).await;
    leader.pass(&server).await.unwrap();
    assert_harmless(&server);
    let told = serde_json::to_string(&migration(&server).status).unwrap();
    assert!(told.contains("rabbitmq-password"), "the missing key is named: {told}");
    assert_nothing_leaks(&server, &leader);
}

/// Here secrets are made: green's password and cookie. They stand in its Secret and nowhere else.
#[tokio::test]
async fn what_green_is_born_with_stands_in_its_secret_alone() {
    let server = server(NOBODY);
    put_migration(&server, &spec(), Some("ProvisioningGreen"));
    let leader = Leader::new(&server, "a", Timing::default()).await;
    leader.claim(&server).await;
    leader.pass(&server).await.unwrap();
    assert!(writes(&server).contains("patch statefulsets"), "green was made");
    let made = server.get("secrets", NAMESPACE, "orders-green-credentials").unwrap();
    let keys: Vec<_> = made["data"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys.len(), 3, "{keys:?}");
    // An event tells of a change of phase, and there was none yet.
    server.change(MIGRATIONS, NAMESPACE, NAME, |migration| migration["status"]["phase"] = json!("Preflight"));
    leader.pass(&server).await.unwrap();
    server.change(MIGRATIONS, NAMESPACE, NAME, |migration| migration["status"] = Value::Null);
    leader.shared.forget(migration(&server).metadata.uid.as_deref().unwrap()).await;
    leader.pass(&server).await.unwrap();
    assert_nothing_leaks(&server, &leader);
}
