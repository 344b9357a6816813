//! Guards: the rules that cut across phases, in the order in which they win.
//!
//! Newer status first (we must not touch what we do not understand), then deletion, abort and pause, and last
//! what another migration uses.

pub mod aborted;
mod conflict;
mod deleted;
mod newer;
mod paused;

use crate::context::{Context, is_new_order};
use crate::fact::{Fact, Want, every, fresh};
use crate::plan::Plan;
use crate::side::Side;
use crate::step::Step;
use api::RabbitMQMigrationStatus;

type Guard = fn(&Context<'_>, &mut RabbitMQMigrationStatus) -> Option<Step>;

/// All guards, in order.
const ALL: [Guard; 5] = [newer::decide, deleted::decide, aborted::decide, paused::decide, conflict::decide];

/// What the guards need: what of ours would have to be undone, or who else is at work.
pub fn wants(plan: &Plan, status: &RabbitMQMigrationStatus) -> Vec<Want> {
    let phase = status.phase.unwrap_or_default();
    let abort = is_new_order(status, api::ABORT, plan.orders.abort.as_ref());
    let undoing = plan.orders.deleted || (abort && phase.is_before_switch());
    if undoing && !phase.is_switch() {
        undo_wants()
    } else if conflict::applies(plan, phase) {
        vec![every(2, Fact::Others)]
    } else {
        Vec::new()
    }
}

/// What [`crate::phases::cleanup`] looks at.
pub fn undo_wants() -> Vec<Want> {
    let mut wants = vec![fresh(Fact::Record), fresh(Fact::Services), fresh(Fact::Probe), fresh(Fact::Ledger)];
    for side in Side::BOTH {
        wants.extend([
            fresh(Fact::Credentials(side)),
            fresh(Fact::StatefulSet(side)),
            fresh(Fact::Pods(side)),
            every(10, Fact::Broker(side)),
            fresh(Fact::Epoch(side)),
            fresh(Fact::Users(side)),
            fresh(Fact::Leftovers(side)),
        ]);
    }
    wants
}

/// The first guard that has something to say.
pub fn decide(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus) -> Option<Step> {
    ALL.iter().find_map(|guard| guard(context, draft))
}
