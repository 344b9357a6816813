//! Undoing by looking: what of ours is left is removed in a safe order, one step at a time.
//!
//! Probe and canary stop first, then fences fall, then broker objects go, then green where it never served,
//! then the record, and our own broker users last, since they do the work.

use crate::context::{Context, cannot_see};
use crate::effect::Effect;
use crate::phases::switching;
use crate::side::Side;
use crate::step::Step;
use crate::world::{Reading, UserView};
use api::{Phase, RabbitMQMigrationStatus};

/// How much is undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything, green included where we made it and no Service ever led to it.
    Undo,
    /// What we made on the brokers; green stays.
    Leave,
}

/// The next step of cleaning, or nothing where all is clean.
pub fn step(context: &Context<'_>, draft: &RabbitMQMigrationStatus, scope: Scope) -> Option<Step> {
    stop_clients(context).or_else(|| {
        let remove_green = scope == Scope::Undo && may_remove_green(context, draft);
        let sides = match reachable(context, remove_green) {
            Ok(sides) => sides,
            Err(step) => return Some(step),
        };
        sides
            .iter()
            .find_map(|side| lift_fence(context, *side))
            .or_else(|| sides.iter().find_map(|side| clean(context, *side)))
            .or_else(|| remove_green.then(|| Step::act(Effect::RemoveGreen)))
            .or_else(|| remove_record(context))
            .or_else(|| sides.iter().find_map(|side| remove_users(context, *side)))
    })
}

fn stop_clients(context: &Context<'_>) -> Option<Step> {
    match &context.world.probe {
        Reading::Seen(probe) if probe.sides.is_empty() => {}
        Reading::Seen(_) => return Some(Step::act(Effect::StopProbe)),
        unknown => return Some(cannot_see(format!("whether the probe runs: {}", unknown.why_not()))),
    }
    match &context.world.ledger {
        Reading::Seen(ledger) if !ledger.running => None,
        Reading::Seen(_) => Some(Step::act(Effect::StopCanary)),
        unknown => Some(cannot_see(format!("whether the canary runs: {}", unknown.why_not()))),
    }
}

/// Green may go as long as it is ours and no Service has ever led to it.
fn may_remove_green(context: &Context<'_>, draft: &RabbitMQMigrationStatus) -> bool {
    let served = draft.green.as_ref().is_some_and(|g| g.served);
    // Nor may it go where nobody can see where the Services lead.
    let leads_there = context.world.services.seen().is_none_or(|services| {
        services.iter().any(|service| switching::selects(context, service, Side::Green))
    });
    let ours = context
        .world
        .stateful_sets
        .green
        .seen()
        .is_some_and(|found| found.exists && found.made_by.as_deref() == Some(&context.plan.uid));
    context.plan.template().is_some() && ours && !served && !leads_there
}

/// Sides whose broker is there to be cleaned. One that does not exist holds nothing of ours; one that cannot be
/// seen may.
fn reachable(context: &Context<'_>, removing_green: bool) -> Result<Vec<Side>, Step> {
    let mut sides = Vec::new();
    for side in Side::BOTH {
        let found = match context.world.stateful_sets.of(side) {
            Reading::Seen(found) => found,
            unknown => return Err(cannot_see(format!("StatefulSet of {side}: {}", unknown.why_not()))),
        };
        if !found.exists || found.replicas == 0 || (removing_green && side == Side::Green) {
            continue;
        }
        // With a wrong password or a broker that is down Preflight never came to make anything there.
        if context.phase() == Phase::Preflight && context.never_answered(side) {
            continue;
        }
        match context.world.credentials.of(side) {
            Reading::Seen(()) => sides.push(side),
            // Without credentials Preflight never came to make anything there.
            Reading::Failed(_) if context.phase() == Phase::Preflight => {}
            unknown => return Err(cannot_see(format!("credentials of {side}: {}", unknown.why_not()))),
        }
    }
    Ok(sides)
}

/// Gives fenced users their limits back. Only the record knows them: without one there was no fence.
pub fn lift_fence(context: &Context<'_>, side: Side) -> Option<Step> {
    let record = match &context.world.record {
        Reading::Seen(record) => record.as_ref()?,
        unknown => return Some(cannot_see(format!("the SwitchRecord: {}", unknown.why_not()))),
    };
    let users = match context.world.users.of(side) {
        Reading::Seen(users) => users,
        unknown => return Some(cannot_see(format!("users of {side}: {}", unknown.why_not()))),
    };
    let fenced = |user: &&UserView| {
        user.max_connections == Some(0)
            && record.limit(side, &user.name).is_some_and(|limit| limit != Some(0))
    };
    let users: Vec<(String, Option<i64>)> = users
        .iter()
        .filter(fenced)
        .map(|user| (user.name.clone(), record.limit(side, &user.name).flatten()))
        .collect();
    (!users.is_empty()).then(|| Step::act(Effect::Unfence { side, users }))
}

fn clean(context: &Context<'_>, side: Side) -> Option<Step> {
    match context.world.leftovers.of(side) {
        Reading::Seen(names) if names.is_empty() => None,
        Reading::Seen(_) => Some(Step::act(Effect::CleanBroker(side))),
        unknown => Some(cannot_see(format!("what is left of ours on {side}: {}", unknown.why_not()))),
    }
}

fn remove_record(context: &Context<'_>) -> Option<Step> {
    match &context.world.record {
        Reading::Seen(None) => None,
        Reading::Seen(Some(_)) => Some(Step::act(Effect::RemoveRecord)),
        unknown => Some(cannot_see(format!("the SwitchRecord: {}", unknown.why_not()))),
    }
}

fn remove_users(context: &Context<'_>, side: Side) -> Option<Step> {
    match context.world.epochs.of(side) {
        Reading::Seen(epoch) if !epoch.current && epoch.older == 0 => None,
        Reading::Seen(_) => Some(Step::act(Effect::RemoveEpochUsers(side))),
        unknown => Some(cannot_see(format!("our users on {side}: {}", unknown.why_not()))),
    }
}
