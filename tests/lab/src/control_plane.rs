//! etcd, the API server, the controllers, the scheduler and DNS: all in the lab's space.

use std::time::Duration;

use crate::daemon::Daemon;
use crate::error::{Error, Result};
use crate::programs::{last_words_of, run};
use crate::progress::{Look, wait_until};
use crate::setup::Built;
use crate::space::{LAB, inside};
use crate::topology::{API_URL, CONTROL_ADDRESS, POD_RANGE, SERVICE_RANGE};
use crate::{files, kubectl, paths};

/// etcd's address, on the loopback of the lab's space.
const ETCD: &str = "http://127.0.0.1:2379";
/// The API server is ready 3 s after its start on two idle cores.
const API_LIMIT: Duration = Duration::from_secs(90);
/// Every write is recorded with who did it; reads would fill the disk.
const AUDIT_POLICY: &str = r#"{"apiVersion":"audit.k8s.io/v1","kind":"Policy","omitStages":["RequestReceived"],"rules":[
{"level":"None","resources":[{"group":"coordination.k8s.io"},{"group":"","resources":["events"]},{"group":"events.k8s.io"}]},
{"level":"Metadata","verbs":["create","update","patch","delete","deletecollection"]},{"level":"None"}]}"#;

/// Starts etcd and the API server.
pub fn start_api(built: &Built) -> Result<()> {
    files::put(&paths::state().join("audit-policy.json"), AUDIT_POLICY)?;
    etcd(built).ensure()?;
    api_server(built).ensure()
}

/// Waits until the API server is ready.
pub fn wait_for_api(built: &Built) -> Result<()> {
    let server = api_server(built);
    wait_until("see the API server ready", API_LIMIT, || {
        let ready = run("ask the API server", kubectl::command(built)?.args(["get", "--raw=/readyz"]));
        match ready {
            Ok(_) => Ok(Look::Ready(())),
            Err(_) if !server.is_running()? => Err(Error::Program {
                attempt: "keep the API server running".into(),
                detail: last_words_of(&server.log()),
            }),
            Err(error) => Ok(Look::NotYet(error.to_string())),
        }
    })
}

/// Starts what needs a ready API server.
pub fn start_rest(built: &Built) -> Result<()> {
    controller_manager(built).ensure()?;
    scheduler(built).ensure()?;
    files::put(&paths::state().join("Corefile"), &corefile_text())?;
    dns(built).ensure()
}

/// All programs of the control plane.
pub fn daemons(built: &Built) -> Vec<Daemon> {
    vec![etcd(built), api_server(built), controller_manager(built), scheduler(built), dns(built)]
}

/// Waits until the cluster's DNS answers for the API server's service.
pub fn wait_for_dns() -> Result<()> {
    wait_until("see the cluster's DNS answer", API_LIMIT, || {
        let mut command = inside(LAB, "busybox");
        command.args(["nslookup", "-type=a", "kubernetes.default.svc.cluster.local", CONTROL_ADDRESS]);
        match run("ask the cluster's DNS", &mut command) {
            Ok(_) => Ok(Look::Ready(())),
            Err(error) => Ok(Look::NotYet(error.to_string())),
        }
    })
}

fn etcd(built: &Built) -> Daemon {
    let data = paths::state().join("etcd");
    let arguments = [
        format!("--data-dir={}", data.display()),
        format!("--listen-client-urls={ETCD}"),
        format!("--advertise-client-urls={ETCD}"),
        "--listen-peer-urls=http://127.0.0.1:2380".into(),
        // The lab's data need not outlive a power cut; its disk is the brokers'.
        "--unsafe-no-fsync".into(),
    ];
    daemon(built, "etcd", arguments.to_vec())
}

fn api_server(built: &Built) -> Daemon {
    let pki = |file: &str| paths::pki().join(file).display().to_string();
    let arguments = [
        format!("--etcd-servers={ETCD}"),
        format!("--bind-address={CONTROL_ADDRESS}"),
        format!("--advertise-address={CONTROL_ADDRESS}"),
        "--secure-port=6443".into(),
        format!("--service-cluster-ip-range={SERVICE_RANGE}"),
        format!("--client-ca-file={}", pki("ca.crt")),
        format!("--tls-cert-file={}", pki("apiserver.crt")),
        format!("--tls-private-key-file={}", pki("apiserver.key")),
        format!("--service-account-key-file={}", pki("service-accounts.pub")),
        format!("--service-account-signing-key-file={}", pki("service-accounts.key")),
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local".into(),
        "--authorization-mode=Node,RBAC".into(),
        format!("--kubelet-client-certificate={}", pki("apiserver-kubelet.crt")),
        format!("--kubelet-client-key={}", pki("apiserver-kubelet.key")),
        // Else logs and exec look up the node's name in DNS.
        "--kubelet-preferred-address-types=InternalIP".into(),
        "--enable-admission-plugins=NodeRestriction,ValidatingAdmissionPolicy".into(),
        format!("--audit-policy-file={}", paths::state().join("audit-policy.json").display()),
        format!("--audit-log-path={}", paths::logs().join("audit.log").display()),
        "--allow-privileged=true".into(),
        "--profiling=false".into(),
    ];
    daemon(built, "kube-apiserver", arguments.to_vec())
}

fn controller_manager(built: &Built) -> Daemon {
    let pki = |file: &str| paths::pki().join(file).display().to_string();
    let arguments = [
        format!("--kubeconfig={}", pki("controller-manager.kubeconfig")),
        format!("--root-ca-file={}", pki("ca.crt")),
        format!("--service-account-private-key-file={}", pki("service-accounts.key")),
        "--use-service-account-credentials=true".into(),
        format!("--cluster-cidr={POD_RANGE}"),
        "--allocate-node-cidrs=false".into(),
        "--leader-elect=false".into(),
        "--bind-address=127.0.0.1".into(),
        // Else it makes a directory in /usr/libexec.
        format!("--flex-volume-plugin-dir={}", paths::state().join("volumeplugins").display()),
    ];
    daemon(built, "kube-controller-manager", arguments.to_vec())
}

fn scheduler(built: &Built) -> Daemon {
    let kubeconfig = paths::pki().join("scheduler.kubeconfig");
    let arguments = [
        format!("--kubeconfig={}", kubeconfig.display()),
        "--leader-elect=false".into(),
        "--bind-address=127.0.0.1".into(),
    ];
    daemon(built, "kube-scheduler", arguments.to_vec())
}

fn dns(built: &Built) -> Daemon {
    let corefile = paths::state().join("Corefile");
    daemon(built, "coredns", vec!["-conf".into(), corefile.display().to_string()])
}

fn daemon(built: &Built, name: &str, arguments: Vec<String>) -> Daemon {
    Daemon { name: name.into(), space: LAB.into(), program: built.bin(name), arguments }
}

/// Names are remembered for 5 s, their absence for 1: a broker's name is asked for before it exists.
fn corefile_text() -> String {
    let kubeconfig = paths::pki().join("coredns.kubeconfig");
    format!(
        ".:53 {{\n  bind {CONTROL_ADDRESS}\n  errors\n  ready 127.0.0.1:8181\n  kubernetes cluster.local in-addr.arpa {{\n    \
         endpoint {API_URL}\n    kubeconfig {} lab\n    ttl 5\n  }}\n  cache 5 {{\n    denial 1024 1\n  }}\n}}\n",
        kubeconfig.display()
    )
}
