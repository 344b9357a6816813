//! Which migrations a change in Kubernetes concerns, and which of their facts it makes stale. Pure.

use api::{LABEL_MIGRATION, RabbitMQMigration};
use decide::fact::Fact;
use decide::plan::Plan;
use decide::side::Side;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::reflector::ObjectRef;
use std::collections::{BTreeMap, BTreeSet};

/// Label of an EndpointSlice with the name of its Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// The kinds that are watched beside migrations: those that facts are read from, but for Secrets, which are
/// never listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Services.
    Service,
    /// EndpointSlices.
    EndpointSlice,
    /// StatefulSets.
    StatefulSet,
    /// Pods.
    Pod,
    /// PersistentVolumeClaims.
    Claim,
    /// Nodes of Kubernetes.
    Node,
    /// PersistentVolumes.
    Volume,
    /// StorageClasses.
    Class,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Service,
        Self::EndpointSlice,
        Self::StatefulSet,
        Self::Pod,
        Self::Claim,
        Self::Node,
        Self::Volume,
        Self::Class,
    ];

    /// The resource as the API server knows it.
    pub fn resource(self) -> ApiResource {
        let (group, kind, plural) = self.names();
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1", kind), plural)
    }

    /// Group, kind and plural.
    pub const fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Service => ("", "Service", "services"),
            Self::EndpointSlice => ("discovery.k8s.io", "EndpointSlice", "endpointslices"),
            Self::StatefulSet => ("apps", "StatefulSet", "statefulsets"),
            Self::Pod => ("", "Pod", "pods"),
            Self::Claim => ("", "PersistentVolumeClaim", "persistentvolumeclaims"),
            Self::Node => ("", "Node", "nodes"),
            Self::Volume => ("", "PersistentVolume", "persistentvolumes"),
            Self::Class => ("storage.k8s.io", "StorageClass", "storageclasses"),
        }
    }

    /// Whether it belongs to no namespace.
    pub const fn is_of_cluster(self) -> bool {
        matches!(self, Self::Node | Self::Volume | Self::Class)
    }
}

/// An object that changed, as far as its metadata tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace; empty for what belongs to none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The StatefulSet that controls it.
    pub controller: Option<String>,
}

impl Change {
    /// Of an object of `kind`.
    pub fn new(kind: Kind, metadata: &ObjectMeta) -> Self {
        let mut owners = metadata.owner_references.iter().flatten();
        let controller = owners.find(|owner| owner.controller == Some(true) && owner.kind == "StatefulSet");
        Self {
            kind,
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            labels: metadata.labels.clone().unwrap_or_default(),
            controller: controller.map(|owner| owner.name.clone()),
        }
    }
}

/// A migration that a change concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Concern {
    /// The migration.
    pub migration: ObjectRef<RabbitMQMigration>,
    /// Its uid.
    pub uid: String,
    /// What must be read anew.
    pub facts: BTreeSet<Fact>,
}

/// The migrations that `change` concerns: those whose phase asks now for a fact that it bears on. Names are
/// enough here: a wake too many costs one pass, and what is decided is decided by uid.
pub fn concerned<'a>(
    migrations: impl IntoIterator<Item = &'a RabbitMQMigration>,
    change: &Change,
) -> Vec<Concern> {
    let near = |migration: &&RabbitMQMigration| {
        change.kind.is_of_cluster() || migration.metadata.namespace.as_ref() == Some(&change.namespace)
    };
    migrations.into_iter().filter(near).filter_map(|migration| concern(migration, change)).collect()
}

fn concern(migration: &RabbitMQMigration, change: &Change) -> Option<Concern> {
    // One whose spec is invalid reads nothing.
    let plan = Plan::parse(migration).ok()?;
    let mut facts = bears_on(&plan, change);
    if facts.is_empty() {
        return None;
    }
    let wants = decide::wants(&plan, &crate::reconcile::stored(migration));
    facts.retain(|fact| wants.iter().any(|want| want.fact == *fact));
    let migration = ObjectRef::from_obj(migration);
    (!facts.is_empty()).then_some(Concern { migration, uid: plan.uid, facts })
}

/// The facts that are read from the changed object. Those that brokers are asked for are never among them: a
/// change in Kubernetes makes nobody ask a broker sooner.
fn bears_on(plan: &Plan, change: &Change) -> BTreeSet<Fact> {
    let side = |name: &str| Side::BOTH.into_iter().find(|side| plan.broker(*side).stateful_set_name == name);
    let is_ours = change.labels.get(LABEL_MIGRATION) == Some(&plan.uid);
    let green = is_ours.then_some(Side::Green);
    match change.kind {
        // Any Service may begin to lead to blue: metadata does not tell its selector.
        Kind::Service if !plan.services.contains(&change.name) => [Fact::Entrances].into(),
        Kind::Service => [Fact::Services, Fact::Routes, Fact::Entrances].into(),
        Kind::EndpointSlice => {
            let service = change.labels.get(SERVICE_NAME);
            let moves = service.is_some_and(|name| plan.services.contains(name));
            moves.then_some(Fact::Routes).into_iter().collect()
        }
        Kind::StatefulSet => {
            let side = side(&change.name).or(green);
            side.map(|side| of_stateful_set(side).into()).unwrap_or_default()
        }
        Kind::Pod => {
            let side = change.controller.as_deref().and_then(side).or(green);
            side.map(|side| of_pod(side).into()).unwrap_or_default()
        }
        Kind::Claim => {
            let greens = is_ours || is_claim_of(&change.name, &plan.green.stateful_set_name);
            greens.then_some(Fact::Volumes).into_iter().collect()
        }
        Kind::Node => [Fact::Nodes].into(),
        Kind::Volume => [Fact::Volumes].into(),
        Kind::Class => [Fact::StorageClass].into(),
    }
}

const fn of_stateful_set(side: Side) -> [Fact; 4] {
    match side {
        Side::Blue => [Fact::StatefulSet(side), Fact::Pods(side), Fact::Entrances, Fact::Routes],
        Side::Green => [Fact::StatefulSet(side), Fact::Pods(side), Fact::Volumes, Fact::StorageClass],
    }
}

const fn of_pod(side: Side) -> [Fact; 2] {
    match side {
        Side::Blue => [Fact::Pods(side), Fact::Entrances],
        Side::Green => [Fact::Pods(side), Fact::Volumes],
    }
}

/// True for `<template>-<set>-<ordinal>`, as a StatefulSet names its claims.
fn is_claim_of(name: &str, set: &str) -> bool {
    let Some((front, ordinal)) = name.rsplit_once('-') else { return false };
    let is_ordinal = !ordinal.is_empty() && ordinal.bytes().all(|byte| byte.is_ascii_digit());
    is_ordinal
        && front.strip_suffix(set).is_some_and(|template| template.len() > 1 && template.ends_with('-'))
}

/// Whether a fact is read by management requests to a broker.
pub const fn asks_broker(fact: Fact) -> bool {
    match fact {
        Fact::Broker(_)
        | Fact::Epoch(_)
        | Fact::Users(_)
        | Fact::Definitions
        | Fact::Connections(_)
        | Fact::Queues(_)
        | Fact::Depths(_)
        | Fact::Emptiness(_)
        | Fact::Traffic(_)
        | Fact::Bindings(_)
        | Fact::Leftovers(_) => true,
        Fact::Permissions
        | Fact::Credentials(_)
        | Fact::StatefulSet(_)
        | Fact::Pods(_)
        | Fact::Services
        | Fact::Entrances
        | Fact::StorageClass
        | Fact::Nodes
        | Fact::Volumes
        | Fact::Record
        | Fact::Rehearsal
        | Fact::Routes
        | Fact::Others
        | Fact::Probe
        | Fact::Ledger => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{Phase, RabbitMQMigrationStatus};
    use serde_json::json;

    fn migration(namespace: &str, name: &str, phase: Phase) -> RabbitMQMigration {
        let mut migration: RabbitMQMigration = serde_json::from_value(json!({
            "apiVersion": "rabbitmq-migration.io/v1alpha1", "kind": "RabbitMQMigration",
            "metadata": { "name": name, "namespace": namespace, "uid": format!("uid-{namespace}-{name}") },
            "spec": {
                "blue": { "statefulSetName": "rabbitmq", "serviceName": "rabbitmq-headless",
                    "credentialsSecret": { "name": "rabbitmq", "username": "user" } },
                "green": { "template": { "image": "rabbitmq:4.0-management",
                    "storage": { "className": "zonal", "size": "10Gi" } } },
                "services": [{ "name": "rabbitmq" }],
            },
        }))
        .unwrap();
        migration.status = Some(RabbitMQMigrationStatus { phase: Some(phase), ..Default::default() });
        migration
    }

    fn change(kind: Kind, name: &str) -> Change {
        let namespace = if kind.is_of_cluster() { "" } else { "messaging" };
        Change {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            labels: BTreeMap::new(),
            controller: None,
        }
    }

    fn labelled(kind: Kind, name: &str, key: &str, value: &str) -> Change {
        Change { labels: [(key.to_owned(), value.to_owned())].into(), ..change(kind, name) }
    }

    fn pod_of(set: &str) -> Change {
        Change { controller: Some(set.to_owned()), ..change(Kind::Pod, "any") }
    }

    /// The facts that `change` makes stale for a migration in `phase`.
    fn stale(phase: Phase, change: &Change) -> Vec<Fact> {
        let found = concerned(&[migration("messaging", "orders", phase)], change);
        found.into_iter().flat_map(|concern| concern.facts).collect()
    }

    #[test]
    fn a_change_makes_stale_what_is_read_from_it() {
        use Side::{Blue, Green};
        let ours = "uid-messaging-orders";
        let cases = [
            (Phase::Preflight, change(Kind::Service, "rabbitmq"), vec![Fact::Services, Fact::Entrances]),
            (Phase::Preflight, change(Kind::Service, "new"), vec![Fact::Entrances]),
            (Phase::Soaking, change(Kind::Service, "new"), vec![]),
            (
                Phase::Soaking,
                labelled(Kind::EndpointSlice, "x", SERVICE_NAME, "rabbitmq"),
                vec![Fact::Routes],
            ),
            (Phase::Soaking, labelled(Kind::EndpointSlice, "x", SERVICE_NAME, "other"), vec![]),
            (
                Phase::Preflight,
                change(Kind::StatefulSet, "rabbitmq"),
                vec![Fact::StatefulSet(Blue), Fact::Pods(Blue), Fact::Entrances],
            ),
            (
                Phase::ProvisioningGreen,
                change(Kind::StatefulSet, "orders-green"),
                vec![Fact::StatefulSet(Green), Fact::Pods(Green)],
            ),
            (
                Phase::ProvisioningGreen,
                labelled(Kind::StatefulSet, "renamed", LABEL_MIGRATION, ours),
                vec![Fact::StatefulSet(Green), Fact::Pods(Green)],
            ),
            (Phase::ProvisioningGreen, change(Kind::StatefulSet, "database"), vec![]),
            (Phase::ProvisioningGreen, pod_of("orders-green"), vec![Fact::Pods(Green)]),
            (Phase::ProvisioningGreen, pod_of("database"), vec![]),
            (
                Phase::ProvisioningGreen,
                labelled(Kind::Pod, "any", LABEL_MIGRATION, ours),
                vec![Fact::Pods(Green)],
            ),
            (Phase::ProvisioningGreen, labelled(Kind::Pod, "any", LABEL_MIGRATION, "another"), vec![]),
            (Phase::VerifyingPlacement, change(Kind::Claim, "data-orders-green-0"), vec![Fact::Volumes]),
            (Phase::VerifyingPlacement, change(Kind::Claim, "data-rabbitmq-0"), vec![]),
            (Phase::VerifyingPlacement, change(Kind::Volume, "pv-1"), vec![Fact::Volumes]),
            (Phase::VerifyingPlacement, change(Kind::Class, "zonal"), vec![Fact::StorageClass]),
            (Phase::VerifyingPlacement, change(Kind::Node, "n1"), vec![Fact::Nodes]),
            (Phase::Probing, change(Kind::Node, "n1"), vec![]),
            (Phase::Completed, pod_of("rabbitmq"), vec![]),
        ];
        for (phase, change, want) in cases {
            let want: BTreeSet<Fact> = want.into_iter().collect();
            let found: BTreeSet<Fact> = stale(phase, &change).into_iter().collect();
            assert_eq!(found, want, "{phase}: {change:?}");
        }
    }

    #[test]
    fn only_migrations_that_the_object_can_reach_are_woken() {
        let all = [
            migration("messaging", "orders", Phase::Preflight),
            migration("messaging", "done", Phase::Completed),
            migration("elsewhere", "orders", Phase::Preflight),
        ];
        let names = |change: &Change| -> Vec<String> {
            concerned(&all, change).into_iter().map(|concern| concern.migration.to_string()).collect()
        };
        let near: Vec<_> = names(&pod_of("rabbitmq"));
        assert_eq!(near.len(), 1, "{near:?}");
        assert!(near.iter().all(|name| name.contains("orders.messaging")), "{near:?}");
        assert_eq!(names(&change(Kind::Node, "n1")).len(), 2, "a node is everybody's");
    }

    #[test]
    fn no_change_makes_a_broker_be_asked() {
        let plan = Plan::parse(&migration("messaging", "orders", Phase::Preflight)).unwrap();
        for kind in Kind::ALL {
            for name in ["rabbitmq", "orders-green", "data-orders-green-0", "x"] {
                let mut change = labelled(kind, name, SERVICE_NAME, "rabbitmq");
                change.controller = Some(name.to_owned());
                let broker: Vec<_> =
                    bears_on(&plan, &change).into_iter().filter(|f| asks_broker(*f)).collect();
                assert!(broker.is_empty(), "{change:?}: {broker:?}");
            }
        }
    }

    #[test]
    fn an_invalid_spec_is_woken_by_nothing() {
        let mut invalid = migration("messaging", "orders", Phase::Preflight);
        invalid.spec.green.template = None;
        assert!(concerned(&[invalid], &change(Kind::Service, "rabbitmq")).is_empty());
    }

    #[test]
    fn claims_are_named_after_template_set_and_ordinal() {
        let cases = [
            ("data-orders-green-0", true),
            ("data-orders-green-12", true),
            ("other-data-orders-green-1", true),
            ("orders-green-0", false),
            ("data-orders-green", false),
            ("data-orders-green-x", false),
            ("data-reorders-green-0", false),
        ];
        for (name, want) in cases {
            assert_eq!(is_claim_of(name, "orders-green"), want, "{name}");
        }
    }
}
