//! The client's HTTP: `/ledger`, `/stats`, and the few commands a test gives. I/O.

use std::time::Duration;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Json;
use axum::routing::{get, post};
use serde::Deserialize;
use tokio::net::TcpListener;

use crate::document::{Document, Stats};
use crate::hub::Hub;

/// How often `/stop` looks whether all is confirmed.
const LOOK: Duration = Duration::from_millis(10);

/// How long `/stop` waits for the last confirm if it is not told otherwise.
const STOP_TIMEOUT_MS: u64 = 30_000;

/// Serves for ever.
///
/// - `GET /ledger`: everything ([`Document`]).
/// - `GET /stats`: a few numbers ([`Stats`]).
/// - `POST /stop?timeout_ms=30000`: publishes nothing new, waits until all is confirmed; 504 when it is not.
///   A consumer goes on.
/// - `POST /start`: publishes again.
/// - `POST /reset-gaps`: the longest gaps and the worst latency count from now on.
pub async fn serve(listener: TcpListener, hub: Hub) -> std::io::Result<()> {
    axum::serve(listener, router(hub)).await
}

fn router(hub: Hub) -> Router {
    Router::new()
        .route("/ledger", get(async |State(hub): State<Hub>| -> Json<Document> { Json(hub.document()) }))
        .route("/stats", get(async |State(hub): State<Hub>| -> Json<Stats> { Json(hub.stats()) }))
        .route("/stop", post(stop))
        .route("/start", post(async |State(hub): State<Hub>| acted(&hub, Hub::start)))
        .route("/reset-gaps", post(async |State(hub): State<Hub>| acted(&hub, Hub::reset_gaps)))
        .with_state(hub)
}

fn acted(hub: &Hub, act: impl FnOnce(&Hub)) -> Json<Stats> {
    act(hub);
    Json(hub.stats())
}

#[derive(Deserialize)]
struct Stop {
    timeout_ms: Option<u64>,
}

async fn stop(State(hub): State<Hub>, Query(stop): Query<Stop>) -> (StatusCode, Json<Stats>) {
    hub.stop();
    let patience = Duration::from_millis(stop.timeout_ms.unwrap_or(STOP_TIMEOUT_MS));
    let status = match tokio::time::timeout(patience, settled(&hub)).await {
        Ok(()) => StatusCode::OK,
        Err(_) => StatusCode::GATEWAY_TIMEOUT,
    };
    (status, Json(hub.stats()))
}

/// Waits until nothing is sent that is not confirmed.
pub async fn settled(hub: &Hub) {
    while !hub.is_settled() {
        tokio::time::sleep(LOOK).await;
    }
}
