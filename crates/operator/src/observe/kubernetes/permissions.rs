//! What we may not do though the plan needs it, by access reviews.

use super::{Answer, call, reading};
use crate::body::Scene;
use decide::plan::Plan;
use decide::world::Reading;
use futures::future::try_join_all;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;

/// Something that we must be allowed to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Need {
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    namespaced: bool,
}

const fn need(group: &'static str, resource: &'static str, verbs: &'static [&'static str]) -> Need {
    Need { group, resource, verbs, namespaced: true }
}

const fn cluster(group: &'static str, resource: &'static str, verbs: &'static [&'static str]) -> Need {
    Need { group, resource, verbs, namespaced: false }
}

/// What every migration needs.
const ALWAYS: &[Need] = &[
    need(::api::GROUP, "rabbitmqmigrations", &["list"]),
    need("", "services", &["get", "list", "patch"]),
    need("", "pods", &["list"]),
    need("", "secrets", &["get", "create", "update", "delete"]),
    need("", "configmaps", &["get", "create", "update", "delete"]),
    need("", "persistentvolumeclaims", &["get"]),
    need("apps", "statefulsets", &["get"]),
    need("discovery.k8s.io", "endpointslices", &["list"]),
    need("events.k8s.io", "events", &["create"]),
    cluster("", "nodes", &["list"]),
    cluster("", "persistentvolumes", &["get"]),
    cluster("storage.k8s.io", "storageclasses", &["get"]),
];

/// What making green needs besides.
const TEMPLATE: &[Need] = &[
    need("apps", "statefulsets", &["create", "patch", "delete"]),
    need("", "services", &["create", "delete"]),
    need("", "configmaps", &["patch"]),
    need("", "serviceaccounts", &["get", "create", "patch", "delete"]),
    need("", "persistentvolumeclaims", &["list", "delete"]),
    need("", "pods", &["delete"]),
    need("policy", "poddisruptionbudgets", &["get", "create", "patch", "delete"]),
    need("networking.k8s.io", "networkpolicies", &["get", "create", "patch", "delete"]),
    need("rbac.authorization.k8s.io", "roles", &["get", "create", "patch", "delete"]),
    need("rbac.authorization.k8s.io", "rolebindings", &["get", "create", "patch", "delete"]),
];

/// What scaling blue to zero needs besides.
const SCALE: &[Need] = &[need("apps", "statefulsets", &["patch"])];

/// Group, resource and verbs of all that any plan may need.
pub fn needs_of_any_plan() -> impl Iterator<Item = (&'static str, &'static str, &'static [&'static str])> {
    let all = ALWAYS.iter().chain(TEMPLATE).chain(SCALE);
    all.map(|need| (need.group, need.resource, need.verbs))
}

/// Reads what is missing, as `verb resource`; writes nothing.
pub async fn permissions(scene: &Scene<'_>) -> Reading<Vec<String>> {
    let reviews = needs(scene.plan).into_iter().map(|(need, verb)| review(scene, need, verb));
    reading(try_join_all(reviews).await.map(|missing| missing.into_iter().flatten().collect()))
}

/// Each verb that the plan needs.
fn needs(plan: &Plan) -> Vec<(&'static Need, &'static str)> {
    let template = if plan.template().is_some() { TEMPLATE } else { &[] };
    let scale = match plan.retirement.policy {
        api::spec::RetirementPolicy::ScaleToZero => SCALE,
        api::spec::RetirementPolicy::Retain => &[],
    };
    let all = ALWAYS.iter().chain(template).chain(scale);
    all.flat_map(|need| need.verbs.iter().map(move |verb| (need, *verb))).collect()
}

/// Asks for one verb; gives its name where it is refused.
async fn review(scene: &Scene<'_>, need: &Need, verb: &str) -> Answer<Option<String>> {
    let attributes = ResourceAttributes {
        group: Some(need.group.to_owned()),
        resource: Some(need.resource.to_owned()),
        verb: Some(verb.to_owned()),
        namespace: need.namespaced.then(|| scene.plan.namespace.clone()),
        ..ResourceAttributes::default()
    };
    let question = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() },
        ..SelfSubjectAccessReview::default()
    };
    let api: Api<SelfSubjectAccessReview> = Api::all(scene.body.client.clone());
    let attempt = format!("review access to {verb} {}", need.resource);
    let answer = call(&attempt, api.create(&PostParams::default(), &question)).await?;
    let allowed = answer.status.is_some_and(|status| status.allowed);
    Ok((!allowed).then(|| format!("{verb} {}", need.resource)))
}
