//! What a person orders, as a merge patch of annotations or spec. Pure: whether to obey is the operator's.
//!
//! Only what the operator would ignore, or what would lie in wait for a later phase, is refused here.

use crate::error::Error;
use api::spec::Outcome;
use api::{ABORT, APPROVE, PAUSE, Phase, RETRY, RabbitMQMigration};
use jiff::Timestamp;
use serde_json::{Value, json};

/// An order.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// The merge patch.
    pub patch: Value,
    /// What was ordered, for people.
    pub told: String,
}

/// Approves the plan that status shows; with `only`, no other one.
pub fn approve(migration: &RabbitMQMigration, only: Option<&str>) -> Result<Order, Error> {
    let name = name(migration);
    let status = migration.status.as_ref();
    let plan = status.and_then(|status| status.plan.as_ref()).filter(|plan| !plan.digest.is_empty());
    let Some(plan) = plan else {
        return Err(refused(format!("{name} has no plan to approve yet: it is in {}", phase(migration))));
    };
    if let Some(generation) = unseen(migration) {
        let text = "the operator has not seen this spec yet, so that its plan is another one; try again";
        return Err(refused(format!("{name} has generation {generation}: {text}")));
    }
    if let Some(only) = only.filter(|only| *only != plan.digest) {
        return Err(refused(format!("the plan of {name} is {}, not {only}: read it first", plan.digest)));
    }
    let summary: Vec<String> = plan.summary.iter().map(|line| format!("\n  {line}")).collect();
    Ok(Order {
        patch: annotation(APPROVE, &plan.digest),
        told: format!("approved plan {} of {name}:{}", plan.digest, summary.concat()),
    })
}

/// Aborts. The time makes it a new order: the operator carries out each value once.
pub fn abort(migration: &RabbitMQMigration, reason: &str, now: Timestamp) -> Result<Order, Error> {
    let name = name(migration);
    let end = match current(migration) {
        phase @ (Phase::Retiring | Phase::Completed | Phase::RolledBack | Phase::Failed) => {
            return Err(refused(format!("{name} is in {phase}: there is nothing to abort any more")));
        }
        phase if phase.is_before_switch() => "what was made is undone",
        _ => "traffic goes back to blue",
    };
    let value = format!("{} {reason}", stamp(now));
    Ok(Order { patch: annotation(ABORT, &value), told: format!("aborted {name}: {end}") })
}

/// Starts again. Elsewhere than at an end the order would lie in wait for one.
pub fn retry(migration: &RabbitMQMigration, now: Timestamp) -> Result<Order, Error> {
    let name = name(migration);
    let phase = current(migration);
    if !matches!(phase, Phase::RolledBack | Phase::Failed) {
        return Err(refused(format!("{name} is in {phase}: a retry starts from RolledBack or Failed")));
    }
    if migration.spec.desired_outcome == Outcome::RolledBack {
        let text = "spec.desiredOutcome is RolledBack: set it to Migrated first";
        return Err(refused(format!("{name} would only go back again: {text}")));
    }
    Ok(Order {
        patch: annotation(RETRY, &stamp(now)),
        told: format!("{name} starts again from {}", Phase::Preflight),
    })
}

/// Asks for blue to serve.
pub fn rollback(migration: &RabbitMQMigration) -> Result<Order, Error> {
    let name = name(migration);
    let phase = current(migration);
    let when = match phase {
        Phase::Retiring | Phase::Completed => {
            return Err(refused(format!("{name} is in {phase}: there is no way back from here")));
        }
        Phase::RolledBack | Phase::Failed => {
            return Err(refused(format!("{name} is in {phase}: nothing moves any more")));
        }
        phase if phase.is_before_switch() => {
            return Err(refused(format!("{name} is in {phase}: nothing was moved yet; abort undoes it")));
        }
        _ => "traffic goes back to blue",
    };
    Ok(Order {
        patch: json!({"spec": {"desiredOutcome": Outcome::RolledBack}}),
        told: format!("spec.desiredOutcome of {name} is RolledBack: {when}"),
    })
}

/// Pauses by annotation, so that a spec kept in Git is not touched.
pub fn pause(migration: &RabbitMQMigration) -> Order {
    let name = name(migration);
    let when = if current(migration).is_switch() {
        "at the next point where no client is refused"
    } else {
        "the operator goes on measuring"
    };
    Order { patch: annotation(PAUSE, "true"), told: format!("paused {name}: {when}") }
}

/// Takes the annotation away, and `spec.paused` where that is set.
pub fn resume(migration: &RabbitMQMigration) -> Result<Order, Error> {
    let name = name(migration);
    let annotated = annotations(migration).is_some_and(|all| all.contains_key(PAUSE));
    let mut patch = json!({});
    let mut told = Vec::new();
    if annotated {
        patch["metadata"] = json!({"annotations": {PAUSE: null}});
        told.push("annotation removed");
    }
    if migration.spec.paused {
        patch["spec"] = json!({"paused": false});
        told.push("spec.paused is false");
    }
    if told.is_empty() {
        return Err(refused(format!("{name} is not paused")));
    }
    Ok(Order { patch, told: format!("{name} goes on: {}", told.join(", ")) })
}

/// The generation of the spec, where status was not computed from it yet.
pub fn unseen(migration: &RabbitMQMigration) -> Option<i64> {
    let generation = migration.metadata.generation?;
    let observed = migration.status.as_ref().map_or(0, |status| status.observed_generation);
    (generation > observed).then_some(generation)
}

fn annotation(key: &str, value: &str) -> Value {
    json!({"metadata": {"annotations": {key: value}}})
}

fn annotations(migration: &RabbitMQMigration) -> Option<&std::collections::BTreeMap<String, String>> {
    migration.metadata.annotations.as_ref()
}

fn current(migration: &RabbitMQMigration) -> Phase {
    migration.status.as_ref().and_then(|status| status.phase).unwrap_or_default()
}

fn phase(migration: &RabbitMQMigration) -> String {
    let stored = migration.status.as_ref().and_then(|status| status.phase);
    stored.map_or_else(|| "no phase yet".to_owned(), |phase| phase.to_string())
}

fn name(migration: &RabbitMQMigration) -> &str {
    migration.metadata.name.as_deref().unwrap_or_default()
}

/// Milliseconds: two orders by one person are never the same.
fn stamp(now: Timestamp) -> String {
    format!("{now:.3}")
}

fn refused(text: String) -> Error {
    Error::Order(text)
}
