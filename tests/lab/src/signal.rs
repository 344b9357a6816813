//! Sends a signal to the first process of a pod's container, from outside: nothing in the pod takes part.

use serde_json::Value;

use crate::error::{Error, Result};
use crate::kubectl;
use crate::load::ctr;
use crate::paths;
use crate::programs::run;
use crate::setup::Built;
use crate::topology::node;

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Signal {
    /// Ends the process; it cannot do anything about it
    Kill,
    /// Freezes it
    Stop,
    /// Lets it go on
    Cont,
}

impl Signal {
    const fn name(self) -> &'static str {
        match self {
            Self::Kill => "SIGKILL",
            Self::Stop => "SIGSTOP",
            Self::Cont => "SIGCONT",
        }
    }
}

/// Sends `signal` to the first process of the pod's first container; fails where it does not run.
pub fn send(built: &Built, namespace: &str, pod: &str, signal: Signal) -> Result<()> {
    let object = kubectl::get(built, &["pod", pod, "--namespace", namespace])?;
    let container = running_container(&object)?;
    let place = node(object["spec"]["nodeName"].as_str().unwrap_or_default())?;
    let attempt = format!("send {} to {namespace}/{pod} on {}", signal.name(), place.name);
    let mut command = ctr(&paths::containerd_socket(place.name));
    run(&attempt, command.args(["tasks", "kill", "--signal", signal.name(), container])).map(drop)
}

fn running_container(pod: &Value) -> Result<&str> {
    let state = &pod["status"]["containerStatuses"][0];
    let id = state["containerID"].as_str().and_then(|id| id.strip_prefix("containerd://"));
    id.filter(|_| state["state"]["running"].is_object()).ok_or_else(|| Error::Refused {
        reason: format!("the pod's container does not run: {}", state["state"]),
    })
}

#[cfg(test)]
mod tests {
    use super::running_container;
    use serde_json::json;

    #[test]
    fn only_a_running_container_gets_a_signal() {
        let pod = |state: serde_json::Value| json!({"status": {"containerStatuses": [{"containerID": "containerd://abc", "state": state}]}});
        assert_eq!(running_container(&pod(json!({"running": {}}))).ok(), Some("abc"));
        assert!(running_container(&pod(json!({"terminated": {"exitCode": 137}}))).is_err());
        assert!(running_container(&json!({})).is_err());
    }
}
