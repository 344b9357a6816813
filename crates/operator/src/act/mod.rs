//! Carries out each effect: one small function per effect under one exhaustive match. Decides nothing.

pub mod broker;
pub mod canary;
pub mod green;
pub mod import;
pub mod kubernetes;
pub mod probe;

use crate::body::{Memory, Scene};
use crate::error::ActError;
use crate::metrics::Metrics;
use crate::slice::count_effect;
use decide::effect::Effect;

/// Carries out the effects in order and stops at the first failure.
pub async fn act(
    scene: &Scene<'_>,
    memory: &mut Memory,
    effects: &[Effect],
    metrics: &Metrics,
) -> Result<(), ActError> {
    for effect in effects {
        if effect.is_irreversible() && !scene.body.epoch.is_held() {
            return Err(ActError::LeaseLost { effect: effect.name() });
        }
        tracing::info!(
            migration = %scene.plan.name, namespace = %scene.plan.namespace, effect = effect.name(), "acting"
        );
        let done = act_one(scene, memory, effect).await;
        count_effect(metrics, effect.name(), done.as_ref().map_or_else(ActError::kind, |()| "done"));
        done?;
    }
    Ok(())
}

async fn act_one(scene: &Scene<'_>, memory: &mut Memory, effect: &Effect) -> Result<(), ActError> {
    match effect {
        Effect::EnsureEpochUser(side) => broker::ensure_epoch_user(scene, memory, *side).await,
        Effect::RehearseFence => broker::rehearse_fence(scene, memory).await,
        Effect::EnsureGreen => green::ensure(scene, memory).await,
        Effect::RemoveGreen => green::remove(scene, memory).await,
        Effect::EnableFeatureFlags(side) => broker::enable_feature_flags(scene, memory, *side).await,
        Effect::RebalanceLeaders(side) => broker::rebalance_leaders(scene, memory, *side).await,
        Effect::ImportDefinitions => import::import(scene, memory).await,
        Effect::StartProbe { sides } => probe::start(scene, memory, sides).await,
        Effect::StopProbe => probe::stop(scene, memory).await,
        Effect::StoreRecord(record) => kubernetes::store_record(scene, record).await,
        Effect::StartCanary => canary::start(scene, memory).await,
        Effect::StopCanary => canary::stop(memory).await,
        Effect::Point(pointings) => kubernetes::point(scene, memory, pointings).await,
        Effect::Fence { side, users } => broker::fence(scene, memory, *side, users).await,
        Effect::Unfence { side, users } => broker::unfence(scene, memory, *side, users).await,
        Effect::Close { side, connections } => broker::close(scene, memory, *side, connections).await,
        Effect::Carry { from, queues } => broker::carry(scene, memory, *from, queues).await,
        Effect::CleanBroker(side) => broker::clean(scene, memory, *side).await,
        Effect::RemoveEpochUsers(side) => broker::remove_epoch_users(scene, memory, *side).await,
        Effect::ScaleBlueToZero => kubernetes::scale_blue_to_zero(scene).await,
        Effect::RemoveRecord => kubernetes::remove_record(scene).await,
    }
}
