//! What each order writes, and which it refuses.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use api::{Phase, RabbitMQMigration};
use jiff::Timestamp;
use kubectl::orders::{abort, approve, pause, resume, retry, rollback};
use serde_json::{Value, json};

fn migration(phase: Option<Phase>, change: &Value) -> RabbitMQMigration {
    let mut object = json!({
        "apiVersion": "rabbitmq-migration.io/v1alpha1", "kind": "RabbitMQMigration",
        "metadata": {"name": "orders", "namespace": "messaging", "generation": 3},
        "spec": {
            "blue": {"statefulSetName": "rabbitmq", "serviceName": "rabbitmq-headless",
                "credentialsSecret": {"name": "rabbitmq", "username": "user"}},
            "green": {"template": {"image": "rabbitmq:4.0", "storage": {"className": "premium", "size": "64Gi"}}},
            "services": [{"name": "rabbitmq"}],
        },
    });
    if let Some(phase) = phase {
        let plan = json!({"digest": "0123456789abcdef", "summary": ["move Services rabbitmq"]});
        object["status"] = json!({"phase": phase, "observedGeneration": 3, "plan": plan});
    }
    for (path, value) in change.as_object().into_iter().flatten() {
        *object.pointer_mut(path).unwrap() = value.clone();
    }
    serde_json::from_value(object).unwrap()
}

fn at(phase: Phase) -> RabbitMQMigration {
    migration(Some(phase), &json!({}))
}

fn now() -> Timestamp {
    "2026-01-02T03:04:05.678901Z".parse().unwrap()
}

#[test]
fn an_approval_names_the_plan_that_status_shows() {
    let order = approve(&at(Phase::AwaitingApproval), None).unwrap();
    let wanted = json!({"metadata": {"annotations": {"rabbitmq-migration.io/approve": "0123456789abcdef"}}});
    assert_eq!(order.patch, wanted);
    assert!(order.told.contains("move Services rabbitmq"), "{}", order.told);
    assert_eq!(approve(&at(Phase::Probing), Some("0123456789abcdef")).unwrap().patch, wanted);
}

#[test]
fn another_plan_than_the_one_that_was_read_is_not_approved() {
    let other = approve(&at(Phase::AwaitingApproval), Some("fedcba9876543210")).unwrap_err();
    assert!(other.to_string().contains("is 0123456789abcdef, not fedcba9876543210"), "{other}");
    let stale = migration(Some(Phase::AwaitingApproval), &json!({"/metadata/generation": 4}));
    let stale = approve(&stale, None).unwrap_err();
    assert!(stale.to_string().contains("generation 4"), "{stale}");
}

#[test]
fn there_is_nothing_to_approve_before_there_is_a_plan() {
    for early in
        [migration(None, &json!({})), migration(Some(Phase::Preflight), &json!({"/status/plan": null}))]
    {
        assert!(approve(&early, None).unwrap_err().to_string().contains("no plan to approve yet"));
    }
    // Preflight already stores the versions in a plan that has no digest.
    let versions = json!({"/status/plan": {"versions": "3.10.8 -> 4.0.5"}});
    assert!(approve(&migration(Some(Phase::Preflight), &versions), None).is_err());
}

#[test]
fn an_abort_is_a_new_order_each_time() {
    let order = abort(&at(Phase::Switching), "latency", now()).unwrap();
    let value = "2026-01-02T03:04:05.678Z latency";
    assert_eq!(order.patch, json!({"metadata": {"annotations": {"rabbitmq-migration.io/abort": value}}}));
    let later = Timestamp::from_millisecond(now().as_millisecond() + 1).unwrap();
    assert_ne!(abort(&at(Phase::Switching), "latency", later).unwrap().patch, order.patch);
}

#[test]
fn what_would_be_ignored_or_lie_in_wait_is_refused() {
    for phase in Phase::ALL {
        let over = matches!(phase, Phase::Retiring | Phase::Completed | Phase::RolledBack | Phase::Failed);
        assert_eq!(abort(&at(phase), "x", now()).is_err(), over, "abort in {phase}");
        let ended = matches!(phase, Phase::RolledBack | Phase::Failed);
        assert_eq!(retry(&at(phase), now()).is_ok(), ended, "retry in {phase}");
        let moved = matches!(phase, Phase::Switching | Phase::Soaking | Phase::RollingBack);
        assert_eq!(rollback(&at(phase)).is_ok(), moved, "rollback in {phase}");
    }
    let back = migration(Some(Phase::RolledBack), &json!({"/spec": with_outcome("RolledBack")}));
    assert!(retry(&back, now()).unwrap_err().to_string().contains("set it to Migrated first"));
}

fn with_outcome(outcome: &str) -> Value {
    let mut spec = serde_json::to_value(at(Phase::Soaking).spec).unwrap();
    spec["desiredOutcome"] = json!(outcome);
    spec
}

#[test]
fn a_retry_and_a_rollback_write_what_the_operator_reads() {
    let order = retry(&at(Phase::RolledBack), now()).unwrap();
    let value = "2026-01-02T03:04:05.678Z";
    assert_eq!(order.patch, json!({"metadata": {"annotations": {"rabbitmq-migration.io/retry": value}}}));
    let order = rollback(&at(Phase::Soaking)).unwrap();
    assert_eq!(order.patch, json!({"spec": {"desiredOutcome": "RolledBack"}}));
}

#[test]
fn a_pause_is_taken_back_where_it_stands() {
    let key = "rabbitmq-migration.io/pause";
    assert_eq!(pause(&at(Phase::Probing)).patch, json!({"metadata": {"annotations": {key: "true"}}}));
    let mut paused = at(Phase::Probing);
    assert!(resume(&paused).unwrap_err().to_string().contains("is not paused"));
    paused.metadata.annotations = Some([(key.to_owned(), "true".to_owned())].into());
    let annotation = json!({"metadata": {"annotations": {key: null}}});
    assert_eq!(resume(&paused).unwrap().patch, annotation);
    paused.spec.paused = true;
    let mut both = annotation;
    both["spec"] = json!({"paused": false});
    assert_eq!(resume(&paused).unwrap().patch, both);
    paused.metadata.annotations = None;
    assert_eq!(resume(&paused).unwrap().patch, json!({"spec": {"paused": false}}));
}
