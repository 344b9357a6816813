//! What the body holds while it works: the Kubernetes client, and a memory per migration.

use crate::act::import::Import;
use crate::broker_link::BrokerLink;
use crate::observe::probe::ProbeState;
use crate::settings::Settings;
use api::{RabbitMQMigration, RabbitMQMigrationStatus};
use decide::fact::Fact;
use decide::plan::Plan;
use decide::side::{Pair, Side};
use decide::world::{RehearsalView, World};
use jiff::Timestamp;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// What all passes share.
#[derive(Clone)]
pub struct Body {
    /// The Kubernetes client.
    pub client: kube::Client,
    /// Settings, read once in `main`.
    pub settings: Settings,
    /// The epoch: Lease uid and transition count of our leadership.
    pub epoch: crate::lease::Epoch,
    /// How many more migrations may probe: each probe takes a part of a core.
    pub probe_slots: Arc<Semaphore>,
}

/// One migration in one pass: what is fixed while the pass runs.
pub struct Scene<'a> {
    /// What all passes share.
    pub body: &'a Body,
    /// The object as it was read at the beginning of the pass.
    pub migration: &'a RabbitMQMigration,
    /// Its plan.
    pub plan: &'a Plan,
    /// Its status.
    pub status: &'a RabbitMQMigrationStatus,
}

/// What is remembered of one migration between passes. Lost at a restart: everything here can be seen again.
#[derive(Default)]
pub struct Memory {
    /// The last readings.
    pub world: World,
    /// When each fact was read last.
    pub read_at: HashMap<Fact, Timestamp>,
    /// Connections to both brokers.
    pub links: Pair<BrokerLink>,
    /// Blue's definitions and what became of their last import.
    pub import: Import,
    /// The probe and its evidence.
    pub probe: ProbeState,
    /// The canary, while it runs.
    pub canary: Option<crate::act::canary::CanaryState>,
    /// What the rehearsal of the fence showed.
    pub rehearsal: Option<RehearsalView>,
    /// Effects that failed in a row: the pause grows with them.
    pub failures: u32,
    /// When status was written last.
    pub recorded_at: Option<Timestamp>,
}

impl Memory {
    /// The link to a side.
    pub const fn link(&mut self, side: Side) -> &mut BrokerLink {
        self.links.of_mut(side)
    }
}
