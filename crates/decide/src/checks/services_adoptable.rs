//! Each moved Service exists, no controller owns it, and its selector can tell green from blue.

use crate::checks::{Check, Finding, Severity};
use crate::plan::Plan;
use crate::world::World;
use crate::world::{Reading, ServiceView};

/// The check.
pub const CHECK: Check = Check { id: "services-adoptable", run };

fn run(plan: &Plan, world: &World) -> Vec<Finding> {
    let services = match &world.services {
        Reading::Seen(services) => services,
        unknown => return vec![Finding::unknown(format!("Services: {}", unknown.why_not()))],
    };
    services.iter().filter_map(|service| look(plan, world, service)).collect()
}

fn look(plan: &Plan, world: &World, service: &ServiceView) -> Option<Finding> {
    let name = &service.name;
    let block = |evidence: String, remedy: &str| Some(Finding::new(Severity::Block, evidence, remedy));
    if service.uid.is_empty() {
        return block(format!("there is no Service {name}"), "correct spec.services");
    }
    if let Some(owner) = &service.owner {
        let remedy = "a controller writes it back: let clients use a Service of their own and list that one";
        return block(format!("Service {name} is owned by {owner}"), remedy);
    }
    let green = match plan.template() {
        Some(_) => plan.green_labels(std::iter::once(&service.selector)),
        None => world.stateful_sets.green.seen().map(|s| s.pod_labels.clone()).unwrap_or_default(),
    };
    let blue = world.stateful_sets.blue.seen().map(|s| s.pod_labels.clone()).unwrap_or_default();
    let on_green = service.selector.iter().all(|(key, value)| blue.get(key) != Some(value));
    if Plan::green_selector(&service.selector, &green).is_none() && !on_green {
        let evidence =
            format!("the selector of Service {name} has no key by which green could be told from blue");
        let remedy = "give its selector and blue's pods one more label, for example app.kubernetes.io/name";
        return block(evidence, remedy);
    }
    None
}
