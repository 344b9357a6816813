//! What green's pods may do: look up their peers, and tell of it.

use super::blueprint::Blueprint;
use serde_json::{Value, json};

const GROUP: &str = "rbac.authorization.k8s.io";

/// The account of green's pods.
pub(super) fn service_account(green: &Blueprint<'_>) -> Value {
    json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": green.metadata(green.name) })
}

/// What peer discovery needs up to RabbitMQ 4.0; later versions ask for nothing.
pub(super) fn role(green: &Blueprint<'_>) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "Role",
        "metadata": green.metadata(green.name),
        "rules": [
            { "apiGroups": [""], "resources": ["endpoints", "pods"], "verbs": ["get"] },
            { "apiGroups": [""], "resources": ["events"], "verbs": ["create"] },
        ],
    })
}

/// Gives the role to the account.
pub(super) fn role_binding(green: &Blueprint<'_>) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "RoleBinding",
        "metadata": green.metadata(green.name),
        "roleRef": { "apiGroup": GROUP, "kind": "Role", "name": green.name },
        "subjects": [{ "kind": "ServiceAccount", "name": green.name, "namespace": green.namespace }],
    })
}

#[cfg(test)]
mod tests {
    use super::super::blueprint::tests::{is_exactly, plan, service};
    use super::*;
    use k8s_openapi::api::core::v1::ServiceAccount;
    use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
    use std::collections::BTreeMap;

    #[test]
    fn the_objects_are_well_formed() {
        let plan = plan();
        let green = Blueprint::new(&plan, &[service()], &BTreeMap::new()).unwrap();
        is_exactly::<ServiceAccount>(&service_account(&green));
        is_exactly::<Role>(&role(&green));
        is_exactly::<RoleBinding>(&role_binding(&green));
    }
}
