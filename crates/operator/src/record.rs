//! Writes status, bounded, then events, then metrics. The only writer of status; computes nothing.

use crate::body::Memory;
use crate::controller::Shared;
use crate::reconcile::PassError;
use api::{RabbitMQMigration, RabbitMQMigrationStatus};
use jiff::Timestamp;
use kube::api::PostParams;
use kube::runtime::events::{Event, EventType};
use kube::{Api, Resource};

/// How often progress alone is written: each write makes watchers and Argo CD refresh.
const PROGRESS_SECONDS: i64 = 4;
/// Longest note of an event that the API server takes.
const NOTE_LENGTH: usize = 1000;

/// Whether `new` must be written: at once where phase, a condition or the wait's reason changed, else
/// progress every few seconds.
pub fn is_due(
    memory: &mut Memory,
    old: Option<&RabbitMQMigrationStatus>,
    new: &RabbitMQMigrationStatus,
) -> bool {
    let Some(old) = old else { return true };
    if old == new {
        return false;
    }
    let contract = |s: &RabbitMQMigrationStatus| {
        let conditions: Vec<_> =
            s.conditions.iter().map(|c| (c.type_.clone(), c.status.clone(), c.reason.clone())).collect();
        (s.phase, s.observed_generation, conditions, s.wait.as_ref().map(|w| w.reason.clone()))
    };
    let aged =
        memory.recorded_at.is_none_or(|at| Timestamp::now().as_second() - at.as_second() >= PROGRESS_SECONDS);
    contract(old) != contract(new) || aged
}

/// Writes the status with the resourceVersion that it was computed from, then tells people and metrics. What is
/// stored is bounded here: an object that outgrows the API server can no longer be written.
pub async fn record(
    shared: &Shared,
    migration: &RabbitMQMigration,
    status: &RabbitMQMigrationStatus,
) -> Result<(), PassError> {
    let metadata = &migration.metadata;
    let name = metadata.name.clone().unwrap_or_default();
    let api: Api<RabbitMQMigration> =
        Api::namespaced(shared.body.client.clone(), metadata.namespace.as_deref().unwrap_or_default());
    let mut updated = migration.clone();
    updated.status = Some(status.bounded());
    updated.metadata.managed_fields = None;
    api.replace_status(&name, &PostParams::default(), &updated)
        .await
        .map_err(|e| PassError::Record { name, source: Box::new(e) })?;
    tell(shared, migration, status).await;
    shared.metrics.show(migration, status);
    Ok(())
}

/// One event per transition.
async fn tell(shared: &Shared, migration: &RabbitMQMigration, status: &RabbitMQMigrationStatus) {
    let old = migration.status.as_ref();
    let phase = status.phase.unwrap_or_default();
    if old.and_then(|s| s.phase) != status.phase {
        publish(shared, migration, EventType::Normal, phase.as_str(), &format!("phase {phase}")).await;
    }
    let stalled = |s: &RabbitMQMigrationStatus| {
        s.conditions
            .iter()
            .find(|c| c.type_ == api::conditions::STALLED && c.status == "True")
            .map(|c| (c.reason.clone(), c.message.clone()))
    };
    if let Some((reason, message)) = stalled(status)
        && old.and_then(stalled).is_none_or(|(before, _)| before != reason)
    {
        publish(shared, migration, EventType::Warning, &reason, &message).await;
    }
}

/// Tells that a deleted migration goes though something of ours may be left.
pub async fn warn_of_leftovers(shared: &Shared, migration: &RabbitMQMigration) {
    let exit = migration.status.as_ref().map(|s| s.manual_exit.join(" && ")).unwrap_or_default();
    let note = format!(
        "cleaning up did not end in time: broker objects that begin with rmqm. may be left on either side. {exit}"
    );
    publish(shared, migration, EventType::Warning, "LeftBehind", &note).await;
}

async fn publish(shared: &Shared, migration: &RabbitMQMigration, type_: EventType, reason: &str, note: &str) {
    let event = Event {
        type_,
        reason: reason.to_owned(),
        note: Some(note.chars().take(NOTE_LENGTH).collect()),
        action: "Migrate".to_owned(),
        secondary: None,
    };
    if let Err(error) = shared.recorder.publish(&event, &migration.object_ref(&())).await {
        tracing::warn!(%error, reason, "an event was not published");
    }
}
