//! Entering the switch: the probe stops, the canary runs, and the SwitchRecord is complete and stored before
//! the phase is.

use crate::context::{Context, cannot_see};
use crate::effect::Effect;
use crate::fact::{Fact, Want, every, fresh};
use crate::manual_exit;
use crate::phases::switching::contest;
use crate::phases::switching::leave::{awaited, without_statistics};
use crate::plan::Plan;
use crate::record::{Client, ConsumedQueue, OriginalLimit, OriginalService, SwitchRecord};
use crate::roles::Role;
use crate::side::{Heading, Side};
use crate::step::{Reason, Step};
use crate::world::{ConnectionView, QueueTotals, Reading, ServiceView};
use api::status::PROTOCOL;
use api::{Phase, RabbitMQMigrationStatus};
use jiff::Timestamp;

/// A record older than this is taken anew: clients come and go.
const RECORD_SECONDS: i64 = 30;
/// How long to wait for the statistics of fresh connections before the record is taken without them.
const STATISTICS_MILLIS: i64 = 15_000;

/// What entering needs to see besides the phase's own wants. Who connected is read anew while entering goes on:
/// whoever is not on record is waited for in the switch, while publishers are fenced.
pub fn entry_wants(heading: Heading, is_entering: bool) -> Vec<Want> {
    let connections = if is_entering { 1 } else { 10 };
    let mut wants = vec![
        every(5, Fact::Services),
        every(10, Fact::StatefulSet(Side::Blue)),
        every(10, Fact::StatefulSet(Side::Green)),
        fresh(Fact::Ledger),
        fresh(Fact::Record),
        every(10, Fact::Users(Side::Blue)),
        every(10, Fact::Users(Side::Green)),
        every(connections, Fact::Connections(heading.from)),
        every(10, Fact::Queues(heading.from)),
        every(10, Fact::Traffic(heading.to)),
    ];
    if is_entering {
        // Its sessions are open then when they are needed.
        wants.push(every(30, Fact::Depths(heading.from)));
    }
    wants
}

/// Prepares what the switch needs, one step at a time, and enters it last.
pub fn enter(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus, heading: Heading) -> Step {
    // A Service that somebody took back leads there already: nobody waits behind the fence for the record.
    if heading == Heading::BACK
        && let Some(step) = contest::open(context, heading.to)
    {
        return step;
    }
    // The canary before the probe's end: a running canary tells the gate that the switch is being entered.
    if !context.world.ledger.seen().is_some_and(|l| l.running) {
        return Step::act(Effect::StartCanary);
    }
    if context.world.ledger.seen().is_some_and(|l| l.delivered == 0) && heading == Heading::FORWARD {
        return Step::wait(Reason::Working, "the canary sends its first messages through the Services");
    }
    if context.world.probe.seen().is_some_and(|p| !p.sides.is_empty()) {
        return Step::act(Effect::StopProbe);
    }
    let record = match &context.world.record {
        Reading::Seen(record) => record.as_ref(),
        unknown => return cannot_see(format!("the SwitchRecord: {}", unknown.why_not())),
    };
    if let Some(record) = record.filter(|record| is_current(context, record, heading)) {
        if heading == Heading::FORWARD && !is_compared(context, record) {
            let detail = "definitions are compared once more, now that everything else is ready";
            return Step::wait(Reason::ComparingDefinitions, detail);
        }
        draft.manual_exit.clone_from(&record.manual_exit);
        draft.manual_exit.truncate(24);
        draft.switching = None;
        return Step::Go(if heading == Heading::FORWARD { Phase::Switching } else { Phase::RollingBack });
    }
    match take(context, record, heading) {
        Ok(record) => Step::act(Effect::StoreRecord(Box::new(record))),
        Err(step) => step,
    }
}

/// Whether both sides' definitions were compared after the record was taken: whoever got here found no difference
/// that matters, since one is followed or stopped for first.
fn is_compared(context: &Context<'_>, record: &SwitchRecord) -> bool {
    let compared = context.world.definitions.seen().and_then(|definitions| definitions.compared_at);
    let taken = record.taken_at.parse::<Timestamp>().ok();
    compared.zip(taken).is_some_and(|(compared, taken)| compared > taken)
}

fn is_current(context: &Context<'_>, record: &SwitchRecord, heading: Heading) -> bool {
    let age = record.taken_at.parse::<Timestamp>().map(|at| context.now.as_second() - at.as_second());
    record.heading == heading.as_str() && age.is_ok_and(|seconds| (0..=RECORD_SECONDS).contains(&seconds))
}

/// Takes the record. What an older one says of limits and selectors wins: a fence may have changed them since.
fn take(context: &Context<'_>, old: Option<&SwitchRecord>, heading: Heading) -> Result<SwitchRecord, Step> {
    let services = need(&context.world.services, "Services")?;
    let connections = need(context.world.connections.of(heading.from), "connections")?;
    let queues = need(context.world.queues.of(heading.from), "queues")?;
    let members = need(context.world.stateful_sets.of(heading.from), "StatefulSet")?.replicas;
    let is_unknown = |c: &ConnectionView| c.role == Role::Unknown;
    let unknown = awaited(context, heading.from, connections, STATISTICS_MILLIS, is_unknown);
    if !unknown.is_empty() && old.is_none_or(|o| o.heading != heading.as_str()) {
        return Err(Step::wait(Reason::CannotSee, without_statistics(&unknown, heading)));
    }
    let mut record = SwitchRecord {
        protocol: PROTOCOL,
        taken_at: context.now.to_string(),
        heading: heading.as_str().to_owned(),
        from: Some(heading.from),
        limits: limits(context, old)?,
        services: services.iter().map(|s| original(context, s, old)).collect::<Result<_, _>>()?,
        clients: connections.iter().map(client).collect(),
        queues: queues.iter().filter_map(|queue| consumed(queue, old)).collect(),
        unroutable_before: context.world.traffic.of(heading.to).seen().map(|t| t.unroutable),
        manual_exit: Vec::new(),
    };
    record.manual_exit = manual_exit::commands(context.plan, &record, members);
    Ok(record)
}

fn need<'a, T>(reading: &'a Reading<T>, what: &str) -> Result<&'a T, Step> {
    reading.seen().ok_or_else(|| cannot_see(format!("{what}: {}", reading.why_not())))
}

/// The limits of every user on both sides as they were before any fence.
fn limits(context: &Context<'_>, old: Option<&SwitchRecord>) -> Result<Vec<OriginalLimit>, Step> {
    let mut limits = Vec::new();
    for side in Side::BOTH {
        for user in need(context.world.users.of(side), "users")? {
            let known = old.and_then(|record| record.limit(side, &user.name));
            limits.push(OriginalLimit {
                side,
                user: user.name.clone(),
                max_connections: known.unwrap_or(user.max_connections),
            });
        }
    }
    Ok(limits)
}

/// The two selectors of a Service.
fn original(
    context: &Context<'_>,
    service: &ServiceView,
    old: Option<&SwitchRecord>,
) -> Result<OriginalService, Step> {
    if let Some(known) = old.and_then(|r| r.services.iter().find(|s| s.uid == service.uid)) {
        return Ok(known.clone());
    }
    let green = need(&context.world.stateful_sets.green, "StatefulSet of green")?;
    let selector = Plan::green_selector(&service.selector, &green.pod_labels).ok_or_else(|| {
        cannot_see(format!("Service {}: no selector key tells green from blue", service.name))
    })?;
    Ok(OriginalService {
        name: service.name.clone(),
        uid: service.uid.clone(),
        blue_selector: service.selector.clone(),
        green_selector: selector,
        manager: service.manager.clone(),
    })
}

fn client(connection: &ConnectionView) -> Client {
    Client {
        connection: connection.name.clone(),
        user: connection.user.clone(),
        client: connection.client.clone(),
        role: connection.role,
    }
}

/// A shared queue that has consumers. Where statistics do not tell, the record of the way there does: the
/// queues are the same. Where nobody knows it counts as consumed, since unknown is never zero.
fn consumed(queue: &QueueTotals, old: Option<&SwitchRecord>) -> Option<ConsumedQueue> {
    let name = queue.queue.clone()?;
    let recorded = || old.is_none_or(|record| record.queues.iter().any(|q| q.queue == name));
    let has_consumers = queue.consumers.map_or_else(recorded, |consumers| consumers > 0);
    (has_consumers && !queue.exclusive && queue.kind != "stream").then_some(())?;
    Some(ConsumedQueue { queue: name, unacked: queue.unacked, acks_per_second: queue.acks_per_second })
}
