//! The fast proof of empty: the old side's own consumers finish it, seen by passive declares.
//!
//! "0 ready" counts only beside at least one consumer: a quorum queue whose leader does not answer says 0
//! and 0. And it counts only after the last publisher was seen to be gone. A queue that lost its consumers (they
//! crashed, and the fence and the route keep them from coming back) nobody will finish: it is not waited for,
//! but left to the proof, which carries it.

use crate::context::{Context, cannot_see};
use crate::phases::switching::fence::closed_since;
use crate::phases::switching::leave::{is_publisher, role};
use crate::phases::switching::{note_stage, overdue, stage};
use crate::record::{ConsumedQueue, SwitchRecord};
use crate::roles::Role;
use crate::side::Heading;
use crate::step::{Reason, Step};
use crate::world::{ConnectionView, QueueDepth, Reading};
use api::RabbitMQMigrationStatus;
use jiff::Timestamp;

/// Sweeps in a row that must find every queue empty.
const SWEEPS: usize = 3;
/// Listings in a row that must show no publisher.
const LISTINGS: usize = 2;
/// How long a queue must be seen without consumers before it counts as left behind: longer than a leader's
/// election, during which it answers 0 and 0.
const LEFT_BEHIND_MILLIS: i64 = 5_000;
/// How often it must have been seen so. A leader that does not answer is sometimes heard as 0 and 0 and sometimes
/// not at all: few looks over a long time may meet the former by chance.
const LEFT_BEHIND_SWEEPS: usize = 20;

/// Waits until every queue that has consumers is empty, and then for what was delivered to be acked.
pub fn decide(
    context: &Context<'_>,
    draft: &mut RabbitMQMigrationStatus,
    heading: Heading,
    record: &SwitchRecord,
) -> Option<Step> {
    let from = heading.from;
    // Nobody is connected any more: what is left nobody will finish. And after the time-out it is carried.
    let nobody = context.world.connections.of(from).seen().is_some_and(Vec::is_empty);
    if nobody || overdue(context) {
        return None;
    }
    // It was proven, and consumers are being closed since: their queues have none any more. A publisher who
    // appears sets the stage back.
    let closing = |s: &api::status::SwitchStatus| s.stage == stage::CONSUMERS || s.stage == stage::PROOF;
    if draft.switching.as_ref().is_some_and(closing) {
        return None;
    }
    note_stage(draft, stage::DRAIN);
    let gone_since = match publishers_gone(context, heading, record) {
        Ok(at) => at,
        Err(step) => return Some(step),
    };
    // Who came while the side was open may be gone again.
    let Some(closed) = closed_since(context, from) else {
        return Some(cannot_see(format!("since when users of {from} are fenced is not known yet")));
    };
    let since = gone_since.max(closed);
    let depths = &context.world.history.depths.of(from);
    let good = |sweep: &Vec<QueueDepth>| all_finished(sweep, record);
    let sweeps: Vec<&(Timestamp, Vec<QueueDepth>)> =
        depths.newest_first().take_while(|(at, sweep)| *at > since && good(sweep)).collect();
    if sweeps.len() < SWEEPS {
        return Some(Step::wait(Reason::Draining, left(context, heading, record)));
    }
    let newest = sweeps.first().map_or(context.now, |(at, _)| *at);
    let oldest = sweeps.last().map_or(context.now, |(at, _)| *at);
    let held = newest.as_millisecond() - oldest.as_millisecond();
    let settle = i64::try_from(record.settle_millis()).unwrap_or(i64::MAX);
    let deserted =
        sweeps.first().is_some_and(|(_, sweep)| record.queues.iter().any(|q| is_deserted(sweep, q)));
    if deserted && (held < LEFT_BEHIND_MILLIS || sweeps.len() < LEFT_BEHIND_SWEEPS) {
        return Some(Step::wait(Reason::Draining, left(context, heading, record)));
    }
    if held < settle {
        let detail = format!("queues are empty since {held} ms; {settle} ms are given to what was delivered");
        return Some(Step::wait(Reason::Settling, detail));
    }
    None
}

/// Since when two listings in a row showed no publisher.
fn publishers_gone(
    context: &Context<'_>,
    heading: Heading,
    record: &SwitchRecord,
) -> Result<Timestamp, Step> {
    let gone = |list: &Vec<ConnectionView>| {
        // A worker may publish: it stays until all is empty. One without statistics counts as a worker here.
        list.iter().all(|c| !is_publisher(role(c, record)) && role(c, record) != Role::BroadcastSubscriber)
    };
    let listings: Vec<Timestamp> = context
        .world
        .history
        .connections
        .of(heading.from)
        .newest_first()
        .take_while(|(_, list)| gone(list))
        .map(|(at, _)| *at)
        .collect();
    match listings.last() {
        Some(at) if listings.len() >= LISTINGS => Ok(*at),
        Some(_) | None => {
            Err(Step::wait(Reason::PublishersLeaving, format!("publishers are leaving {}", heading.from)))
        }
    }
}

/// Every queue that had consumers when the record was taken is empty and still has one, or has none any more.
fn all_finished(sweep: &[QueueDepth], record: &SwitchRecord) -> bool {
    record.queues.iter().all(|consumed| {
        let empty = matches!(counted(sweep, consumed), Some((0, consumers)) if consumers > 0);
        empty || is_deserted(sweep, consumed)
    })
}

/// The queue answers that nobody consumes from it.
fn is_deserted(sweep: &[QueueDepth], consumed: &ConsumedQueue) -> bool {
    matches!(counted(sweep, consumed), Some((_, 0)))
}

/// Ready messages and consumers, where the queue answered.
fn counted(sweep: &[QueueDepth], consumed: &ConsumedQueue) -> Option<(u64, u64)> {
    sweep.iter().find(|depth| depth.queue == consumed.queue)?.counted
}

fn left(context: &Context<'_>, heading: Heading, record: &SwitchRecord) -> String {
    let sweep = match context.world.depths.of(heading.from) {
        Reading::Seen(sweep) => sweep,
        unknown => return format!("depths of {}: {}", heading.from, unknown.why_not()),
    };
    let names: Vec<String> = record
        .queues
        .iter()
        .filter_map(|consumed| {
            let told = match counted(sweep, consumed) {
                Some((0, consumers)) if consumers > 0 => return None,
                Some((ready, 0)) => format!("{ready} ready, no consumers: it will be carried"),
                Some((ready, consumers)) => format!("{ready} ready, {consumers} consumers"),
                None => "no answer".to_owned(),
            };
            Some(format!("{}/{}: {told}", consumed.queue.vhost, consumed.queue.name))
        })
        .take(5)
        .collect();
    if names.is_empty() {
        return format!("queues of {} look empty; {SWEEPS} sweeps in a row must say so", heading.from);
    }
    format!("{} finishes its queues: {}", heading.from, names.join("; "))
}
