//! Green's own Services: the headless one, by which its members find each other, and the preview.

use super::blueprint::Blueprint;
use super::ports::{AMQP, DISTRIBUTION, EPMD, MANAGEMENT};
use serde_json::{Value, json};

/// The headless Service. It publishes members that are not ready: they find each other before they are.
pub(super) fn headless(green: &Blueprint<'_>) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": green.metadata(green.headless),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": true,
            "selector": green.selector(),
            "ports": [
                port("epmd", EPMD), port("amqp", AMQP), port("http", MANAGEMENT), port("dist", DISTRIBUTION),
            ],
        },
    })
}

/// The Service by which people reach green before it serves.
pub(super) fn preview(green: &Blueprint<'_>) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": green.metadata(&green.preview()),
        "spec": { "selector": green.selector(), "ports": [port("amqp", AMQP), port("http", MANAGEMENT)] },
    })
}

fn port(name: &str, number: i32) -> Value {
    json!({ "name": name, "port": number, "protocol": "TCP", "targetPort": number })
}

#[cfg(test)]
mod tests {
    use super::super::blueprint::tests::{is_exactly, plan, service};
    use super::*;
    use k8s_openapi::api::core::v1::Service;
    use std::collections::BTreeMap;

    #[test]
    fn the_objects_are_well_formed() {
        let plan = plan();
        let green = Blueprint::new(&plan, &[service()], &BTreeMap::new()).unwrap();
        is_exactly::<Service>(&headless(&green));
        is_exactly::<Service>(&preview(&green));
    }
}
