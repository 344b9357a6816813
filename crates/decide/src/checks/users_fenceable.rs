//! Every connected client can be refused when it comes back to blue.

use crate::checks::{Check, Finding, Severity};
use crate::plan::Plan;
use crate::world::World;
use crate::world::{ConnectionView, Reading, UserView};
use std::collections::BTreeSet;

/// The check.
pub const CHECK: Check = Check { id: "users-fenceable", run };

fn run(_: &Plan, world: &World) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(broker) = world.brokers.blue.seen() {
        match broker.user_limits {
            Some(true) => {}
            Some(false) => findings.push(Finding::new(
                Severity::Block,
                "feature flag user_limits is off on blue, so connections cannot be refused",
                "rabbitmqctl enable_feature_flag user_limits",
            )),
            None => findings.push(Finding::unknown("feature flags of blue could not be read")),
        }
    }
    match (&world.users.blue, &world.connections.blue) {
        (Reading::Seen(users), Reading::Seen(connections)) => {
            findings.extend(unfenceable(users, connections));
        }
        (users, connections) => {
            if users.seen().is_none() {
                findings.push(Finding::unknown(format!("users of blue: {}", users.why_not())));
            }
            if connections.seen().is_none() {
                findings.push(Finding::unknown(format!("connections of blue: {}", connections.why_not())));
            }
        }
    }
    findings
}

fn unfenceable(users: &[UserView], connections: &[ConnectionView]) -> Vec<Finding> {
    let known = |user: &str| users.iter().any(|u| u.name == user);
    let external: BTreeSet<&str> =
        connections.iter().map(|c| c.user.as_str()).filter(|user| !known(user)).collect();
    let stream: BTreeSet<&str> =
        connections.iter().filter(|c| c.protocol.contains("stream")).map(|c| c.user.as_str()).collect();
    let list = |names: BTreeSet<&str>| names.into_iter().take(8).collect::<Vec<_>>().join(", ");
    let mut findings = Vec::new();
    if !external.is_empty() {
        findings.push(Finding::new(
            Severity::Block,
            format!("connected users without an internal record cannot be fenced yet: {}", list(external)),
            "let these clients use internal users, or waive this check",
        ));
    }
    if !stream.is_empty() {
        findings.push(Finding::new(
            Severity::Block,
            format!("clients of the stream protocol pass the fence: {}", list(stream)),
            "stop these clients before the switch and waive this check",
        ));
    }
    findings
}
