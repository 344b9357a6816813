//! The contested route: somebody else takes a Service back after we pointed it.
//!
//! It is pointed again by force, once per heading. Taken again, the fence follows the route: the side that the
//! Service leads to is opened, and a person decides. What lands there meanwhile is moved or carried afterwards.

use crate::conditions::{Truth, set};
use crate::context::Context;
use crate::manual_exit;
use crate::names::MANAGER;
use crate::phases::cleanup;
use crate::phases::switching::{note_stage, selects, stage};
use crate::record::SwitchRecord;
use crate::side::{Heading, Side};
use crate::step::{Reason, Step};
use crate::world::ServiceView;
use api::conditions::ROUTING_CONTESTED;
use api::spec::{OnContest, Outcome};
use api::status::SwitchStatus;
use api::{RabbitMQMigrationStatus, Time};

/// How long the one repair is tried before the fence follows the route: something else may be in its way.
const REPAIR_MILLIS: i64 = 1500;

/// Notes who was pointed and who was taken; opens the side that a taken Service leads to, and stops, where it
/// is not to be repaired. The repair itself is the route's.
pub fn decide(
    context: &Context<'_>,
    draft: &mut RabbitMQMigrationStatus,
    heading: Heading,
    record: &SwitchRecord,
) -> Option<Step> {
    let services = context.world.services.seen()?;
    note_pointed(context, draft, heading, record, services);
    let switching = draft.switching.as_mut()?;
    let taken: Vec<&ServiceView> =
        services.iter().filter(|service| is_taken(context, switching, service, heading)).collect();
    if taken.is_empty() {
        settled(context, draft);
        return None;
    }
    let since = switching.contested_since.get_or_insert(Time(context.now)).0;
    let repairs = may_repair(context, switching);
    note(context, draft, &taken, heading);
    if repairs {
        return None;
    }
    note_stage(draft, stage::CONTESTED);
    if let Some(step) = open(context, heading.from) {
        return Some(step);
    }
    // Ordered to go back: that settles it.
    if heading == Heading::FORWARD && context.plan.outcome == Outcome::RolledBack {
        return None;
    }
    let minutes = (context.now.as_second() - since.as_second()) / 60;
    let first = taken.first()?;
    Some(Step::stop(Reason::RoutingContested, remedy(context, heading, record, first, minutes)))
}

/// Whether a Service that was taken is to be pointed once more.
pub fn may_repair(context: &Context<'_>, switching: &SwitchStatus) -> bool {
    let contested = switching
        .contested_since
        .as_ref()
        .map_or(0, |since| context.now.as_millisecond() - since.0.as_millisecond());
    switching.repaired_at.is_none() && contested <= REPAIR_MILLIS
}

/// Whether a Service was pointed in this heading and somebody else made it lead elsewhere since.
pub fn is_taken(
    context: &Context<'_>,
    switching: &SwitchStatus,
    service: &ServiceView,
    heading: Heading,
) -> bool {
    switching.pointed.contains(&service.name)
        && leads(context, service, heading.to) == Some(false)
        && service.manager.as_deref() != Some(MANAGER)
}

/// Opens a side that a Service leads to, where the fence follows the route.
pub fn open(context: &Context<'_>, side: Side) -> Option<Step> {
    let led = |service: &ServiceView| leads(context, service, side) == Some(true);
    let follows = context.plan.cutover.on_contest == OnContest::Follow;
    let leads_there = context.world.services.seen().is_some_and(|services| services.iter().any(led));
    if follows && leads_there { cleanup::lift_fence(context, side) } else { None }
}

/// Whether a Service was taken back to blue while green serves: the switch has to see to it. Begins the contest
/// in status.
pub fn reopens(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus) -> bool {
    let heading = Heading::FORWARD;
    let Some(services) = context.world.services.seen() else { return false };
    let Some(switching) = draft.switching.as_mut() else { return false };
    let taken: Vec<&ServiceView> =
        services.iter().filter(|service| is_taken(context, switching, service, heading)).collect();
    if taken.is_empty() {
        return false;
    }
    switching.contested_since.get_or_insert(Time(context.now));
    note(context, draft, &taken, heading);
    true
}

/// Whether a Service leads to a side; `None` where nobody can tell. Another selector that selects the same pods
/// is as good as ours: it may be what was brought to Git.
fn leads(context: &Context<'_>, service: &ServiceView, side: Side) -> Option<bool> {
    let record = context.world.record.seen().and_then(Option::as_ref);
    let recorded = record.and_then(|record| record.services.iter().find(|s| s.name == service.name));
    let is_of = |side: Side| recorded.is_some_and(|original| *original.selector(side) == service.selector);
    if is_of(side) || is_of(side.other()) {
        return Some(is_of(side));
    }
    context.world.stateful_sets.of(side).seen().map(|_| selects(context, service, side))
}

/// Notes which Services were pointed: those that were seen to lead there, and those whose write was answered.
fn note_pointed(
    context: &Context<'_>,
    draft: &mut RabbitMQMigrationStatus,
    heading: Heading,
    record: &SwitchRecord,
    services: &[ServiceView],
) {
    let since = context.status.phase_since.as_ref().map(|since| since.0);
    let Some(switching) = &mut draft.switching else { return };
    for service in services {
        let original = record.services.iter().find(|s| s.name == service.name);
        let there = original.is_some_and(|o| *o.selector(heading.to) == service.selector);
        let written = context.world.progress.pointed.get(&service.name);
        let written = written.is_some_and(|at| since.is_none_or(|since| *at >= since));
        if (there || written) && !switching.pointed.contains(&service.name) {
            switching.pointed.push(service.name.clone());
        }
    }
}

fn settled(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus) {
    let Some(switching) = &mut draft.switching else { return };
    if switching.contested_since.take().is_some() {
        switching.settled_at = Some(Time(context.now));
    }
    if !switching.pointed.is_empty() {
        let detail = "the Services lead where they were pointed";
        set(draft, context, ROUTING_CONTESTED, Truth::False, "AsPointed", detail);
    }
}

fn note(
    context: &Context<'_>,
    draft: &mut RabbitMQMigrationStatus,
    taken: &[&ServiceView],
    heading: Heading,
) {
    let told: Vec<String> =
        taken.iter().map(|s| format!("Service {}: {} wrote its selector", s.name, manager(s))).collect();
    let detail = format!("{}; it shall lead to {}", told.join("; "), heading.to);
    set(draft, context, ROUTING_CONTESTED, Truth::True, Reason::RoutingContested.as_str(), &detail);
}

fn manager(service: &ServiceView) -> &str {
    service.manager.as_deref().unwrap_or("unknown")
}

/// What happened, what was done, and what a person can do.
fn remedy(
    context: &Context<'_>,
    heading: Heading,
    record: &SwitchRecord,
    service: &ServiceView,
    minutes: i64,
) -> String {
    let (from, to) = (heading.from, heading.to);
    let where_to =
        if leads(context, service, from) == Some(true) { from.to_string() } else { "nobody".into() };
    let fence = match context.plan.cutover.on_contest {
        OnContest::Follow => format!("{from} is open to clients where a Service leads there"),
        OnContest::Hold => format!("the fence of {from} stays (cutover.onContest: Hold)"),
    };
    let point =
        record.services.iter().find(|s| s.name == service.name).map_or_else(String::new, |original| {
            format!(": {}", manual_exit::point(&context.plan.namespace, original, to))
        });
    let back = if heading == Heading::FORWARD { ", or set spec.desiredOutcome: RolledBack" } else { "" };
    let (name, who) = (&service.name, manager(service));
    format!(
        "{who} made Service {name} lead to {where_to} again, {minutes} min ago; {fence}. Change what {who} \
         applies, then point it to {to}{point}{back}"
    )
}
