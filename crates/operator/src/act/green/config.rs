//! Green's ConfigMap: rabbitmq.conf and the enabled plugins.

use super::blueprint::Blueprint;
use super::conf::rabbitmq_conf;
use serde_json::{Value, json};

/// Plugins of every green: what the operator and the migration need.
const PLUGINS: [&str; 7] = [
    "rabbitmq_management",
    "rabbitmq_prometheus",
    "rabbitmq_peer_discovery_k8s",
    "rabbitmq_shovel",
    "rabbitmq_shovel_management",
    "rabbitmq_federation",
    "rabbitmq_federation_management",
];

/// The ConfigMap.
pub(super) fn config_map(green: &Blueprint<'_>) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": green.metadata(&green.config()),
        "data": { "rabbitmq.conf": rabbitmq_conf(green), "enabled_plugins": enabled_plugins(green) },
    })
}

/// The Erlang term that lists the plugins. Names are quoted atoms: whatever stands in the template, it stays
/// one name.
pub(super) fn enabled_plugins(green: &Blueprint<'_>) -> String {
    let extra = green.template.plugins.iter().map(String::as_str).filter(|name| !PLUGINS.contains(name));
    let names: Vec<String> = PLUGINS.into_iter().chain(extra).map(atom).collect();
    format!("[{}].\n", names.join(","))
}

fn atom(name: &str) -> String {
    format!("'{}'", name.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use super::super::blueprint::tests::{is_exactly, plan, service};
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;
    use std::collections::BTreeMap;

    #[test]
    fn the_object_is_well_formed() {
        let plan = plan();
        let green = Blueprint::new(&plan, &[service()], &BTreeMap::new()).unwrap();
        is_exactly::<ConfigMap>(&config_map(&green));
        assert!(enabled_plugins(&green).starts_with("['rabbitmq_management','rabbitmq_prometheus',"));
        assert_eq!(atom("a'b"), "'a\\'b'");
    }
}
