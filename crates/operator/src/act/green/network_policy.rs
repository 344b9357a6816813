//! Green's network policy: members speak to each other, everybody may use the client ports.

use super::blueprint::Blueprint;
use super::ports::{DISTRIBUTION, EPMD};
use serde_json::{Value, json};

/// The policy. Clients may come from anywhere, as they could to blue; only the two inter-node ports are kept
/// to green's own pods. Ranges leave them out, so that every plugin's port works without being named.
pub(super) fn network_policy(green: &Blueprint<'_>) -> Value {
    let members = json!({ "podSelector": { "matchLabels": green.selector() } });
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": green.metadata(green.name),
        "spec": {
            "podSelector": { "matchLabels": green.selector() },
            "policyTypes": ["Ingress"],
            "ingress": [
                { "from": [members] },
                { "ports": [
                    range(1, EPMD - 1), range(EPMD + 1, DISTRIBUTION - 1), range(DISTRIBUTION + 1, 65535),
                ]},
            ],
        },
    })
}

fn range(first: i32, last: i32) -> Value {
    json!({ "protocol": "TCP", "port": first, "endPort": last })
}

#[cfg(test)]
mod tests {
    use super::super::blueprint::tests::{is_exactly, plan, service};
    use super::*;
    use k8s_openapi::api::networking::v1::NetworkPolicy;
    use std::collections::BTreeMap;

    #[test]
    fn the_object_is_well_formed() {
        let plan = plan();
        let green = Blueprint::new(&plan, &[service()], &BTreeMap::new()).unwrap();
        is_exactly::<NetworkPolicy>(&network_policy(&green));
    }
}
