//! Switching and RollingBack: moves traffic and proves the old side empty. The same code for both headings.
//!
//! The order of events is the protocol (`Handover`): point the Services and see it done; move broadcast
//! subscribers; fence the old side's users; move publishers; let the old side's own consumers finish it;
//! prove it empty; move the consumers; carry what nobody consumed; prove it empty for good. Where it stands is
//! read off the facts at every pass; a cut anywhere resumes by looking.

mod contest;
mod drain;
mod enter;
mod fence;
mod leave;
mod prove;
mod route;
mod unroutable;

pub use contest::reopens;
pub use enter::{enter, entry_wants};
pub use prove::is_proven_empty;
pub use route::{note_serving, selects};

use crate::context::{Context, cannot_see, is_asked_back};
use crate::fact::{Fact, Want, every, fresh};
use crate::phases::syncing_topology;
use crate::plan::Plan;
use crate::record::SwitchRecord;
use crate::side::{Heading, Side};
use crate::step::{Reason, Step};
use crate::world::Reading;
use api::spec::{OnTimeout, Outcome};
use api::status::{LedgerStatus, SwitchStatus};
use api::{Phase, RabbitMQMigrationStatus, Time};

/// The stages, as status shows them. They are read off the facts; the stored one only tells which facts are
/// worth reading.
pub mod stage {
    /// Somebody else took a Service.
    pub const CONTESTED: &str = "Contested";
    /// Pointing the Services.
    pub const ROUTE: &str = "Pointing";
    /// Refusing new connections on the old side.
    pub const FENCE: &str = "Fencing";
    /// Closing publishers.
    pub const PUBLISHERS: &str = "MovingPublishers";
    /// The old side's consumers finish it.
    pub const DRAIN: &str = "Draining";
    /// Closing consumers.
    pub const CONSUMERS: &str = "MovingConsumers";
    /// Proving it empty.
    pub const PROOF: &str = "ProvingEmpty";
}

/// Route, fence, connections, then backlog: what freezes is read before what it freezes.
pub fn wants(plan: &Plan, status: &RabbitMQMigrationStatus, heading: Heading) -> Vec<Want> {
    let (from, to) = (heading.from, heading.to);
    let stage = status.switching.as_ref().map_or(stage::ROUTE, |s| s.stage.as_str());
    // While fencing a user, and when turning round everything, may have been put on record in the last pass.
    let writes_record = stage == stage::FENCE || (heading == Heading::FORWARD && is_asked_back(plan, status));
    let mut wants = vec![
        every(5, Fact::Credentials(Side::Blue)),
        every(5, Fact::Credentials(Side::Green)),
        every(5, Fact::StatefulSet(Side::Blue)),
        every(5, Fact::StatefulSet(Side::Green)),
        every(2, Fact::Pods(Side::Blue)),
        every(2, Fact::Pods(Side::Green)),
        every(5, Fact::Epoch(Side::Blue)),
        every(5, Fact::Epoch(Side::Green)),
        if writes_record { fresh(Fact::Record) } else { every(1, Fact::Record) },
        every(5, Fact::Broker(to)),
        fresh(Fact::Services),
        fresh(Fact::Routes),
        every(1, Fact::Users(to)),
        fresh(Fact::Users(from)),
        // Nobody is closed while the route is waited for, and a loaded broker takes its time to list.
        if stage == stage::ROUTE {
            every(1, Fact::Connections(from))
        } else {
            fresh(Fact::Connections(from))
        },
    ];
    match stage {
        stage::DRAIN => wants.push(fresh(Fact::Depths(from))),
        stage::PROOF => wants.extend([fresh(Fact::Emptiness(from)), every(1, Fact::Queues(from))]),
        _ => {}
    }
    wants.extend([every(1, Fact::Traffic(to)), every(1, Fact::Ledger)]);
    if unroutable::is_alarmed(status) {
        wants.extend([every(3, Fact::Bindings(from)), every(3, Fact::Bindings(to))]);
    }
    if heading == Heading::FORWARD {
        // What turning round would need: an abort or the time-out may come at any step.
        wants.extend([
            every(5, Fact::Connections(to)),
            every(5, Fact::Queues(to)),
            every(5, Fact::Traffic(from)),
        ]);
    }
    wants
}

/// One step of the switch in `heading`.
pub fn decide(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus, heading: Heading) -> Step {
    note_serving(context, draft);
    note_ledger(context, draft);
    note_progress(context, draft, heading);
    let record = match &context.world.record {
        Reading::Seen(Some(record)) => record,
        Reading::Seen(None) => {
            let detail = "the SwitchRecord is gone: nothing is fenced without it; see status.manualExit";
            return Step::stop(Reason::CannotSee, detail);
        }
        unknown => return cannot_see(format!("the SwitchRecord: {}", unknown.why_not())),
    };
    unroutable::note(context, draft, heading, record);
    // Before all that a side may hinder which cannot be read: somebody may have left it for that.
    if let Some(step) = contest::decide(context, draft, heading, record) {
        return step;
    }
    if let Some(step) = syncing_topology::own_epoch(context) {
        return step;
    }
    if let Some(step) = turn_round(context, draft, heading) {
        return step;
    }
    // Each stage answers with what is left to do in it, or nothing where it is done.
    let step = route::decide(context, draft, heading, record)
        .or_else(|| unroutable::decide(context, draft, heading))
        .or_else(|| leave::broadcast_subscribers(context, draft, heading, record))
        .or_else(|| fence::decide(context, draft, heading, record))
        .or_else(|| leave::publishers(context, draft, heading, record))
        .or_else(|| drain::decide(context, draft, heading, record))
        .or_else(|| leave::consumers(context, draft, heading))
        .or_else(|| prove::decide(context, draft, heading))
        .unwrap_or_else(|| arrive(context, draft, heading));
    unroutable::told(context, draft, heading, step)
}

/// Whether the heading changes: by order, or by the time-out.
fn turn_round(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus, heading: Heading) -> Option<Step> {
    if heading == Heading::BACK {
        return None;
    }
    let asked = context.plan.outcome == Outcome::RolledBack;
    let pointed = draft.switching.as_ref().is_some_and(|s| s.pointed_at.is_some());
    let late = overdue(context) && (!pointed || context.plan.cutover.on_timeout == OnTimeout::Back);
    (asked || late).then(|| enter(context, draft, Heading::BACK))
}

/// True once the time-out is over. While somebody else holds a Service nobody can be in time.
pub fn overdue(context: &Context<'_>) -> bool {
    let switching = context.status.switching.as_ref();
    let settled = switching.and_then(|s| s.settled_at.as_ref());
    let settled = settled.map_or(i64::MAX, |at| context.now.as_second() - at.0.as_second());
    let seconds = context.phase_seconds().min(settled);
    switching.is_none_or(|s| s.contested_since.is_none())
        && seconds > i64::from(context.plan.cutover.timeout_seconds)
}

/// The old side is proven empty and nobody is on it.
fn arrive(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus, heading: Heading) -> Step {
    if heading == Heading::FORWARD {
        return Step::Go(Phase::Soaking);
    }
    crate::guards::aborted::handled(context, draft);
    Step::Go(Phase::RolledBack)
}

/// Notes in which stage we are.
fn note_stage(draft: &mut RabbitMQMigrationStatus, stage: &str) {
    if let Some(switching) = &mut draft.switching {
        stage.clone_into(&mut switching.stage);
    }
}

fn note_progress(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus, heading: Heading) {
    let progress = &context.world.progress;
    let old = draft.switching.take().filter(|s| s.heading == heading.as_str()).unwrap_or_default();
    // What was counted before this phase began belongs to the other heading.
    let since = context.status.phase_since.as_ref().map(|since| since.0);
    let counted = progress.pointed.values().filter(|at| since.is_none_or(|since| **at >= since)).min();
    // After a restart nobody remembers the write, but it can be seen.
    let there = draft.serving_side.as_deref() == Some(heading.to.as_str());
    let seen = (there && context.world.services.seen().is_some()).then_some(Time(context.now));
    let pointed_at = old.pointed_at.clone().or(counted.copied().map(Time)).or(seen);
    let last_close_at = progress.last_close_at.map(Time).or(old.last_close_at.clone());
    let millis = match (&pointed_at, &last_close_at) {
        (Some(pointed), Some(closed)) => Some(closed.0.as_millisecond() - pointed.0.as_millisecond()),
        (None, _) | (_, None) => None,
    };
    draft.switching = Some(SwitchStatus {
        heading: heading.as_str().to_owned(),
        stage: if old.stage.is_empty() { stage::ROUTE.to_owned() } else { old.stage.clone() },
        pointed_at,
        last_close_at,
        patch_to_last_close_millis: millis.filter(|m| *m >= 0),
        closed: old.closed.max(count(progress.closed)),
        carried: old.carried.max(count(progress.carried)),
        ..old
    });
}

/// Writes the canary's counts to status.
pub fn note_ledger(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus) {
    use crate::conditions::{Truth, set};
    let Some(ledger) = context.world.ledger.seen() else { return };
    if !ledger.running && ledger.attempted == 0 {
        // No canary ran since the operator started: what status says of an earlier one stands.
        return;
    }
    let summary = format!(
        "canary: {} confirmed, {} delivered, {} lost, {} duplicated ({} unexplained), {} reordered",
        ledger.confirmed,
        ledger.delivered,
        ledger.lost,
        ledger.duplicated_explained + ledger.duplicated_unexplained,
        ledger.duplicated_unexplained,
        ledger.reordered
    );
    let truth = if ledger.lost > 0 || ledger.duplicated_unexplained > 0 {
        Truth::False
    } else if ledger.unaccounted > 0 || ledger.confirmed == 0 {
        Truth::Unknown
    } else {
        Truth::True
    };
    let reason = match truth {
        Truth::True => "Balanced",
        Truth::False => "NotBalanced",
        Truth::Unknown => "Unaccounted",
    };
    set(draft, context, api::conditions::LEDGER_BALANCED, truth, reason, &summary);
    draft.ledger = Some(LedgerStatus {
        confirmed: count(ledger.confirmed),
        delivered: count(ledger.delivered),
        lost: count(ledger.lost),
        duplicated_explained: count(ledger.duplicated_explained),
        duplicated_unexplained: count(ledger.duplicated_unexplained),
        reordered: count(ledger.reordered),
        unaccounted: count(ledger.unaccounted),
        publish_gap_millis: count(ledger.publish_gap_millis),
        summary,
    });
}

fn count(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// What a client did when the record was taken, where statistics do not tell now.
fn recorded_role(record: &SwitchRecord, connection: &str) -> Option<crate::roles::Role> {
    record.clients.iter().find(|c| c.connection == connection).map(|c| c.role)
}
