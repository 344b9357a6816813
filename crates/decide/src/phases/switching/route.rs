//! Pointing the Services, and seeing it done: nobody is fenced before clients can come to the new side.

use crate::conditions::{Truth, set};
use crate::context::{Context, cannot_see};
use crate::effect::{Effect, Pointing};
use crate::names::MANAGER;
use crate::phases::cleanup;
use crate::phases::switching::{contest, note_stage, stage};
use crate::record::SwitchRecord;
use crate::side::{Heading, Side};
use crate::step::{Reason, Step};
use crate::world::{Reading, RouteView, ServiceView};
use api::conditions::TRAFFIC_SHIFTED;
use api::status::SwitchStatus;
use api::{RabbitMQMigrationStatus, Time};
use std::collections::BTreeMap;
use std::collections::BTreeSet;

/// How long every route must have been seen to lead to the new side before anybody is fenced. Fencing right
/// after the write let clients run into the fence in 1 of 4 runs; after a second in none.
const SEEN_MILLIS: i64 = 1000;

/// Unfences the new side, points the Services, and waits until every route is seen to lead there.
pub fn decide(
    context: &Context<'_>,
    draft: &mut RabbitMQMigrationStatus,
    heading: Heading,
    record: &SwitchRecord,
) -> Option<Step> {
    let services = match &context.world.services {
        Reading::Seen(services) => services,
        unknown => return Some(cannot_see(format!("Services: {}", unknown.why_not()))),
    };
    // The fence follows the route: nobody may be refused on the side that his Services will lead to.
    if let Some(step) = cleanup::lift_fence(context, heading.to) {
        return Some(step);
    }
    let wrong = wrong(context, draft, heading, record, services);
    if !wrong.is_empty() {
        note_route(draft);
        return Some(Step::Do(vec![Effect::Point(wrong)]));
    }
    let cluster = match context.cluster_names(heading.to) {
        Ok(names) => names,
        Err(why) => return Some(cannot_see(format!("{}: {why}", heading.to))),
    };
    if let Reading::Failed(why) = &context.world.routes {
        return Some(Step::wait(Reason::RouteNotSeen, format!("routes cannot be read: {why}")));
    }
    let there =
        |routes: &Vec<RouteView>| !routes.is_empty() && routes.iter().all(|r| leads(r, heading.to, &cluster));
    let held = context.world.history.routes.held_millis(there);
    if held.is_some_and(|millis| millis >= SEEN_MILLIS) {
        return None;
    }
    note_route(draft);
    let detail = match held {
        Some(millis) => {
            format!("every Service leads to {} since {millis} ms of {SEEN_MILLIS} ms", heading.to)
        }
        None => astray(context, heading.to, &cluster),
    };
    Some(Step::wait(Reason::RouteNotSeen, detail))
}

/// Nobody comes back to a side that stays fenced: where its queues were proven empty already they need not be
/// again.
fn note_route(draft: &mut RabbitMQMigrationStatus) {
    let far = |s: &SwitchStatus| s.stage == stage::CONSUMERS || s.stage == stage::PROOF;
    if !draft.switching.as_ref().is_some_and(far) {
        note_stage(draft, stage::ROUTE);
    }
}

/// What must be pointed. The first write of a heading takes the field by force; one that somebody else took
/// back is taken once more, and that is noted; a later write of our own kind needs no force.
fn wrong(
    context: &Context<'_>,
    draft: &mut RabbitMQMigrationStatus,
    heading: Heading,
    record: &SwitchRecord,
    services: &[ServiceView],
) -> Vec<Pointing> {
    let Some(switching) = &mut draft.switching else { return Vec::new() };
    let mut wrong = Vec::new();
    for service in services {
        let taken = contest::is_taken(context, switching, service, heading);
        let pointed = switching.pointed.contains(&service.name);
        // One that was pointed and leads there by another selector is as good.
        let fine = pointed && !taken && service.manager.as_deref() != Some(MANAGER);
        let pointing = pointing(service, record, heading, taken || !pointed);
        wrong.extend(pointing.filter(|_| !fine).map(|pointing| (pointing, taken)));
    }
    if wrong.iter().any(|(_, taken)| *taken) {
        switching.repaired_at = Some(Time(context.now));
    }
    wrong.into_iter().map(|(pointing, _)| pointing).collect()
}

/// What a Service's selector must be changed to, or nothing where it is right.
fn pointing(service: &ServiceView, record: &SwitchRecord, heading: Heading, force: bool) -> Option<Pointing> {
    let original = record.services.iter().find(|s| s.name == service.name)?;
    let selector = original.selector(heading.to);
    (service.selector != *selector).then(|| Pointing {
        service: service.name.clone(),
        uid: original.uid.clone(),
        selector: selector.clone(),
        force,
    })
}

/// Exactly one side behind every port, somebody ready on each, and the handshake tells the right cluster.
pub fn leads(route: &RouteView, to: Side, cluster: &BTreeSet<&str>) -> bool {
    let ports = route.ports.iter().all(|port| {
        let (wanted, other) = match to {
            Side::Blue => (port.blue, port.green),
            Side::Green => (port.green, port.blue),
        };
        wanted > 0 && other == 0 && port.others == 0
    });
    ports
        && !route.ports.is_empty()
        && route.answered_by.as_deref().is_some_and(|name| cluster.contains(name))
}

fn astray(context: &Context<'_>, to: Side, cluster: &BTreeSet<&str>) -> String {
    let routes = context.world.routes.seen().map(Vec::as_slice).unwrap_or_default();
    let first = routes.iter().find(|route| !leads(route, to, cluster));
    first.map_or_else(
        || format!("no route was seen to lead to {to} yet"),
        |route| {
            let ports: Vec<String> = route
                .ports
                .iter()
                .map(|p| format!("{} blue {} green {} others {}", p.port, p.blue, p.green, p.others))
                .collect();
            format!(
                "Service {} does not lead to {to} yet: {}; {} answers, not {}",
                route.service,
                ports.join(", "),
                route.answered_by.as_deref().unwrap_or("nobody"),
                cluster.first().unwrap_or(&"anybody known")
            )
        },
    )
}

/// True where a Service's selector selects the pods of a side.
pub fn selects(context: &Context<'_>, service: &ServiceView, side: Side) -> bool {
    let labels = context.world.stateful_sets.of(side).seen().map(|s| &s.pod_labels);
    let matches =
        |labels: &BTreeMap<String, String>| service.selector.iter().all(|(k, v)| labels.get(k) == Some(v));
    !service.selector.is_empty() && labels.is_some_and(matches)
}

/// Writes to status which side the Services lead to, and that green served as soon as one led there.
pub fn note_serving(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus) {
    let Some(services) = context.world.services.seen() else { return };
    let leads_to = |side: Side| !services.is_empty() && services.iter().all(|s| selects(context, s, side));
    if services.iter().any(|s| selects(context, s, Side::Green))
        && let Some(green) = &mut draft.green
    {
        green.served = true;
    }
    let serving = match (leads_to(Side::Blue), leads_to(Side::Green)) {
        (true, false) => "Blue",
        (false, true) => "Green",
        (true, true) | (false, false) => return,
    };
    draft.serving_side = Some(serving.to_owned());
    let shifted = Truth::of(serving == "Green");
    let detail = format!("the Services lead to {}", serving.to_lowercase());
    set(draft, context, TRAFFIC_SHIFTED, shifted, &format!("{serving}Serves"), &detail);
}
