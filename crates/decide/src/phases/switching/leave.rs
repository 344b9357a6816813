//! Clients leave the old side: broadcast subscribers first, then publishers, and consumers last.

use crate::context::{Context, cannot_see};
use crate::effect::Effect;
use crate::phases::switching::{note_stage, recorded_role, stage};
use crate::record::SwitchRecord;
use crate::roles::Role;
use crate::side::Heading;
use crate::step::{Reason, Step};
use crate::world::{ConnectionView, Reading};
use api::RabbitMQMigrationStatus;

/// Connections closed in one step. They all reconnect at once, so that a step is also a batch.
const BATCH: usize = 16;
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
    // Each for himself: that others were unknown before says nothing of this one.
    let is_unknown = |c: &&ConnectionView| role(c, record) == Role::Unknown;
    let waited = |name: &str| {
        let here = |list: &Vec<ConnectionView>| list.iter().filter(is_unknown).any(|c| c.name == name);
        context.world.history.connections.of(heading.from).held_millis(here)
    };
    let young = |c: &&ConnectionView| waited(&c.name).is_none_or(|millis| millis < STATISTICS_MILLIS);
    let count = connections.iter().filter(is_unknown).filter(young).count();
    if count > 0 {
        note_stage(draft, stage::PUBLISHERS);
        let detail = format!("{count} connections on {} have no statistics yet", heading.from);
        return Some(Step::wait(Reason::PublishersLeaving, detail));
    }
    None
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
