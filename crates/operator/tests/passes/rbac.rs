//! The roles in `deploy/base` grant what the operator asks for, and nothing else.

use crate::scene::{Leader, MIGRATIONS, NAME, NAMESPACE, put_migration, server, spec};
use crate::server::Server;
use crate::server::call::Call;
use crate::server::grants::{Grants, Rule};
use operator::settings::Timing;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;

const NOBODY: [&str; 3] = ["127.99.2.1", "127.99.2.2", "127.99.2.3"];

/// What is granted though no call of ours needs it, with the reason.
const EXTRA: &[(&str, &str)] = &[];

fn granted<'a>(rules: impl Iterator<Item = &'a Rule>) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for rule in rules {
        for group in &rule.api_groups {
            for resource in &rule.resources {
                all.extend(rule.verbs.iter().map(|verb| named(verb, resource, group)));
            }
        }
    }
    all
}

fn named(verb: &str, resource: &str, group: &str) -> String {
    if group.is_empty() { format!("{verb} {resource}") } else { format!("{verb} {resource}.{group}") }
}

fn listed() -> BTreeSet<String> {
    let all = operator::access::all().into_iter();
    all.map(|access| named(access.verb, access.resource, access.group)).collect()
}

#[test]
fn the_roles_grant_exactly_what_is_asked_for() {
    let grants = Grants::shipped();
    let granted = granted(grants.all());
    let listed = listed();
    let missing: Vec<_> = listed.difference(&granted).collect();
    assert!(missing.is_empty(), "not granted: {missing:?}");
    let named: BTreeSet<&str> = EXTRA.iter().map(|(what, _)| *what).collect();
    let extra: Vec<_> = granted.difference(&listed).filter(|what| !named.contains(what.as_str())).collect();
    assert!(extra.is_empty(), "granted without a reason: {extra:?}");
    let stale: Vec<_> = named.iter().filter(|what| !granted.contains(**what)).collect();
    assert!(stale.is_empty(), "a reason for what is not granted: {stale:?}");
}

/// Secrets are read one by one. Who may list them has them all.
#[test]
fn nobody_may_list_secrets_or_do_anything_on_everything() {
    let grants = Grants::shipped();
    for rule in grants.all() {
        let stars =
            [&rule.api_groups, &rule.resources, &rule.verbs].map(|part| part.iter().any(|p| p == "*"));
        assert_eq!(stars, [false; 3], "{rule:?}");
        let lists = rule.verbs.iter().any(|verb| verb == "list" || verb == "watch");
        assert!(!lists || !rule.resources.iter().any(|resource| resource == "secrets"), "{rule:?}");
    }
}

/// The list itself is held against what is really asked: passes that check, make green, undo it and go.
#[tokio::test]
async fn what_passes_ask_is_on_the_list_and_granted() {
    let server = server(NOBODY);
    put_migration(&server, &spec(), None);
    let leader = Leader::new(&server, "a", Timing::default()).await;
    leader.claim(&server).await;
    leader.pass(&server).await.unwrap();
    go_through(&server, &leader).await;

    let calls = server.calls();
    let refused: Vec<String> = calls.iter().filter(|c| c.code == 403).map(Call::what).collect();
    assert!(refused.is_empty(), "refused: {refused:?}");
    // Everybody may ask what he may do.
    let asked: BTreeSet<String> = calls
        .iter()
        .filter(|call| !call.resource.ends_with("accessreviews"))
        .map(|call| named(call.verb, &call.resource, &call.group))
        .collect();
    let listed = listed();
    let unlisted: Vec<_> = asked.difference(&listed).collect();
    assert!(unlisted.is_empty(), "not on the list: {unlisted:?}");
    for what in ["patch statefulsets.apps", "delete statefulsets.apps", "create secrets", "delete secrets"] {
        assert!(asked.contains(what), "the passes did not come as far as {what}: {asked:?}");
    }
    assert!(server.get(MIGRATIONS, NAMESPACE, NAME).is_none(), "the finalizer was taken off");
}

/// Makes green, then deletes the migration: green goes with what was made for it.
async fn go_through(server: &Arc<Server>, leader: &Leader) {
    server.change(MIGRATIONS, NAMESPACE, NAME, |migration| {
        migration["status"]["phase"] = json!("ProvisioningGreen");
    });
    leader.pass(server).await.unwrap();
    assert!(server.get("statefulsets", NAMESPACE, "orders-green").is_some(), "green was made");
    server.change(MIGRATIONS, NAMESPACE, NAME, |migration| {
        migration["metadata"]["deletionTimestamp"] = json!(jiff::Timestamp::now().to_string());
        // Its broker never answered, so that nothing can have been made on it.
        migration["status"]["phase"] = json!("Preflight");
    });
    leader.pass(server).await.unwrap();
}
