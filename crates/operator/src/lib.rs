//! The operator: watches `RabbitMQMigration` objects and carries out what the brain decides.
//!
//! A library, so that the ring `tests/passes` can drive it against an API server of its own; `main` only parses
//! arguments.

pub mod access;
mod act;
pub mod body;
mod broker_link;
mod claim;
pub mod controller;
mod error;
mod finalizer;
pub mod interest;
pub mod lease;
pub mod metrics;
mod observe;
pub mod reconcile;
mod record;
mod serve;
pub mod settings;
mod slice;
pub mod wake;

use metrics::Metrics;
use settings::{Settings, Timing};
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Why the operator ends, where nobody asked it to.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Serves health and metrics at once, then leads until a signal comes. A standby replica is ready: it is there
/// to take over.
pub async fn run(settings: Settings) -> Result<(), Failure> {
    let stop = CancellationToken::new();
    let metrics = Arc::new(Metrics::new());
    let server = tokio::spawn(serve::serve(settings.metrics_address, metrics.clone(), stop.clone()));
    tokio::spawn(stop_on_signal(stop.clone())?);
    let client = kube::Client::try_default().await?;
    let led = lead(client, settings, Timing::default(), metrics, stop.clone()).await;
    stop.cancel();
    server.await??;
    led
}

/// Waits for leadership, reconciles until `stop` or until the lease is lost, and gives the lease back. Fails
/// where it was lost.
pub async fn lead(
    client: kube::Client,
    settings: Settings,
    timing: Timing,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
) -> Result<(), Failure> {
    let epoch = tokio::select! {
        epoch = lease::acquire(client.clone(), &settings, timing) => epoch,
        () = stop.cancelled() => return Ok(()),
    };
    let watchdog = epoch.clone();
    let lost = stop.clone();
    tokio::spawn(async move {
        watchdog.lost().await;
        lost.cancel();
    });
    let body = body::Body::new(client.clone(), settings.clone(), epoch.clone());
    controller::run(body, metrics, timing, stop).await;
    let was_held = epoch.is_held();
    epoch.release(client, &settings).await;
    if was_held { Ok(()) } else { Err("the lease was lost: another replica leads now".into()) }
}

fn stop_on_signal(stop: CancellationToken) -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("asked to stop: finishing the effect at hand");
        stop.cancel();
    })
}
