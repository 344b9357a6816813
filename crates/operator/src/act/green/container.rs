//! The containers of green's pods: the cookie's writer and the broker.

use super::blueprint::Blueprint;
use super::ports::AMQP;
use super::secrets::{COOKIE, PASSWORD, USERNAME};
use ::api::spec::PullPolicy;
use serde_json::{Value, json};

/// Home of the broker's user in the official image.
const HOME: &str = "/var/lib/rabbitmq";
/// Seconds that a member which is asked to stop waits for a quorum without it. Half of the grace period; the
/// other half is for its own shutdown.
const QUORUM_WAIT: u32 = 300;

/// Writes the cookie, mode 0400, at every start of a pod. A mounted one would get mode 0440 from fsGroup, and
/// the node would die. It is removed first: nobody may write over mode 0400.
const WRITE_COOKIE: &str = "umask 077 && rm -f \"$HOME/.erlang.cookie\" \
&& printf %s \"$ERLANG_COOKIE\" > \"$HOME/.erlang.cookie\" && chmod 0400 \"$HOME/.erlang.cookie\"";

/// The container that writes the cookie.
pub(super) fn cookie(green: &Blueprint<'_>) -> Value {
    json!({
        "name": "cookie",
        "image": green.template.image,
        "imagePullPolicy": pull_policy(green),
        "command": ["sh", "-c", WRITE_COOKIE],
        "env": [{ "name": "HOME", "value": HOME }, secret_env(green, "ERLANG_COOKIE", COOKIE)],
        "resources": resources(green),
        "securityContext": restricted(),
        "volumeMounts": [{ "name": "home", "mountPath": HOME }],
    })
}

/// The broker. Its data is on the claim, below a home that dies with the pod; configuration files are mounted
/// one by one, so that the image's own conf.d stays.
pub(super) fn broker(green: &Blueprint<'_>) -> Value {
    let mut broker = json!({
        "name": "rabbitmq",
        "image": green.template.image,
        "imagePullPolicy": pull_policy(green),
        "env": env(green),
        "ports": green.ports.declared(),
        "resources": resources(green),
        "securityContext": restricted(),
        // A command-line probe costs a CPU-second each time.
        "readinessProbe": { "tcpSocket": { "port": AMQP }, "periodSeconds": 5, "failureThreshold": 3 },
        "volumeMounts": [
            { "name": "home", "mountPath": HOME },
            { "name": "data", "mountPath": format!("{HOME}/mnesia") },
            { "name": "config", "mountPath": "/etc/rabbitmq/rabbitmq.conf", "subPath": "rabbitmq.conf", "readOnly": true },
            { "name": "config", "mountPath": "/etc/rabbitmq/enabled_plugins", "subPath": "enabled_plugins", "readOnly": true },
        ],
    });
    // A single member would wait for itself.
    if green.template.replicas > 1 {
        let wait = format!("rabbitmq-upgrade await_online_quorum_plus_one -t {QUORUM_WAIT}");
        if let Some(fields) = broker.as_object_mut() {
            fields.insert(
                "lifecycle".to_owned(),
                json!({ "preStop": { "exec": { "command": ["sh", "-c", wait] } } }),
            );
        }
    }
    broker
}

/// Our variables, then the template's; one that both set is the template's.
fn env(green: &Blueprint<'_>) -> Vec<Value> {
    let users = &green.template.env;
    let is_ours = |var: &Value| var["name"].as_str().is_none_or(|name| !users.contains_key(name));
    let ours = ours(green).into_iter().filter(is_ours);
    ours.chain(users.iter().map(|(name, value)| plain(name, value))).collect()
}

fn ours(green: &Blueprint<'_>) -> Vec<Value> {
    let suffix = green.hostname_suffix();
    vec![
        // Before what refers to it.
        json!({ "name": "POD_NAME", "valueFrom": { "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.name" } } }),
        plain("HOME", HOME),
        plain("RABBITMQ_USE_LONGNAME", "true"),
        plain("RABBITMQ_NODENAME", &format!("rabbit@$(POD_NAME){suffix}")),
        plain("K8S_SERVICE_NAME", green.headless),
        plain("K8S_HOSTNAME_SUFFIX", &suffix),
        secret_env(green, "RABBITMQ_DEFAULT_USER", USERNAME),
        secret_env(green, "RABBITMQ_DEFAULT_PASS", PASSWORD),
    ]
}

fn plain(name: &str, value: &str) -> Value {
    json!({ "name": name, "value": value })
}

fn secret_env(green: &Blueprint<'_>, name: &str, key: &str) -> Value {
    json!({ "name": name, "valueFrom": { "secretKeyRef": { "name": green.secret, "key": key } } })
}

fn resources(green: &Blueprint<'_>) -> Value {
    let resources = &green.template.resources;
    let lists = [("requests", &resources.requests), ("limits", &resources.limits)];
    lists
        .into_iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(name, list)| (name.to_owned(), json!(list)))
        .collect()
}

fn restricted() -> Value {
    json!({ "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } })
}

const fn pull_policy(green: &Blueprint<'_>) -> &'static str {
    match green.template.image_pull_policy {
        PullPolicy::IfNotPresent => "IfNotPresent",
        PullPolicy::Always => "Always",
        PullPolicy::Never => "Never",
    }
}
