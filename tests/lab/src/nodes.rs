//! The Kubernetes nodes: a containerd, a kubelet and a kube-proxy in each node's space.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::error::{Attempt, Result};
use crate::programs::run;
use crate::progress::{Look, wait_until};
use crate::recipe::PAUSE_IMAGE;
use crate::setup::Built;
use crate::space::LAB;
use crate::topology::{CONTROL_ADDRESS, NODES, Node, POD_RANGE};
use crate::{cgroups, files, kubectl, load, paths, seed};

/// containerd answers within a second.
const CONTAINERD_LIMIT: Duration = Duration::from_secs(30);
/// Nodes are ready a few seconds after kubelet starts.
const READY_LIMIT: Duration = Duration::from_secs(90);

/// Starts a node's containerd and waits until it answers.
pub fn start_containerd(built: &Built, node: Node) -> Result<()> {
    let directory = paths::node(node.name);
    fs::create_dir_all(&directory).attempt(|| format!("make {}", directory.display()))?;
    seed::plant(&built.seed, &directory.join("containerd"))?;
    for below in ["containerd-state", "cni", "kubelet", "podlogs", "volumeplugins"] {
        let path = directory.join(below);
        fs::create_dir_all(&path).attempt(|| format!("make {}", path.display()))?;
    }
    cgroups::prepare_node(node.name)?;
    write(node, "containerd.toml", &containerd_config(node))?;
    write(node, "cni/10-lab.conflist", &cni_config(node).to_string())?;
    containerd(node).ensure()?;
    let socket = paths::containerd_socket(node.name);
    wait_until(&format!("see containerd of {} answer", node.name), CONTAINERD_LIMIT, || {
        Ok(match run("ask containerd", load::ctr(&socket).arg("version")) {
            Ok(_) => Look::Ready(()),
            Err(error) => Look::NotYet(error.to_string()),
        })
    })
}

/// Starts a node's kubelet and kube-proxy.
pub fn start_kubelet(built: &Built, node: Node) -> Result<()> {
    write(node, "kubelet.json", &kubelet_config(node).to_string())?;
    kubelet(built, node).ensure()
}

/// Starts the proxies: one per node, and one in the lab's space so that test clients use services even when a
/// zone is cut off.
pub fn start_proxies(built: &Built) -> Result<()> {
    for (space, node) in proxy_places() {
        let config = paths::state().join(format!("proxy-{space}.json"));
        files::put(&config, &proxy_config(node).to_string())?;
        proxy(built, space).ensure()?;
    }
    Ok(())
}

/// All programs of the nodes.
pub fn daemons(built: &Built) -> Vec<Daemon> {
    let nodes = NODES.into_iter().flat_map(|node| [containerd(node), kubelet(built, node)]);
    nodes.chain(proxy_places().into_iter().map(|(space, _)| proxy(built, space))).collect()
}

/// Waits until Kubernetes calls all nodes ready.
pub fn wait_until_ready(built: &Built) -> Result<()> {
    wait_until("see all nodes ready", READY_LIMIT, || {
        let nodes = match kubectl::get(built, &["nodes"]) {
            Ok(nodes) => nodes,
            Err(error) => return Ok(Look::NotYet(error.to_string())),
        };
        let ready = ready_nodes(&nodes);
        if ready.len() == NODES.len() {
            return Ok(Look::Ready(()));
        }
        Ok(Look::NotYet(format!("ready are: {}", ready.join(", "))))
    })
}

/// The names of the nodes that are ready.
pub fn ready_nodes(list: &Value) -> Vec<String> {
    let is_ready = |node: &&Value| {
        let conditions = node["status"]["conditions"].as_array();
        conditions.into_iter().flatten().any(|one| one["type"] == "Ready" && one["status"] == "True")
    };
    let items = list["items"].as_array().into_iter().flatten();
    items.filter(is_ready).filter_map(|node| node["metadata"]["name"].as_str().map(str::to_owned)).collect()
}

fn containerd(node: Node) -> Daemon {
    let config = paths::node(node.name).join("containerd.toml");
    Daemon {
        name: format!("{}-containerd", node.name),
        space: node.name.into(),
        program: PathBuf::from("/usr/bin/containerd"),
        arguments: vec!["--config".into(), config.display().to_string()],
    }
}

fn kubelet(built: &Built, node: Node) -> Daemon {
    let directory = paths::node(node.name);
    let kubeconfig = paths::pki().join(format!("{}.kubeconfig", node.name));
    Daemon {
        name: format!("{}-kubelet", node.name),
        space: node.name.into(),
        program: built.bin("kubelet"),
        arguments: vec![
            format!("--config={}", directory.join("kubelet.json").display()),
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--root-dir={}", directory.join("kubelet").display()),
            format!("--cert-dir={}", directory.join("kubelet/pki").display()),
            format!("--hostname-override={}", node.name),
            format!("--node-ip={}", node.address()),
            format!(
                "--node-labels=topology.kubernetes.io/zone={},topology.kubernetes.io/region=lab",
                node.zone
            ),
        ],
    }
}

/// Each space with a proxy, and the node whose object that proxy reads.
fn proxy_places() -> [(&'static str, &'static str); 4] {
    let [first, second, third] = NODES.map(|node| node.name);
    [(first, first), (second, second), (third, third), (LAB, first)]
}

fn proxy(built: &Built, space: &str) -> Daemon {
    let config = paths::state().join(format!("proxy-{space}.json"));
    Daemon {
        name: format!("{space}-proxy"),
        space: space.into(),
        program: built.bin("kube-proxy"),
        arguments: vec![format!("--config={}", config.display())],
    }
}

fn containerd_config(node: Node) -> String {
    let directory = paths::node(node.name).display().to_string();
    let cri = r#"plugins."io.containerd.grpc.v1.cri""#;
    format!(
        r#"version = 2
root = "{directory}/containerd"
state = "{directory}/containerd-state"
[grpc]
  address = "{directory}/containerd.sock"
[ttrpc]
  address = "{directory}/containerd.sock.ttrpc"
[plugins."io.containerd.internal.v1.opt"]
  path = "{directory}/opt"
[{cri}]
  sandbox_image = "{PAUSE_IMAGE}"
  disable_tcp_service = true
  # Root without CAP_SYS_RESOURCE may not lower a score, and runc fails with it.
  restrict_oom_score_adj = true
  enable_unprivileged_ports = true
  netns_mounts_under_state_dir = true
  [{cri}.cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{directory}/cni"
    max_conf_num = 1
  [{cri}.containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [{cri}.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
"#
    )
}

fn cni_config(node: Node) -> Value {
    let ipam = json!({
        "type": "host-local",
        "ranges": [[{ "subnet": node.pod_range() }]],
        "routes": [{ "dst": "0.0.0.0/0" }],
        "dataDir": paths::node(node.name).join("ipam"),
    });
    let bridge = json!({
        "type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true, "ipam": ipam,
    });
    json!({ "cniVersion": "0.4.0", "name": "lab", "plugins": [bridge] })
}

fn kubelet_config(node: Node) -> Value {
    let directory = paths::node(node.name);
    let pki = |file: String| paths::pki().join(file);
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address(),
        "authentication": {
            "anonymous": { "enabled": false },
            "webhook": { "enabled": true },
            "x509": { "clientCAFile": pki("ca.crt".into()) },
        },
        "authorization": { "mode": "Webhook" },
        "tlsCertFile": pki(format!("{}.crt", node.name)),
        "tlsPrivateKeyFile": pki(format!("{}.key", node.name)),
        "clusterDNS": [CONTROL_ADDRESS],
        "clusterDomain": "cluster.local",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroups::kubelet_root(node.name),
        "containerRuntimeEndpoint": format!("unix://{}", paths::containerd_socket(node.name).display()),
        "failSwapOn": false,
        "makeIPTablesUtilChains": false,
        "evictionHard": { "memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%" },
        // Images come from the lab only, never from a registry: what is collected is lost.
        "imageGCHighThresholdPercent": 100,
        "volumePluginDir": directory.join("volumeplugins"),
        "podLogsDir": directory.join("podlogs"),
        "syncFrequency": "10s",
        "nodeStatusUpdateFrequency": "5s",
        "resolvConf": "/dev/null",
    })
}

fn proxy_config(node: &str) -> Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": { "kubeconfig": paths::pki().join("proxy.kubeconfig") },
        "mode": "nftables",
        "clusterCIDR": POD_RANGE,
        "hostnameOverride": node,
        // Zero leaves the machine's own setting alone.
        "conntrack": { "maxPerCore": 0 },
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
    })
}

fn write(node: Node, name: &str, text: &str) -> Result<()> {
    files::put(&paths::node(node.name).join(name), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_true_ready_condition_makes_a_node_ready() {
        let node = |name: &str, status: &str| {
            json!({ "metadata": { "name": name },
                    "status": { "conditions": [{ "type": "Ready", "status": status }] } })
        };
        let list =
            json!({ "items": [node("a", "True"), node("b", "Unknown"), { "metadata": { "name": "c" } }] });
        assert_eq!(ready_nodes(&list), ["a"]);
    }
}
