//! Starts and stops the latency probe: first the load test of green, then both sides at once.

mod config;

use super::broker::{Room, delete_user, delete_vhost, failed, make_place};
use crate::body::{Memory, Scene};
use crate::broker_link::password;
use crate::error::ActError;
use crate::observe::probe::{Run, addresses, evidence_key, forget};
use decide::fact::Fact;
use decide::side::Side;
use probe::{Probe, StartError};
use rabbit::Credentials;
use std::sync::Arc;

/// Room for the probe: a few connections and queues, and as many again while it reconnects.
const ROOM: Room = Room { connections: 64, queues: 64 };

/// Why nothing runs where others do.
const NO_SLOT: &str = "waits for its place: other migrations probe (ProbeSlot)";

/// Makes the probe's vhost and user where it shall probe, and starts it: the load test if it is asked for and
/// not done, else the A/B run. What already runs for the same goes on. Where other migrations probe it waits
/// for its place. A cut leaves what cleaning finds by name.
pub async fn start(scene: &Scene<'_>, memory: &mut Memory, sides: &[Side]) -> Result<(), ActError> {
    memory.read_at.remove(&Fact::Probe);
    let (addresses, key) = (addresses(memory), evidence_key(scene));
    let state = &memory.probe;
    let goes_on =
        state.run.as_ref().is_some_and(|run| run.sides == sides && run.useless(&addresses, &key).is_none());
    if goes_on || state.load.is_some() || sides.is_empty() {
        return Ok(());
    }
    memory.probe.wanted = sides.to_vec();
    if memory.probe.slot.is_none() {
        let Ok(slot) = Arc::clone(&scene.body.probe_slots).try_acquire_owned() else {
            NO_SLOT.clone_into(&mut memory.probe.note);
            return Ok(());
        };
        memory.probe.slot = Some(slot);
    }
    end_run(memory).await;
    if memory.probe.key.as_deref() != Some(&key) || memory.probe.stopped {
        memory.probe.begin_anew(scene, &key);
    }
    // Never once green serves: the load test is for a green that is alone.
    let before = scene.status.phase.unwrap_or_default().is_before_switch();
    let undone = before && memory.probe.load_test.is_none();
    let load_test = scene.plan.gate.load_test.as_ref().filter(|_| undone);
    let creds = credentials(scene, memory)?;
    let places: Vec<Side> = if load_test.is_some() { vec![Side::Green] } else { sides.to_vec() };
    let vhost = scene.plan.names.probe_vhost();
    for side in &places {
        let place = make_place(memory.link(*side), &vhost, &creds, ROOM);
        place.await.map_err(failed("make the probe's vhost", *side))?;
    }
    if let Some(asked) = load_test {
        let (config, duration) = config::load_test(scene.plan, asked, &addresses, &creds);
        memory.probe.load = Some(Probe::load_test(config, duration).map_err(|error| refused(&error))?);
        tracing::info!(rate = asked.rate_per_second, seconds = asked.duration_seconds, "load test started");
        return Ok(());
    }
    let config = config::both(scene.plan, sides, &addresses, &creds);
    let handle = Probe::start(config).map_err(|error| refused(&error))?;
    let base = memory.probe.evidence.newest.map_or(0, |newest| newest.saturating_add(1));
    memory.probe.note = String::new();
    memory.probe.run = Some(Run { handle, sides: sides.to_vec(), addresses, key, base, next: 0 });
    tracing::info!(?sides, "probe started");
    Ok(())
}

/// Stops the probe, removes its vhost and user from both sides, and forgets what was stored. What was judged
/// can be seen until the next start. A side that cannot be reached is left to cleaning.
pub async fn stop(scene: &Scene<'_>, memory: &mut Memory) -> Result<(), ActError> {
    give_up(scene, memory).await?;
    for side in Side::BOTH {
        let link = memory.link(side);
        if link.pods().is_empty() {
            continue;
        }
        link.sessions.drop_vhost(&scene.plan.names.probe_vhost());
        let vhost = delete_vhost(link, &scene.plan.names.probe_vhost()).await;
        vhost.map_err(failed("delete the probe's vhost", side))?;
        let user = delete_user(link, &scene.plan.names.probe_user()).await;
        user.map_err(failed("delete the probe's user", side))?;
    }
    Ok(())
}

/// Ends whatever runs, gives our place to others and forgets what was stored. Vhosts and users stay.
pub async fn give_up(scene: &Scene<'_>, memory: &mut Memory) -> Result<(), ActError> {
    memory.read_at.remove(&Fact::Probe);
    end_run(memory).await;
    if let Some(load) = memory.probe.load.take() {
        // Waits for a thread: not on this one. What is left on the broker goes with the vhost.
        let _ = tokio::task::spawn_blocking(move || load.stop()).await;
    }
    memory.probe.slot = None;
    memory.probe.stopped = true;
    memory.probe.note = String::new();
    forget(scene).await.map_err(|source| ActError::Kubernetes {
        attempt: "delete",
        kind: "ConfigMap",
        name: scene.plan.names.evidence(),
        source: Box::new(source),
    })
}

/// Ends the run, if there is one, and removes its queues.
async fn end_run(memory: &mut Memory) {
    let Some(run) = memory.probe.run.take() else { return };
    match tokio::task::spawn_blocking(move || run.handle.stop()).await {
        Ok(left) => {
            for leftover in left {
                tracing::info!(
                    side = leftover.side,
                    error = leftover.error,
                    "probe queues expire by themselves"
                );
            }
        }
        Err(error) => tracing::warn!(%error, "the probe's thread broke off"),
    }
}

/// The probe's user: one password on both sides, in memory only.
fn credentials(scene: &Scene<'_>, memory: &mut Memory) -> Result<Credentials, ActError> {
    let secret = match &memory.probe.password {
        Some(secret) => secret.clone(),
        None => password().map_err(failed("make a password", Side::Blue))?,
    };
    memory.probe.password = Some(secret.clone());
    Ok(Credentials::new(scene.plan.names.probe_user(), secret))
}

fn refused(error: &StartError) -> ActError {
    ActError::Missing { what: format!("a probe that can run ({error})") }
}
