//! Watches, queue and error policy.

use crate::body::{Body, Memory};
use crate::metrics::Metrics;
use crate::reconcile::{self, PassError};
use api::RabbitMQMigration;
use futures::StreamExt;
use kube::Api;
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::events::{Recorder, Reporter};
use kube::runtime::reflector::Store;
use kube::runtime::watcher;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

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
    /// Set when the process shall stop.
    pub stop: CancellationToken,
    memories: Mutex<HashMap<String, Arc<Mutex<Memory>>>>,
}

impl Shared {
    /// The memory of one migration, by uid.
    pub async fn memory(&self, uid: &str) -> Arc<Mutex<Memory>> {
        self.memories.lock().await.entry(uid.to_owned()).or_default().clone()
    }

    /// Forgets a migration that is gone.
    pub async fn forget(&self, uid: &str) {
        self.memories.lock().await.remove(uid);
    }
}

/// Reconciles until `stop`: one controller over all namespaces, or one for each that is watched.
pub async fn run(body: Body, metrics: Arc<Metrics>, stop: CancellationToken) {
    let client = body.client.clone();
    let watched = body.settings.watched();
    let apis: Vec<Api<RabbitMQMigration>> = if watched.is_empty() {
        vec![Api::all(client)]
    } else {
        watched.into_iter().map(|namespace| Api::namespaced(client.clone(), namespace)).collect()
    };
    let controllers = apis.into_iter().map(|api| control(api, body.clone(), metrics.clone(), stop.clone()));
    futures::future::join_all(controllers).await;
}

async fn control(
    migrations: Api<RabbitMQMigration>,
    body: Body,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
) {
    let controller = Controller::new(migrations, watcher::Config::default())
        .with_config(Config::default().concurrency(CONCURRENCY));
    let shared = Arc::new(Shared {
        recorder: Recorder::new(body.client.clone(), reporter(&body)),
        body,
        metrics,
        cache: controller.store(),
        stop: stop.clone(),
        memories: Mutex::default(),
    });
    controller
        .graceful_shutdown_on(stop.cancelled_owned())
        .run(reconcile::reconcile, on_error, shared)
        .for_each(|_| std::future::ready(()))
        .await;
}

fn reporter(body: &Body) -> Reporter {
    Reporter {
        controller: "rabbitmq-migration-operator".to_owned(),
        instance: Some(body.settings.pod_name.clone()),
    }
}

/// A pass that could not even be recorded. What an effect meets is in status and backs off there.
#[expect(clippy::needless_pass_by_value, reason = "the controller's signature")]
fn on_error(migration: Arc<RabbitMQMigration>, error: &PassError, shared: Arc<Shared>) -> Action {
    let name = migration.metadata.name.as_deref().unwrap_or_default();
    let cause = crate::error::chain(error);
    tracing::warn!(migration = name, error = cause, "the pass was not recorded");
    shared.metrics.passes.get_or_create(&crate::metrics::PassOutcome { outcome: "failed" }).inc();
    Action::requeue(Duration::from_secs(1))
}
