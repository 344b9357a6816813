//! What kubelet runs against a broker: commands and requests of probes and hooks, as text without passwords.

use k8s_openapi::api::core::v1::{Container, ExecAction, HTTPGetAction, Probe};

/// What stands in place of a password.
const MASK: &str = "***";
/// Options whose next word is, or ends in, a password.
const OPTIONS: [&str; 4] = ["-u", "--user", "-p", "--password"];

/// Each probe and hook of `container`, `liveness: sh -c rabbitmq-diagnostics -q ping`.
pub fn probe_commands(container: &Container) -> Vec<String> {
    let probes = [
        ("liveness", &container.liveness_probe),
        ("readiness", &container.readiness_probe),
        ("startup", &container.startup_probe),
    ];
    let probes = probes.into_iter().filter_map(|(name, probe)| {
        let Probe { exec, http_get, .. } = probe.as_ref()?;
        Some(format!("{name}: {}", action(exec.as_ref(), http_get.as_ref())?))
    });
    let lifecycle = container.lifecycle.clone().unwrap_or_default();
    let hooks = [("postStart", lifecycle.post_start), ("preStop", lifecycle.pre_stop)];
    let hooks = hooks.into_iter().filter_map(|(name, hook)| {
        let hook = hook?;
        Some(format!("{name}: {}", action(hook.exec.as_ref(), hook.http_get.as_ref())?))
    });
    probes.chain(hooks).collect()
}

fn action(exec: Option<&ExecAction>, http: Option<&HTTPGetAction>) -> Option<String> {
    if let Some(exec) = exec {
        return Some(masked(&exec.command.clone().unwrap_or_default().join(" ")));
    }
    let http = http?;
    let logs_in = http.http_headers.iter().flatten().any(|h| h.name.eq_ignore_ascii_case("authorization"));
    let path = http.path.as_deref().unwrap_or("/");
    Some(if logs_in { format!("GET {path} (Authorization)") } else { format!("GET {path}") })
}

/// `command` without passwords: those after `-u name:` and `--password`, and those in URLs. References to
/// variables stay, since they show that a user logs in.
fn masked(command: &str) -> String {
    let mut after_option = false;
    let words = command.split_whitespace().map(|word| {
        let masked = if after_option { mask_pair(word) } else { mask_url(word) };
        after_option = OPTIONS.contains(&word);
        masked
    });
    words.collect::<Vec<_>>().join(" ")
}

/// `name:password` or a bare password.
fn mask_pair(word: &str) -> String {
    match word.split_once(':') {
        Some((name, password)) => format!("{name}:{}", mask(password)),
        None => mask(word),
    }
}

/// `scheme://name:password@host`.
fn mask_url(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    let Some((login, host)) = rest.split_once('@') else { return word.to_owned() };
    format!("{scheme}://{}@{host}", mask_pair(login))
}

fn mask(password: &str) -> String {
    if password.trim_start_matches(['"', '\'']).starts_with('$') {
        password.to_owned()
    } else {
        MASK.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_masked_and_variables_stay() {
        let cases = [
            ("rabbitmq-diagnostics -q ping", "rabbitmq-diagnostics -q ping"),
            ("curl -u user:hunter2 http://x", "curl -u user:*** http://x"),
            ("curl --user user:$RABBITMQ_PASSWORD http://x", "curl --user user:$RABBITMQ_PASSWORD http://x"),
            ("curl http://user:hunter2@localhost:15672/api", "curl http://user:***@localhost:15672/api"),
            ("rabbitmqadmin --password hunter2 list", "rabbitmqadmin --password *** list"),
        ];
        for (command, want) in cases {
            assert_eq!(masked(command), want);
        }
    }

    #[test]
    fn a_request_with_a_login_is_told_apart() {
        let container: Container = serde_json::from_value(serde_json::json!({
            "name": "c",
            "livenessProbe": { "httpGet": { "path": "/api/aliveness-test/%2F", "port": 15672,
                "httpHeaders": [{ "name": "Authorization", "value": "Basic c2VjcmV0" }] } },
            "readinessProbe": { "tcpSocket": { "port": 5672 } },
            "lifecycle": { "preStop": { "exec": { "command": ["sh", "-c", "sleep 5"] } } },
        }))
        .unwrap();
        assert_eq!(
            probe_commands(&container),
            ["liveness: GET /api/aliveness-test/%2F (Authorization)", "preStop: sh -c sleep 5"]
        );
    }
}
