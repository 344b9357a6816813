//! Observes each fact. None fails as a whole: a failure is a reading of its own. Does I/O.

pub mod broker;
pub mod kubernetes;
pub mod probe;

use crate::body::{Memory, Scene};
use decide::fact::{Fact, Want};
use jiff::Timestamp;
use std::time::Instant;

/// Observes what is wanted, in order: what freezes is read before what it freezes. A reading younger than
/// the want's `max_age` is kept.
pub async fn observe(scene: &Scene<'_>, memory: &mut Memory, wants: &[Want]) {
    for want in wants {
        if !memory.is_fresh(want, Timestamp::now()) {
            let begun = Instant::now();
            observe_one(scene, memory, want.fact).await;
            let at = Timestamp::now();
            tracing::debug!(fact = ?want.fact, millis = begun.elapsed().as_millis(), "read");
            memory.read_at.insert(want.fact, at);
            memory.world.remember(want.fact, at);
        }
    }
}

/// Observes one fact.
async fn observe_one(scene: &Scene<'_>, memory: &mut Memory, fact: Fact) {
    match fact {
        Fact::Permissions => memory.world.permissions = kubernetes::permissions(scene).await,
        Fact::Credentials(side) => {
            *memory.world.credentials.of_mut(side) = kubernetes::credentials(scene, memory, side).await;
        }
        Fact::StatefulSet(side) => {
            *memory.world.stateful_sets.of_mut(side) = kubernetes::stateful_set(scene, side).await;
        }
        Fact::Pods(side) => *memory.world.pods.of_mut(side) = kubernetes::pods(scene, memory, side).await,
        Fact::Others => memory.world.others = kubernetes::others(scene).await,
        Fact::Services => memory.world.services = kubernetes::services(scene).await,
        Fact::Entrances => memory.world.entrances = kubernetes::entrances(scene).await,
        Fact::StorageClass => memory.world.storage_class = kubernetes::storage_class(scene).await,
        Fact::Nodes => memory.world.nodes = kubernetes::nodes(scene).await,
        Fact::Volumes => memory.world.volumes = kubernetes::volumes(scene).await,
        Fact::Record => memory.world.record = kubernetes::record(scene).await,
        Fact::Routes => memory.world.routes = kubernetes::routes(scene, memory).await,
        Fact::Broker(side) => {
            *memory.world.brokers.of_mut(side) = broker::broker(scene, memory, side).await;
        }
        Fact::Epoch(side) => *memory.world.epochs.of_mut(side) = broker::epoch(scene, memory, side).await,
        Fact::Users(side) => *memory.world.users.of_mut(side) = broker::users(scene, memory, side).await,
        Fact::Rehearsal => memory.world.rehearsal = broker::rehearsal(memory),
        Fact::Definitions => memory.world.definitions = broker::definitions(scene, memory).await,
        Fact::Connections(side) => {
            *memory.world.connections.of_mut(side) = broker::connections(scene, memory, side).await;
        }
        Fact::Queues(side) => *memory.world.queues.of_mut(side) = broker::queues(scene, memory, side).await,
        Fact::Depths(side) => *memory.world.depths.of_mut(side) = broker::depths(scene, memory, side).await,
        Fact::Emptiness(side) => {
            *memory.world.emptiness.of_mut(side) = broker::emptiness(scene, memory, side).await;
        }
        Fact::Traffic(side) => {
            *memory.world.traffic.of_mut(side) = broker::traffic(scene, memory, side).await;
        }
        Fact::Bindings(side) => {
            *memory.world.bindings.of_mut(side) = broker::bindings(scene, memory, side).await;
        }
        Fact::Leftovers(side) => {
            *memory.world.leftovers.of_mut(side) = broker::leftovers(scene, memory, side).await;
        }
        Fact::Probe => memory.world.probe = probe::probe(scene, memory).await,
        Fact::Ledger => memory.world.ledger = probe::ledger(memory),
    }
}
