//! The cluster that a run uses: the lab, or the one that KUBECONFIG names.

use crate::error::{Error, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;

/// The namespace of all runs.
pub const NAMESPACE: &str = "messaging";
/// The namespace of the operator.
pub const OPERATOR_NAMESPACE: &str = "rabbitmq-migration";

/// A cluster, and how to reach it.
#[derive(Clone)]
pub struct Cluster {
    /// The client.
    pub client: Client,
    /// Plain HTTP to pods.
    pub http: reqwest::Client,
    kubectl: PathBuf,
    kubeconfig: PathBuf,
    lab: Option<PathBuf>,
}

impl Cluster {
    /// Connects. The calling process must be in the lab's network already where the lab is used.
    /// `lab` is the lab's program, where this is the lab: only there can faults be made.
    pub async fn connect(kubeconfig: PathBuf, kubectl: PathBuf, lab: Option<PathBuf>) -> Result<Self> {
        let read = kube::config::Kubeconfig::read_from(&kubeconfig)
            .map_err(|error| Error::Malformed(format!("{}: {error}", kubeconfig.display())))?;
        let config = kube::Config::from_custom_kubeconfig(read, &kube::config::KubeConfigOptions::default())
            .await
            .map_err(|error| Error::Malformed(format!("{}: {error}", kubeconfig.display())))?;
        let client = Client::try_from(config).map_err(|source| Error::Kubernetes {
            attempt: "connect".to_owned(),
            source: Box::new(source),
        })?;
        let http = reqwest::Client::builder()
            .timeout(Duration::from_mins(1))
            .no_proxy()
            .build()
            .map_err(|source| Error::Http { attempt: "make an HTTP client".to_owned(), source })?;
        Ok(Self { client, http, kubectl, kubeconfig, lab })
    }

    /// Runs kubectl and gives its standard output.
    pub async fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        self.kubectl_with(arguments, "").await
    }

    /// Makes the namespace in which everything happens.
    pub async fn make_namespace(&self) -> Result<()> {
        let namespace =
            serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        self.apply(&namespace.to_string()).await
    }

    /// Applies a manifest.
    pub async fn apply(&self, manifest: &str) -> Result<()> {
        self.kubectl_with(&["apply", "--server-side", "--force-conflicts", "-f", "-"], manifest)
            .await
            .map(|_| ())
    }

    /// Runs kubectl with `input`.
    pub async fn kubectl_with(&self, arguments: &[&str], input: &str) -> Result<String> {
        let attempt = format!("kubectl {}", arguments.join(" "));
        let file = |source| Error::File { path: attempt.clone(), source };
        let mut child = tokio::process::Command::new(&self.kubectl)
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(file)?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes()).await.map_err(file)?;
        }
        let output = child.wait_with_output().await.map_err(file)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ok(text);
        }
        let output = format!("{text}{}", String::from_utf8_lossy(&output.stderr));
        Err(Error::Program { attempt, output: output.trim().to_owned() })
    }

    /// Runs a shell line in which `kubectl` is this cluster's, as a person would type it.
    pub async fn shell(&self, line: &str) -> Result<String> {
        let directory = self.kubectl.parent().map(|p| p.display().to_string()).unwrap_or_default();
        let path = format!("{directory}:{}", std::env::var("PATH").unwrap_or_default());
        let output = tokio::process::Command::new("sh")
            .args(["-c", line])
            .env("PATH", path)
            .env("KUBECONFIG", &self.kubeconfig)
            .output()
            .await
            .map_err(|source| Error::File { path: line.to_owned(), source })?;
        let text =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if output.status.success() {
            Ok(text)
        } else {
            Err(Error::Program { attempt: line.to_owned(), output: text })
        }
    }

    /// The pods with these labels, by name.
    pub async fn pods(&self, namespace: &str, labels: &str) -> Result<Vec<Pod>> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let listed = pods.list(&ListParams::default().labels(labels)).await.map_err(|source| {
            Error::Kubernetes { attempt: format!("list pods {labels}"), source: Box::new(source) }
        })?;
        let mut pods = listed.items;
        pods.sort_by_key(|pod| pod.metadata.name.clone());
        Ok(pods)
    }

    /// Whether this is the lab.
    pub const fn is_lab(&self) -> bool {
        self.lab.is_some()
    }

    /// Runs the lab's program: faults are made from outside the cluster.
    pub async fn lab(&self, arguments: &[&str]) -> Result<()> {
        let Some(lab) = &self.lab else {
            return Err(Error::Expected("a lab: faults cannot be made on another cluster".to_owned()));
        };
        let attempt = format!("lab {}", arguments.join(" "));
        let output = tokio::process::Command::new(lab)
            .args(arguments)
            .output()
            .await
            .map_err(|source| Error::File { path: attempt.clone(), source })?;
        if output.status.success() {
            return Ok(());
        }
        Err(Error::Program { attempt, output: String::from_utf8_lossy(&output.stderr).trim().to_owned() })
    }

    /// Waits until `look` says yes. What it says otherwise is shown when time is up.
    pub async fn wait<F, Fut>(&self, what: &str, seconds: u64, mut look: F) -> Result<()>
    where
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<std::result::Result<(), String>>>,
    {
        let end = Instant::now() + Duration::from_secs(seconds);
        loop {
            let last = match look().await? {
                Ok(()) => return Ok(()),
                Err(last) => last,
            };
            if Instant::now() >= end {
                return Err(Error::TimedOut { what: what.to_owned(), seconds, last });
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    }
}

/// True where all containers of a pod are ready.
pub fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|s| s.conditions.as_ref());
    conditions.into_iter().flatten().any(|c| c.type_ == "Ready" && c.status == "True")
}

/// A pod's address.
pub fn ip(pod: &Pod) -> Option<String> {
    pod.status.as_ref()?.pod_ip.clone()
}
