//! Export, seal, unseal, import in phases, read back; secrets stay out of refusals.

use rabbit::definitions::{self, Phase};
use rabbit::management::{Limits, Password};
use rabbit::seal::{seal, unseal};
use rabbit::{Kind, Secret};
use serde_json::{Value, json};

use crate::world::World;

/// More than a page of 500 and several requests of 200.
const QUEUES: usize = 620;

fn document(world: &World) -> Vec<u8> {
    let vhost = &world.vhost;
    let long: Vec<Value> = (0..QUEUES)
        .map(|n| json!({"name": format!("q{n}"), "vhost": vhost, "durable": true, "auto_delete": false, "arguments": {}}))
        .collect();
    let bindings: Vec<Value> = (0..QUEUES)
        .map(|n| json!({"source": "events", "vhost": vhost, "destination": format!("q{n}"), "destination_type": "queue", "routing_key": "#", "arguments": {}}))
        .collect();
    let document = json!({
        "permissions": [{"user": world.user.username, "vhost": vhost, "configure": "", "write": ".*", "read": ".*"}],
        "topic_permissions": [{"user": world.user.username, "vhost": vhost, "exchange": "events", "write": "^a", "read": ".*"}],
        "exchanges": [{"name": "events", "vhost": vhost, "type": "topic", "durable": true, "auto_delete": false, "internal": false, "arguments": {}}],
        "queues": long,
        "bindings": bindings,
        "policies": [{"vhost": vhost, "name": "ttl", "pattern": "^q1$", "apply-to": "queues", "definition": {"message-ttl": 60000}, "priority": 1}],
        "parameters": [
            {"component": "operator_policy", "vhost": vhost, "name": "cap", "value": {"pattern": "^q2$", "apply-to": "queues", "definition": {"max-length": 1000}, "priority": 1}},
            {"component": "vhost-limits", "vhost": vhost, "name": "limits", "value": {"max-queues": 1000}},
            {"component": "shovel", "vhost": vhost, "name": "never", "value": {"src-uri": "amqp://u:PLANTED@h", "src-queue": "a", "dest-uri": "amqp://", "dest-queue": "b"}}],
        "global_parameters": [{"name": "cluster_name", "value": "stolen"}]
    });
    serde_json::to_vec(&document).unwrap()
}

#[tokio::test]
async fn an_import_in_phases_reads_back() {
    let Some(world) = World::enter("import").await else { return };
    let name = world.admin.cluster_name().await.unwrap();
    let document = document(&world);
    let sealed = seal(&document).unwrap();
    assert_eq!(sealed.seals.len(), 1);
    let document = unseal(&sealed.bytes, &sealed.seals).unwrap();
    for round in 0..2 {
        let start = std::time::Instant::now();
        let done = definitions::import(&world.admin, &document).await.unwrap();
        println!("import {round}: {:?}", start.elapsed());
        let queues = done.iter().find(|d| d.phase == Phase::Queues).unwrap();
        assert_eq!(queues.objects, QUEUES);
    }
    let back: Value = serde_json::from_slice(&definitions::read_back(&world.admin).await.unwrap()).unwrap();
    let count = |section: &str| {
        let rows = back[section].as_array().unwrap();
        rows.iter().filter(|row| row["vhost"] == world.vhost.as_str()).count()
    };
    assert_eq!((count("queues"), count("bindings"), count("policies")), (QUEUES, QUEUES, 1));
    assert_eq!(count("topic_permissions"), 1);
    assert_eq!(count("parameters"), 2, "movers stay out");
    assert_eq!(world.admin.cluster_name().await.unwrap(), name);
    let limits = world.admin.vhost_limits().await.unwrap();
    assert!(
        limits.iter().any(|Limits { name, values }| *name == world.vhost && values["max-queues"] == 1000)
    );
    let totals = world.admin.queues_totals().await.unwrap();
    assert_eq!(totals.iter().filter(|q| q.vhost == world.vhost).count(), QUEUES);
    world.leave().await;
}

#[tokio::test]
async fn a_real_export_survives_seal_and_unseal() {
    let Some(world) = World::enter("seal").await else { return };
    let shovel = json!({"src-uri": ["amqp://u:PLANTED-1@127.0.0.1:1", "amqp://u:PLANTED-2@127.0.0.1:1/%2f"],
        "src-queue": "a", "dest-uri": "amqp://x:PLANTED-3@127.0.0.1:1", "dest-queue": "b"});
    let known = world.admin.put_parameter("shovel", &world.vhost, "s", &shovel).await;
    if let Err(error) = known {
        println!("no shovel plugin: {}", error.report());
    }
    let export = world.admin.export_definitions().await.unwrap();
    let sealed = seal(&export).unwrap();
    assert_eq!(unseal(&sealed.bytes, &sealed.seals).unwrap(), export);
    let text = String::from_utf8(sealed.bytes).unwrap();
    assert!(!text.contains("PLANTED"));
    let document: Value = serde_json::from_slice(&export).unwrap();
    for user in document["users"].as_array().unwrap() {
        let hash = user["password_hash"].as_str().unwrap();
        assert!(hash.is_empty() || !text.contains(hash));
    }
    world.admin.delete_parameter("shovel", &world.vhost, "s").await.unwrap();
    world.leave().await;
}

#[tokio::test]
async fn a_refusal_quotes_no_secret() {
    let Some(world) = World::enter("refusal").await else { return };
    for uri in ["amqp://u:PLANTED pass@h", "PLANTED:no/uri@h", "amqp://u:PLANTED@h:notaport"] {
        let document = json!({"parameters": [{"component": "shovel", "vhost": world.vhost, "name": "s",
            "value": {"src-uri": uri, "src-queue": "a", "dest-uri": "amqp://", "unknown-term": uri}}]});
        let bytes = serde_json::to_vec(&document).unwrap();
        let refused = definitions::import_phase(&world.admin, &bytes, Phase::Movers).await.unwrap_err();
        println!("{}", refused.report());
        assert_eq!(refused.kind(), Kind::Refused);
        assert!(!format!("{refused:?} {}", refused.report()).to_lowercase().contains("planted"));
        let value = &document["parameters"][0]["value"];
        let refused = world.admin.put_parameter("shovel", &world.vhost, "s", value).await.unwrap_err();
        println!("{}", refused.report());
        assert!(!refused.report().to_lowercase().contains("planted"));
    }
    world.leave().await;
}

#[tokio::test]
async fn a_shadow_record_has_no_password_and_can_be_fenced() {
    let Some(world) = World::enter("shadow").await else { return };
    world.admin.put_user("contract-shadow-record", &Password::None, &[]).await.unwrap();
    world.admin.set_user_max_connections("contract-shadow-record", 0).await.unwrap();
    let users = world.admin.users().await.unwrap();
    let shadow = users.iter().find(|u| u.name == "contract-shadow-record").unwrap();
    assert_eq!(shadow.has_password, Some(false));
    assert_eq!(shadow.limits.get("max-connections"), Some(&0));
    for _ in 0..2 {
        world.admin.delete_user("contract-shadow-record").await.unwrap();
    }
    let missing = world.admin.set_user_max_connections("contract-nobody", 0).await.unwrap_err();
    println!("limit for nobody: {}", missing.report());
    assert_eq!(missing.kind(), Kind::Refused);
    assert_eq!(Secret::from("x").to_string(), "***");
    world.leave().await;
}
