//! HTTP for people's tools: liveness, readiness and metrics.

use crate::metrics::Metrics;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Serves until `stop`.
pub async fn serve(
    address: SocketAddr,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let router = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(|| async { "ok" }))
        .route("/metrics", get(text))
        .with_state(metrics);
    let listener = tokio::net::TcpListener::bind(address).await?;
    axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await
}

async fn text(State(metrics): State<Arc<Metrics>>) -> Result<String, StatusCode> {
    metrics.text().map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
}
