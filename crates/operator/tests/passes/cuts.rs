//! The removal of green is cut at each of its writes: whoever comes next finds the rest and removes it.

use crate::scene::{Leader, MIGRATIONS, NAME, NAMESPACE, migration, put_migration, server, spec};
use crate::server::Server;
use crate::server::call::Call;
use operator::settings::Timing;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const NOBODY: [&str; 3] = ["127.99.6.1", "127.99.6.2", "127.99.6.3"];
/// What green consists of.
const KINDS: [&str; 11] = [
    "pods",
    "services",
    "networkpolicies",
    "poddisruptionbudgets",
    "configmaps",
    "rolebindings",
    "roles",
    "serviceaccounts",
    "persistentvolumeclaims",
    "secrets",
    "statefulsets",
];
/// Passes after which what shall come must have come.
const PATIENCE: usize = 20;

#[tokio::test]
async fn the_removal_of_green_goes_on_wherever_it_was_cut() {
    let mut cuts = 0;
    while is_cut_at(cuts).await {
        cuts += 1;
    }
    assert!(cuts >= KINDS.len(), "each kind is removed by a write of its own, got {cuts}");
}

/// Makes green, deletes the migration, and cuts the pass in which green is removed while its write number
/// `nth` is on its way. False where there are fewer.
async fn is_cut_at(nth: usize) -> bool {
    let server = server(NOBODY);
    put_migration(&server, &spec(), Some("ProvisioningGreen"));
    let leader = Leader::new(&server, "a", Timing::default()).await;
    passes(&leader, &server, |server| left(server).iter().any(|name| name.starts_with("statefulsets"))).await;
    put_what_controllers_make(&server);
    // Nobody has to be asked what is left of ours on a blue that is not there.
    server.change("statefulsets", NAMESPACE, "rabbitmq", |blue| blue["spec"]["replicas"] = json!(0));
    server.change(MIGRATIONS, NAMESPACE, NAME, |migration| {
        migration["metadata"]["deletionTimestamp"] = json!(jiff::Timestamp::now().to_string());
    });

    let writes = AtomicUsize::new(0);
    leader.gate.hold(move |call| is_removal(call) && writes.fetch_add(1, Ordering::SeqCst) == nth);
    let all = passes(&leader, &server, |server| server.get(MIGRATIONS, NAMESPACE, NAME).is_none());
    let is_cut = tokio::select! {
        biased;
        () = leader.gate.holds_any() => true,
        () = all => false,
    };
    leader.gate.open();
    let found = left(&server);
    assert!(
        found.is_empty() || found.iter().any(|name| name.starts_with("statefulsets")),
        "as long as anything is left green is seen to be there: {found:?}"
    );
    passes(&leader, &server, |server| server.get(MIGRATIONS, NAMESPACE, NAME).is_none()).await;
    assert_eq!(left(&server), Vec::<String>::new(), "cut at write {nth}");
    is_cut
}

/// Passes until the server is as `is_so` says.
async fn passes(leader: &Leader, server: &Server, is_so: impl Fn(&Server) -> bool) {
    for _ in 0..PATIENCE {
        if is_so(server) {
            return;
        }
        leader.pass(server).await.unwrap();
    }
    assert!(is_so(server), "after {PATIENCE} passes: {:?}", server.get(MIGRATIONS, NAMESPACE, NAME));
}

fn is_removal(call: &Call) -> bool {
    call.is_write() && KINDS.iter().any(|kind| call.resource.split('/').next() == Some(kind))
}

/// What the StatefulSet's controller makes: a pod and its claim.
fn put_what_controllers_make(server: &Arc<Server>) {
    let uid = migration(server).metadata.uid.unwrap();
    let labels = json!({ api::LABEL_MIGRATION: uid, api::LABEL_BROKER: "orders-green" });
    for (resource, kind, name) in [
        ("pods", "Pod", "orders-green-0"),
        ("persistentvolumeclaims", "PersistentVolumeClaim", "data-orders-green-0"),
    ] {
        let metadata = json!({ "name": name, "namespace": NAMESPACE, "labels": labels });
        server.put(resource, json!({ "apiVersion": "v1", "kind": kind, "metadata": metadata }));
    }
}

/// What is left of green: all that carries the label of a migration.
fn left(server: &Server) -> Vec<String> {
    let is_ours = |object: &Value| object["metadata"]["labels"][api::LABEL_MIGRATION].is_string();
    let of_kind = |kind: &&str| {
        let found = server.all(kind).into_iter().filter(is_ours);
        found.map(|object| format!("{kind} {}", object["metadata"]["name"])).collect::<Vec<_>>()
    };
    KINDS.iter().flat_map(of_kind).collect()
}
