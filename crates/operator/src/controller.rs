//! The queue: what wakes a migration, how many are worked on at a time, and the error policy.

use crate::body::{Body, Memory};
use crate::claim;
use crate::metrics::{Metrics, PassOutcome};
use crate::reconcile::{self, PassError};
use crate::settings::Timing;
use crate::wake::{self, Marks};
use api::RabbitMQMigration;
use futures::channel::mpsc;
use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt, TryStreamExt, stream};
use kube::Api;
use kube::runtime::controller::{Action, Config, Error};
use kube::runtime::events::{Recorder, Reporter};
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::{PredicateConfig, WatchStreamExt, applier, watcher};
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

/// Migrations worked on at the same time. Each is mostly waiting; a few keep one from starving the others.
const CONCURRENCY: u16 = 8;

/// What every reconcile gets.
pub struct Shared {
    /// Client, settings, epoch.
    pub body: Body,
    /// Metrics.
    pub metrics: Arc<Metrics>,
    /// Events.
    pub recorder: Recorder,
    /// The watch cache, in which orders are noticed while a slice runs.
    pub cache: Store<RabbitMQMigration>,
    /// What changes in Kubernetes made stale.
    pub marks: Arc<Marks>,
    /// Set when the process shall stop.
    pub stop: CancellationToken,
    memories: Mutex<HashMap<String, Arc<Mutex<Memory>>>>,
}

impl Shared {
    /// For the migrations in `cache`.
    pub fn new(
        body: Body,
        metrics: Arc<Metrics>,
        cache: Store<RabbitMQMigration>,
        stop: CancellationToken,
    ) -> Self {
        let reporter = Reporter {
            controller: "rabbitmq-migration-operator".to_owned(),
            instance: Some(body.settings.pod_name.clone()),
        };
        let recorder = Recorder::new(body.client.clone(), reporter);
        Self { body, metrics, recorder, cache, marks: Arc::default(), stop, memories: Mutex::default() }
    }

    /// The memory of one migration, by uid.
    pub async fn memory(&self, uid: &str) -> Arc<Mutex<Memory>> {
        self.memories.lock().await.entry(uid.to_owned()).or_default().clone()
    }

    /// Forgets a migration that is gone.
    pub async fn forget(&self, uid: &str) {
        self.memories.lock().await.remove(uid);
        self.marks.take(uid);
    }
}

/// Reconciles until `stop`: one queue over all namespaces, or one for each that is watched.
pub async fn run(body: Body, metrics: Arc<Metrics>, timing: Timing, stop: CancellationToken) {
    let watched: Vec<Option<String>> = match body.settings.watched() {
        all if all.is_empty() => vec![None],
        some => some.into_iter().map(|namespace| Some(namespace.to_owned())).collect(),
    };
    let queues =
        watched.into_iter().map(|namespace| control(namespace, &body, &metrics, timing, stop.clone()));
    futures::future::join_all(queues).await;
}

async fn control(
    namespace: Option<String>,
    body: &Body,
    metrics: &Arc<Metrics>,
    timing: Timing,
    stop: CancellationToken,
) {
    let client = body.client.clone();
    let migrations: Api<RabbitMQMigration> = match &namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    let (cache, writer) = reflector::store();
    let shared = Arc::new(Shared::new(body.clone(), metrics.clone(), cache.clone(), stop.clone()));
    let (sender, changes) = mpsc::channel(wake::ROOM);
    let wakes = wake::wakes(changes, cache.clone(), shared.marks.clone(), timing.gap);
    let queue = stream::select(orders(migrations, writer), wakes.map(Ok)).take_until(stop.cancelled_owned());
    let config = Config::default().concurrency(CONCURRENCY);
    let reconciling = applier(spawned, on_error, shared, cache, Box::pin(queue), config);
    // Watching has no end of its own; reconciling ends once what runs is finished.
    tokio::select! {
        () = reconciling.for_each(|outcome| async { tell(outcome) }) => {}
        () = wake::watch_all(client, namespace, sender, timing) => {}
    }
}

/// Migrations whose spec, annotations or deletion changed. What we write to status ourselves wakes nobody: each
/// pass says when the next is due.
fn orders(
    migrations: Api<RabbitMQMigration>,
    writer: reflector::store::Writer<RabbitMQMigration>,
) -> impl Stream<Item = Result<ObjectRef<RabbitMQMigration>, watcher::Error>> {
    watcher(migrations, watcher::Config::default())
        .default_backoff()
        .modify(|migration| migration.metadata.managed_fields = None)
        .reflect(writer)
        .touched_objects()
        .predicate_filter(|migration: &RabbitMQMigration| Some(digest(migration)), PredicateConfig::default())
        .map_ok(|migration| ObjectRef::from_obj(&migration))
}

/// What people can change, as a number that differs when it does.
fn digest(migration: &RabbitMQMigration) -> u64 {
    let metadata = &migration.metadata;
    let mut hasher = DefaultHasher::new();
    (&metadata.uid, metadata.generation, &metadata.finalizers).hash(&mut hasher);
    metadata.deletion_timestamp.as_ref().map(|at| at.0.as_second()).hash(&mut hasher);
    let annotations = metadata.annotations.iter().flatten().filter(|(key, _)| *key != claim::EPOCH);
    annotations.for_each(|pair| pair.hash(&mut hasher));
    hasher.finish()
}

/// A pass on a task of its own, so that passes use all cores and one that panics is one that failed.
fn spawned(
    migration: Arc<RabbitMQMigration>,
    shared: Arc<Shared>,
) -> BoxFuture<'static, Result<Action, PassError>> {
    let name = migration.metadata.name.clone().unwrap_or_default();
    let pass = tokio::spawn(reconcile::reconcile(migration, shared).in_current_span());
    async move { pass.await.unwrap_or_else(|cut| Err(PassError::Cut { name, source: Box::new(cut) })) }
        .boxed()
}

/// A pass that could not even be recorded. What an effect meets is in status and backs off there.
#[expect(clippy::needless_pass_by_value, reason = "the controller's signature")]
fn on_error(migration: Arc<RabbitMQMigration>, error: &PassError, shared: Arc<Shared>) -> Action {
    let name = migration.metadata.name.as_deref().unwrap_or_default();
    let cause = crate::error::chain(error);
    tracing::warn!(migration = name, error = cause, "the pass was not recorded");
    shared.metrics.passes.get_or_create(&PassOutcome { outcome: "failed" }).inc();
    Action::requeue(Duration::from_secs(1))
}

/// What went wrong beside the passes, which tell it themselves.
fn tell(outcome: Result<(ObjectRef<RabbitMQMigration>, Action), Error<PassError, watcher::Error>>) {
    match outcome {
        Err(Error::QueueError(error)) => {
            tracing::warn!(error = crate::error::chain(&error), "watch migrations");
        }
        Err(Error::RunnerError(error)) => {
            tracing::error!(error = crate::error::chain(&error), "run passes");
        }
        Ok(_) | Err(Error::ObjectNotFound(_) | Error::ReconcilerFailed(..)) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn migration(generation: i64, annotations: &serde_json::Value, phase: api::Phase) -> RabbitMQMigration {
        let mut migration: RabbitMQMigration = serde_json::from_value(json!({
            "apiVersion": "rabbitmq-migration.io/v1alpha1", "kind": "RabbitMQMigration",
            "metadata": { "name": "m", "namespace": "n", "uid": "u", "generation": generation,
                "annotations": annotations },
            "spec": {
                "blue": { "statefulSetName": "b", "serviceName": "b",
                    "credentialsSecret": { "name": "s", "username": "u" } },
                "green": {}, "services": [{ "name": "rabbitmq" }],
            },
        }))
        .unwrap();
        migration.status = Some(api::RabbitMQMigrationStatus { phase: Some(phase), ..Default::default() });
        migration
    }

    #[test]
    fn what_people_change_wakes_and_what_we_write_does_not() {
        let before = digest(&migration(1, &json!({}), api::Phase::Preflight));
        assert_eq!(before, digest(&migration(1, &json!({}), api::Phase::Probing)), "status");
        assert_eq!(
            before,
            digest(&migration(1, &json!({ claim::EPOCH: "e.1" }), api::Phase::Preflight)),
            "epoch"
        );
        assert_ne!(before, digest(&migration(2, &json!({}), api::Phase::Preflight)), "spec");
        assert_ne!(
            before,
            digest(&migration(1, &json!({ api::RETRY: "1" }), api::Phase::Preflight)),
            "order"
        );
    }
}
