//! Starts and stops the canary: clients of our own that live through the switch like everybody else.

mod ledger;

use super::broker::{Room, failed, make_place};
use crate::body::{Memory, Scene};
use crate::broker_link::BrokerLink;
use crate::broker_link::{host_port, password};
use crate::error::ActError;
use decide::fact::Fact;
use decide::side::Side;
use decide::world::LedgerView;
use k8s_openapi::api::core::v1::{Service, ServicePort};
use kube::Api;
use ledger::{Base, Watch};
use rabbit::Credentials;
use rabbit::amqp::{Canary, CanaryConfig, CanaryHandle, Declare, LedgerSnapshot};
use std::fmt;
use std::time::Instant;

/// The canary's queue, in a vhost of its own.
const QUEUE: &str = "canary";
/// Two connections, twice that while they come back, and ours.
const ROOM: Room = Room { connections: 16, queues: 4 };
/// The name of the port that clients use.
const PORT_NAME: &str = "amqp";

/// The canary of one migration: who it is, whether it runs, and what it counted.
pub struct CanaryState {
    creds: Credentials,
    /// Marks our messages: another process's are not ours.
    mark: String,
    life: Life,
    base: Base,
    watch: Watch,
}

enum Life {
    Running(CanaryHandle),
    Stopped(Box<LedgerSnapshot>),
}

impl fmt::Debug for CanaryState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CanaryState").field("running", &self.is_running()).finish_non_exhaustive()
    }
}

impl CanaryState {
    /// Whether it publishes.
    pub const fn is_running(&self) -> bool {
        match self.life {
            Life::Running(_) => true,
            Life::Stopped(_) => false,
        }
    }

    /// What it counts now, what was counted before a restart included.
    pub fn view(&mut self) -> LedgerView {
        match &self.life {
            Life::Running(handle) => {
                let snapshot = handle.ledger();
                let lost = self.watch.overdue(&snapshot, Instant::now());
                self.base.plus(&snapshot, lost, true)
            }
            Life::Stopped(snapshot) => self.base.plus(snapshot, snapshot.lost(), false),
        }
    }
}

/// Makes the canary's vhost and user on both sides, with one password, and starts it through the first moved
/// Service. One that runs goes on; one that was stopped goes on with its numbers. A cut leaves what cleaning
/// finds by name.
pub async fn start(scene: &Scene<'_>, memory: &mut Memory) -> Result<(), ActError> {
    if memory.canary.as_ref().is_some_and(CanaryState::is_running) {
        return Ok(());
    }
    let address = address(scene).await?;
    let interrupted = memory.canary.is_none() && was_there(scene, memory).await?;
    let (creds, mark, resume, base) = match memory.canary.take() {
        Some(CanaryState { creds, mark, life: Life::Stopped(snapshot), base, .. }) => {
            (creds, mark, Some(*snapshot), base)
        }
        // Not reached: one that runs returned above.
        Some(CanaryState { creds, mark, life: Life::Running(handle), base, .. }) => {
            (creds, mark, Some(handle.ledger()), base)
        }
        None => {
            let made = |error| failed("make a password", Side::Blue)(error);
            let creds = Credentials::new(scene.plan.names.canary_user(), password().map_err(made)?);
            let mark = password().map_err(made)?.expose().to_owned();
            (creds, mark, None, base(scene, interrupted))
        }
    };
    let vhost = scene.plan.names.canary_vhost();
    for side in Side::BOTH {
        let place = make_place(memory.link(side), &vhost, &creds, ROOM);
        place.await.map_err(failed("make the canary's vhost", side))?;
        // On both sides from the start: should this process end, what is left can still be carried.
        make_queue(memory.link(side), &vhost).await.map_err(failed("make the canary's queue", side))?;
    }
    let config = CanaryConfig {
        declare: Declare::Quorum,
        name: scene.plan.names.canary_user(),
        resume,
        ..CanaryConfig::new(&address, &vhost, creds.clone(), QUEUE, &mark)
    };
    let life = Life::Running(Canary::start(config));
    tracing::info!(address, interrupted, "canary started");
    memory.canary = Some(CanaryState { creds, mark, life, base, watch: Watch::default() });
    memory.read_at.remove(&Fact::Ledger);
    Ok(())
}

/// Makes the queue as the canary declares it. Idempotent.
async fn make_queue(link: &mut BrokerLink, vhost: &str) -> rabbit::Result<()> {
    link.permit(vhost).await?;
    link.ask(|client| {
        let vhost = vhost.to_owned();
        async move {
            let quorum = serde_json::json!({"durable": true, "arguments": {"x-queue-type": "quorum"}});
            client.put_queue(&vhost, QUEUE, &quorum).await
        }
    })
    .await
}

/// Stops the canary, waits for what is confirmed and not delivered, and keeps the counts. Bounded by some
/// twenty seconds.
pub async fn stop(memory: &mut Memory) -> Result<(), ActError> {
    memory.read_at.remove(&Fact::Ledger);
    let Some(canary) = memory.canary.take() else { return Ok(()) };
    let life = match canary.life {
        Life::Running(handle) => Life::Stopped(Box::new(handle.stop().await)),
        Life::Stopped(snapshot) => Life::Stopped(snapshot),
    };
    memory.canary = Some(CanaryState { life, ..canary });
    Ok(())
}

/// Counts from before a restart.
fn base(scene: &Scene<'_>, interrupted: bool) -> Base {
    scene.status.ledger.as_ref().filter(|_| interrupted).map(Base::interrupted).unwrap_or_default()
}

/// Whether an earlier process's canary was not cleaned away: it may have confirmed messages that nobody stored.
async fn was_there(scene: &Scene<'_>, memory: &mut Memory) -> Result<bool, ActError> {
    let name = scene.plan.names.canary_vhost();
    for side in Side::BOTH {
        let vhosts = memory.link(side).ask(|client| async move { client.vhosts().await });
        let vhosts = vhosts.await.map_err(failed("list vhosts", side))?;
        if vhosts.iter().any(|vhost| vhost.name == name) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Where clients of the first moved Service connect to. Its own address, so that a cache of names does not
/// blur what is measured; a headless one has only its name.
async fn address(scene: &Scene<'_>) -> Result<String, ActError> {
    let Some(name) = scene.plan.services.first() else {
        return Err(ActError::Missing { what: "a Service that moves".to_owned() });
    };
    let namespace = &scene.plan.namespace;
    let api: Api<Service> = Api::namespaced(scene.body.client.clone(), namespace);
    let service = api.get(name).await.map_err(|source| ActError::Kubernetes {
        attempt: "get",
        kind: "Service",
        name: name.clone(),
        source: Box::new(source),
    })?;
    let spec = service.spec.unwrap_or_default();
    let host = spec
        .cluster_ip
        .filter(|ip| !ip.is_empty() && ip != "None")
        .unwrap_or_else(|| format!("{name}.{namespace}.svc"));
    let port = port(&spec.ports.unwrap_or_default());
    let port = port.ok_or_else(|| ActError::Missing { what: format!("an AMQP port of Service {name}") })?;
    Ok(host_port(&host, port))
}

/// The port named `amqp`, else the one with its number.
fn port(ports: &[ServicePort]) -> Option<u16> {
    let named = ports.iter().find(|port| port.name.as_deref() == Some(PORT_NAME));
    let numbered = || ports.iter().find(|port| port.port == i32::from(crate::broker_link::AMQP));
    named.or_else(numbered).and_then(|port| u16::try_from(port.port).ok())
}
