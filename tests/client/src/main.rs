//! The command `client`: reads the settings, starts the engines, serves the ledger.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use client::crew::Crew;
use client::http::{serve, settled};
use client::hub::Hub;
use client::settings::{Role, Settings};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// A pod that is told to go waits this long for its last confirms.
const LAST_CONFIRMS: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() -> ExitCode {
    match run(&Settings::parse().role).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("client: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(role: &Role) -> Result<(), String> {
    let (Role::Publish { connect, .. } | Role::Consume { connect, .. } | Role::Work { connect, .. }) = role;
    let crew = Crew::new(role)?;
    let listener = TcpListener::bind(connect.listen)
        .await
        .map_err(|error| format!("cannot listen on {}: {error}", connect.listen))?;
    for engine in crew.engines {
        tokio::spawn(engine.run());
    }
    tokio::select! {
        served = serve(listener, crew.hub.clone()) => served.map_err(|error| error.to_string()),
        ended = told_to_go(&crew.hub) => ended,
    }
}

/// Waits for SIGTERM or SIGINT, then for the last confirms.
async fn told_to_go(hub: &Hub) -> Result<(), String> {
    let mut terminate = signal(SignalKind::terminate()).map_err(|error| error.to_string())?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| error.to_string())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    hub.stop();
    // What is still unconfirmed then may be stored or not; the ledger that knew dies with this process.
    let _ = tokio::time::timeout(LAST_CONFIRMS, settled(hub)).await;
    Ok(())
}
