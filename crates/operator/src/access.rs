//! All that the operator asks of the Kubernetes API. `deploy/base` grants exactly this; `tests/passes` compares.

use crate::interest::Kind;
use crate::observe::kubernetes::needs_of_any_plan;
use std::collections::BTreeSet;

/// A verb on a resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    /// The API group; empty for the core.
    pub group: &'static str,
    /// The resource, with its subresource.
    pub resource: &'static str,
    /// The verb.
    pub verb: &'static str,
}

/// What the body needs whatever the plan: group, resource, verbs.
const BODY: &[(&str, &str, &[&str])] = &[
    // The queue; patch: the claim and the finalizer. Nobody but users writes spec.
    ("rabbitmq-migration.io", "rabbitmqmigrations", &["get", "list", "watch", "patch"]),
    ("rabbitmq-migration.io", "rabbitmqmigrations/status", &["update"]),
    // An event that comes again is counted up in its series.
    ("events.k8s.io", "events", &["create", "patch"]),
    // A migration in a namespace that goes must not hold it up.
    ("", "namespaces", &["get"]),
    ("coordination.k8s.io", "leases", &["get", "create", "update"]),
];

/// What green's pods are given for peer discovery: nobody can give what he has not.
const LENT: &[(&str, &str, &[&str])] =
    &[("", "endpoints", &["get"]), ("", "pods", &["get"]), ("", "events", &["create"])];

/// Everything, for any plan.
pub fn all() -> BTreeSet<Access> {
    let fixed = BODY.iter().chain(LENT).copied();
    let watched = Kind::ALL.into_iter().map(|kind| {
        let (group, _, resource) = kind.names();
        (group, resource, ["list", "watch"].as_slice())
    });
    let of = |(group, resource, verbs): (&'static str, &'static str, &'static [&'static str])| {
        verbs.iter().map(move |verb| Access { group, resource, verb })
    };
    fixed.chain(watched).chain(needs_of_any_plan()).flat_map(of).collect()
}
