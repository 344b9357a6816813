//! Clients leave the old side: broadcast subscribers first, then publishers, and consumers last.

use crate::context::{Context, cannot_see};
use crate::effect::Effect;
use crate::phases::switching::{note_stage, recorded_role, stage};
use crate::record::SwitchRecord;
use crate::roles::Role;
use crate::side::{Heading, Side};
use crate::step::{Reason, Step};
use crate::world::{ConnectionView, Reading};
use api::RabbitMQMigrationStatus;

/// Connections closed in one step. They all reconnect at once, so that a step is also a batch.
const BATCH: usize = 16;
/// How many connections a wait names.
const NAMED: usize = 3;
/// How long a connection may be without statistics before it counts as a worker: one statistics interval.
const STATISTICS_MILLIS: i64 = 6000;

/// A subscriber that stays behind misses everything that publishers send on the new side.
pub fn broadcast_subscribers(
    context: &Context<'_>,
    draft: &mut RabbitMQMigrationStatus,
    heading: Heading,
    record: &SwitchRecord,
) -> Option<Step> {
    let connections = match connections(context, heading) {
        Ok(connections) => connections,
        Err(step) => return Some(step),
    };
    let subscribers = named(connections, |c| role(c, record) == Role::BroadcastSubscriber);
    close(draft, heading, stage::PUBLISHERS, subscribers)
}

/// Publishers and idle connections go; what has no statistics yet is waited for, then counts as a worker.
pub fn publishers(
    context: &Context<'_>,
    draft: &mut RabbitMQMigrationStatus,
    heading: Heading,
    record: &SwitchRecord,
) -> Option<Step> {
    let connections = match connections(context, heading) {
        Ok(connections) => connections,
        Err(step) => return Some(step),
    };
    let leaving = named(connections, |c| is_publisher(role(c, record)));
    if let Some(step) = close(draft, heading, stage::PUBLISHERS, leaving) {
        return Some(step);
    }
    let is_unknown = |c: &ConnectionView| role(c, record) == Role::Unknown;
    let unknown = awaited(context, heading.from, connections, STATISTICS_MILLIS, is_unknown);
    if unknown.is_empty() {
        return None;
    }
    note_stage(draft, stage::PUBLISHERS);
    Some(Step::wait(Reason::PublishersLeaving, without_statistics(&unknown, heading)))
}

/// Those without statistics for whom it is worth waiting still, each for himself: that others were unknown
/// before says nothing of this one.
pub fn awaited<'a>(
    context: &Context<'_>,
    side: Side,
    connections: &'a [ConnectionView],
    limit_millis: i64,
    is_unknown: impl Fn(&ConnectionView) -> bool,
) -> Vec<&'a ConnectionView> {
    let history = context.world.history.connections.of(side);
    let waited =
        |name: &str| history.held_millis(|list| list.iter().any(|c| c.name == name && is_unknown(c)));
    let young = |c: &&ConnectionView| waited(&c.name).is_none_or(|millis| millis < limit_millis);
    connections.iter().filter(|c| is_unknown(c)).filter(young).collect()
}

/// How many are without statistics, and who some of them are.
pub fn without_statistics(unknown: &[&ConnectionView], heading: Heading) -> String {
    let who: Vec<String> = unknown.iter().take(NAMED).map(|c| named_client(c)).collect();
    let more = unknown.len().saturating_sub(NAMED);
    let and_more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!(
        "no statistics yet of {} connections on {}: {}{and_more}",
        unknown.len(),
        heading.from,
        who.join(", ")
    )
}

/// Who it is, as a person knows it.
fn named_client(connection: &ConnectionView) -> String {
    match &connection.client {
        Some(client) => format!("{client} ({}, {})", connection.user, connection.name),
        None => format!("{} ({})", connection.user, connection.name),
    }
}

/// What is still connected goes: the queues are empty.
pub fn consumers(
    context: &Context<'_>,
    draft: &mut RabbitMQMigrationStatus,
    heading: Heading,
) -> Option<Step> {
    let connections = match connections(context, heading) {
        Ok(connections) => connections,
        Err(step) => return Some(step),
    };
    close(draft, heading, stage::CONSUMERS, named(connections, |_| true))
}

/// True for what must be gone before the old side can run empty.
pub fn is_publisher(role: Role) -> bool {
    matches!(role, Role::Publisher | Role::Idle)
}

/// What statistics say now, else what they said when the record was taken.
pub fn role(connection: &ConnectionView, record: &SwitchRecord) -> Role {
    match connection.role {
        Role::Unknown => recorded_role(record, &connection.name).unwrap_or(Role::Unknown),
        known => known,
    }
}

fn connections<'a>(context: &Context<'a>, heading: Heading) -> Result<&'a [ConnectionView], Step> {
    match context.world.connections.of(heading.from) {
        Reading::Seen(connections) => Ok(connections),
        unknown => Err(cannot_see(format!("connections of {}: {}", heading.from, unknown.why_not()))),
    }
}

fn named(connections: &[ConnectionView], wanted: impl Fn(&ConnectionView) -> bool) -> Vec<String> {
    connections.iter().filter(|c| wanted(c)).map(|c| c.name.clone()).take(BATCH).collect()
}

fn close(
    draft: &mut RabbitMQMigrationStatus,
    heading: Heading,
    stage: &str,
    names: Vec<String>,
) -> Option<Step> {
    if names.is_empty() {
        return None;
    }
    note_stage(draft, stage);
    Some(Step::act(Effect::Close { side: heading.from, connections: names }))
}
