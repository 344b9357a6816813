//! One reconcile: read fresh, parse, run a slice, record, requeue.

use crate::controller::Shared;
use crate::{claim, finalizer, record, slice};
use api::{RabbitMQMigration, RabbitMQMigrationStatus};
use decide::plan::Plan;
use decide::step::{Reason, Step};
use jiff::Timestamp;
use kube::Api;
use kube::runtime::controller::Action;
use std::sync::Arc;
use std::time::Duration;

/// A pass that could not be recorded.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    /// The migration could not be read.
    #[error("read migration {name}")]
    Read {
        /// Its name.
        name: String,
        /// The cause.
        #[source]
        source: Box<kube::Error>,
    },
    /// It could not be claimed for this epoch.
    #[error("claim {name} for this epoch")]
    Claim {
        /// Its name.
        name: String,
        /// The cause.
        #[source]
        source: Box<kube::Error>,
    },
    /// Its finalizer could not be changed.
    #[error("change the finalizer of {name}")]
    Finalizer {
        /// Its name.
        name: String,
        /// The cause.
        #[source]
        source: Box<kube::Error>,
    },
    /// Its status could not be written.
    #[error("write the status of {name}")]
    Record {
        /// Its name.
        name: String,
        /// The cause.
        #[source]
        source: Box<kube::Error>,
    },
    /// It did not come to an end.
    #[error("work on {name}")]
    Cut {
        /// Its name.
        name: String,
        /// The cause.
        #[source]
        source: Box<tokio::task::JoinError>,
    },
}

impl PassError {
    /// True where a write was refused because somebody wrote between: a person, or another leader.
    pub fn is_conflict(&self) -> bool {
        match self {
            Self::Read { source, .. }
            | Self::Claim { source, .. }
            | Self::Finalizer { source, .. }
            | Self::Record { source, .. } => {
                matches!(&**source, kube::Error::Api(status) if status.code == 409)
            }
            Self::Cut { .. } => false,
        }
    }
}

/// One pass. Where a write of it was refused the Lease is looked at: another may lead.
pub async fn reconcile(cached: Arc<RabbitMQMigration>, shared: Arc<Shared>) -> Result<Action, PassError> {
    let outcome = Box::pin(pass(&cached, &shared)).await;
    if outcome.as_ref().is_err_and(PassError::is_conflict) {
        let body = &shared.body;
        body.epoch.confirm(body.client.clone(), &body.settings).await;
    }
    outcome
}

/// Reads the migration anew (the cache may be older than our own last write), and works on it for one slice.
async fn pass(cached: &RabbitMQMigration, shared: &Shared) -> Result<Action, PassError> {
    let metadata = &cached.metadata;
    let (namespace, name) =
        (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default());
    let migrations: Api<RabbitMQMigration> = Api::namespaced(shared.body.client.clone(), &namespace);
    let read = migrations.get_opt(&name).await;
    let Some(migration) = read.map_err(|e| PassError::Read { name: name.clone(), source: Box::new(e) })?
    else {
        shared.metrics.forget(&namespace, &name);
        shared.forget(metadata.uid.as_deref().unwrap_or_default()).await;
        return Ok(Action::await_change());
    };
    let change = |e| PassError::Finalizer { name: name.clone(), source: Box::new(e) };
    let deleted = migration.metadata.deletion_timestamp.is_some();
    if deleted && !finalizer::is_on(&migration) {
        return Ok(Action::await_change());
    }
    if deleted && finalizer::is_pointless(&shared.body, &migration).await {
        finalizer::remove(&shared.body, &migration).await.map_err(change)?;
        return Ok(Action::await_change());
    }
    if deleted && finalizer::is_overdue(&migration) {
        record::warn_of_leftovers(shared, &migration).await;
        release_record(shared, &migration).await;
        finalizer::remove(&shared.body, &migration).await.map_err(change)?;
        return Ok(Action::await_change());
    }
    if !claim::is_made(&shared.body, &migration) {
        let claimed = claim::make(&shared.body, &migration).await;
        claimed.map_err(|e| PassError::Claim { name: name.clone(), source: Box::new(e) })?;
        return Ok(Action::requeue(Duration::ZERO));
    }
    work(shared, &migration).await
}

async fn work(shared: &Shared, migration: &RabbitMQMigration) -> Result<Action, PassError> {
    let plan = match Plan::parse(migration) {
        Ok(plan) => plan,
        Err(invalid) => {
            let detail = format!("{}: {}", invalid.field, invalid.detail);
            let status =
                decide::conditions::stopped(migration, Reason::InvalidSpec, &detail, Timestamp::now());
            record::record(shared, migration, &status).await?;
            return Ok(Action::await_change());
        }
    };
    let memory = shared.memory(&plan.uid).await;
    let mut memory = memory.lock().await;
    if let Some(left) = memory.still_rests(&plan, Timestamp::now()) {
        return Ok(Action::requeue(left));
    }
    for fact in shared.marks.take(&plan.uid) {
        memory.read_at.remove(&fact);
    }
    let outcome = slice::run(shared, migration, &plan, &mut memory).await;
    let done = matches!(&outcome.step, Step::Stop(wait) if wait.reason == Reason::CleaningUp);
    if plan.orders.deleted && done {
        let change = |e| PassError::Finalizer { name: plan.name.clone(), source: Box::new(e) };
        finalizer::remove(&shared.body, migration).await.map_err(change)?;
        return Ok(Action::await_change());
    }
    // What is stored is bounded, so that only bounded ones can be compared.
    let status = outcome.status.bounded();
    if record::is_due(&mut memory, migration.status.as_ref(), &status) {
        record::record(shared, migration, &status).await?;
        memory.recorded_at = Some(Timestamp::now());
    }
    memory.rest(&plan, outcome.again_in, Timestamp::now());
    Ok(Action::requeue(outcome.again_in))
}

/// Lets the SwitchRecord outlive the object: it holds original limits and the commands of the way out.
async fn release_record(shared: &Shared, migration: &RabbitMQMigration) {
    let Ok(plan) = Plan::parse(migration) else { return };
    let status = stored(migration);
    let scene = crate::body::Scene { body: &shared.body, migration, plan: &plan, status: &status };
    if let Err(error) = crate::act::kubernetes::release_record(&scene).await {
        tracing::warn!(error = crate::error::chain(&error), "the SwitchRecord goes with its migration");
    }
}

/// The stored status, or an empty one.
pub fn stored(migration: &RabbitMQMigration) -> RabbitMQMigrationStatus {
    migration.status.clone().unwrap_or_default()
}
