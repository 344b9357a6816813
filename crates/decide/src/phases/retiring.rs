//! Retiring: what `retirement` asks for, then everything of ours is removed. There is no way back from here.

use crate::conditions::{Truth, set};
use crate::context::Context;
use crate::effect::Effect;
use crate::fact::{Fact, Want, every, fresh};
use crate::guards;
use crate::phases::cleanup::{self, Scope};
use crate::phases::switching::{self, is_proven_empty, note_ledger, note_serving};
use crate::side::Side;
use crate::step::{Reason, Step};
use api::conditions::REVERSIBLE;
use api::spec::RetirementPolicy;
use api::{Phase, RabbitMQMigrationStatus};

/// What cleaning looks at, and whether blue is still empty and alone.
pub fn wants() -> Vec<Want> {
    let mut wants = guards::undo_wants();
    wants.extend([every(2, Fact::Connections(Side::Blue)), every(2, Fact::Queues(Side::Blue))]);
    wants.push(fresh(Fact::Routes));
    wants
}

/// Retires blue, cleans up, completes.
pub fn decide(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus) -> Step {
    note_serving(context, draft);
    note_ledger(context, draft);
    let left = i64::from(context.plan.retirement.delay_seconds) - context.phase_seconds();
    if left > 0 {
        if switching::reopens(context, draft) {
            return Step::Go(Phase::Switching);
        }
        return Step::wait(
            Reason::RetirementDelayed,
            format!("{left} s of retirement.delaySeconds are left"),
        );
    }
    set(draft, context, REVERSIBLE, Truth::False, "Retiring", "blue is being retired");
    let blue_runs = context.world.stateful_sets.blue.seen().is_some_and(|s| s.exists && s.replicas > 0);
    if context.plan.retirement.policy == RetirementPolicy::ScaleToZero && blue_runs {
        return scale(context);
    }
    if let Some(step) = cleanup::step(context, draft, Scope::Leave) {
        return step;
    }
    draft.manual_exit.clear();
    Step::Go(Phase::Completed)
}

/// Blue goes only while nobody is connected and nothing is in it.
fn scale(context: &Context<'_>) -> Step {
    let (Some(connections), Some(queues)) =
        (context.world.connections.blue.seen(), context.world.queues.blue.seen())
    else {
        return Step::wait(Reason::RetirementDelayed, "whether blue is empty cannot be read; it is kept");
    };
    if is_proven_empty(context, Side::Blue) {
        return Step::act(Effect::ScaleBlueToZero);
    }
    let messages: Option<u64> = queues.iter().map(|q| q.messages).sum();
    Step::wait(
        Reason::RetirementDelayed,
        format!(
            "blue has {} connections and {} messages; it is kept until both were 0 for a while",
            connections.len(),
            messages.map_or_else(|| "unknown".to_owned(), |m| m.to_string())
        ),
    )
}
