//! A namespace with blue, as a chart leaves it, and a migration; and passes over it, one at a time.

use crate::server::gate::Gate;
use crate::server::{HOME, Server, encoded};
use api::RabbitMQMigration;
use clap::Parser;
use operator::body::Body;
use operator::controller::Shared;
use operator::lease::{Epoch, acquire};
use operator::metrics::Metrics;
use operator::reconcile::{PassError, reconcile};
use operator::settings::{Settings, Timing};
use serde_json::{Value, json};
use std::io::Write;
use std::sync::{Arc, Mutex, Once};
use tokio_util::sync::CancellationToken;

/// Where the migration is.
pub const NAMESPACE: &str = "messaging";
/// Its name.
pub const NAME: &str = "orders";
/// Its resource.
pub const MIGRATIONS: &str = "rabbitmqmigrations";
/// Blue's administrator's password.
pub const BLUE_PASSWORD: &str = "planted-blue-pa55word";

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    settings: Settings,
}

/// Settings of a replica.
pub fn settings(pod: &str) -> Settings {
    let words = ["operator", "--pod-name", pod, "--operator-namespace", HOME];
    Line::parse_from(words).settings
}

/// A server with the namespace in which blue's three pods have these addresses.
pub fn server(addresses: [&str; 3]) -> Arc<Server> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        rustls::crypto::aws_lc_rs::default_provider().install_default().unwrap();
        let filter = tracing_subscriber::EnvFilter::new("debug,lapin=off");
        let logs = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false);
        logs.with_writer(|| Captured).init();
    });
    let server = Server::new();
    server.put(
        "namespaces",
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } }),
    );
    server.put("secrets", secret("rabbitmq", &[("rabbitmq-password", BLUE_PASSWORD)]));
    let set = server.put("statefulsets", stateful_set());
    for (ordinal, address) in addresses.into_iter().enumerate() {
        server.put("pods", pod(&set, ordinal, address));
    }
    server.put("services", service());
    server.put("endpointslices", endpoint_slice());
    server.put("nodes", node());
    server.put("storageclasses", storage_class());
    server
}

/// Puts the migration there, in `phase`.
pub fn put_migration(server: &Server, spec: &Value, phase: Option<&str>) {
    let mut object = json!({
        "apiVersion": "rabbitmq-migration.io/v1alpha1", "kind": "RabbitMQMigration",
        "metadata": { "name": NAME, "namespace": NAMESPACE },
        "spec": spec,
    });
    if let Some(phase) = phase {
        object["status"] = json!({ "phase": phase });
    }
    server.put(MIGRATIONS, object);
}

/// A spec that makes green from a template.
pub fn spec() -> Value {
    json!({
        "blue": { "statefulSetName": "rabbitmq", "serviceName": "rabbitmq-headless",
            "credentialsSecret": { "name": "rabbitmq", "passwordKey": "rabbitmq-password", "username": "user" } },
        "green": { "template": { "image": "rabbitmq:4.0-management",
            "storage": { "className": "zonal", "size": "10Gi" } } },
        "services": [{ "name": "rabbitmq" }],
    })
}

/// A replica that leads, whose passes the test makes.
pub struct Leader {
    /// What its passes share.
    pub shared: Arc<Shared>,
    /// Its leadership.
    pub epoch: Epoch,
    /// Its way to the server.
    pub gate: Arc<Gate>,
}

impl Leader {
    /// Takes the lease as `pod`.
    pub async fn new(server: &Arc<Server>, pod: &str, timing: Timing) -> Self {
        let (client, gate) = server.client(pod);
        let epoch = acquire(client.clone(), &settings(pod), timing).await;
        let body = Body::new(client, settings(pod), epoch.clone());
        let (cache, _) = kube::runtime::reflector::store();
        let shared = Shared::new(body, Arc::new(Metrics::new()), cache, CancellationToken::new());
        Self { shared: Arc::new(shared), epoch, gate }
    }

    /// One pass. The queue would hand over what it has cached.
    pub async fn pass(&self, server: &Server) -> Result<(), PassError> {
        let cached = migration(server);
        reconcile(Arc::new(cached), self.shared.clone()).await.map(|_| ())
    }

    /// One pass during which a person changes the spec, just before the status is written. What was asked of
    /// the server until then is forgotten.
    pub async fn pass_interrupted(&self, server: &Server) -> Result<(), PassError> {
        self.gate.hold(|call| call.is_on("update", "rabbitmqmigrations/status"));
        let meddle = async {
            self.gate.holds("update rabbitmqmigrations/status").await;
            server.change(MIGRATIONS, NAMESPACE, NAME, |migration| migration["spec"]["paused"] = true.into());
            server.forget_calls();
            self.gate.open();
        };
        futures::future::join(self.pass(server), meddle).await.0
    }

    /// Passes until the migration is claimed, so that the next one works on it.
    pub async fn claim(&self, server: &Server) {
        self.pass(server).await.unwrap();
        let annotation = migration(server).metadata.annotations.unwrap_or_default();
        assert_eq!(annotation.get("rabbitmq-migration.io/epoch"), Some(&self.epoch.tag()));
    }
}

/// The migration as it is stored.
pub fn migration(server: &Server) -> RabbitMQMigration {
    serde_json::from_value(server.get(MIGRATIONS, NAMESPACE, NAME).unwrap()).unwrap()
}

/// All log lines of this process, at a level that is more talkative than the operator's own.
pub fn logs() -> String {
    String::from_utf8(LOGS.lock().unwrap().clone()).unwrap()
}

static LOGS: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Captured;

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOGS.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A Secret with these texts.
pub fn secret(name: &str, texts: &[(&str, &str)]) -> Value {
    let data = texts.iter().map(|(key, text)| ((*key).to_owned(), json!(encoded(text)))).collect();
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "namespace": NAMESPACE },
        "data": Value::Object(data) })
}

fn stateful_set() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": { "name": "rabbitmq", "namespace": NAMESPACE },
        "spec": {
            "replicas": 3, "serviceName": "rabbitmq-headless",
            "selector": { "matchLabels": { "app.kubernetes.io/name": "rabbitmq" } },
            "template": {
                "metadata": { "labels": { "app.kubernetes.io/name": "rabbitmq" } },
                "spec": {
                    "containers": [{ "name": "rabbitmq", "image": "rabbitmq:3.12",
                        "env": [{ "name": "RABBITMQ_DEFAULT_PASS", "value": BLUE_PASSWORD }],
                        "ports": [{ "name": "amqp", "containerPort": 5672 }],
                        "livenessProbe": { "exec": { "command":
                            ["curl", format!("http://user:{BLUE_PASSWORD}@localhost:15672/api")] } },
                        "volumeMounts": [{ "name": "data", "mountPath": "/var/lib/rabbitmq" }] }],
                    "volumes": [{ "name": "data", "emptyDir": {} }],
                },
            },
        },
        "status": { "replicas": 3, "readyReplicas": 3 },
    })
}

fn pod(set: &Value, ordinal: usize, address: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": format!("rabbitmq-{ordinal}"), "namespace": NAMESPACE,
            "labels": { "app.kubernetes.io/name": "rabbitmq" },
            "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "rabbitmq",
                "uid": set["metadata"]["uid"], "controller": true }] },
        "spec": { "nodeName": "node-a", "containers": [] },
        "status": { "podIP": address, "conditions": [{ "type": "Ready", "status": "True" }] },
    })
}

fn service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": "rabbitmq", "namespace": NAMESPACE },
        "spec": { "selector": { "app.kubernetes.io/name": "rabbitmq" },
            "ports": [{ "name": "amqp", "port": 5672, "targetPort": "amqp" }] },
    })
}

fn endpoint_slice() -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": { "name": "rabbitmq-1", "namespace": NAMESPACE,
            "labels": { "kubernetes.io/service-name": "rabbitmq" } },
        "endpoints": [], "ports": [],
    })
}

fn node() -> Value {
    json!({ "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": "node-a", "labels": { "topology.kubernetes.io/zone": "a" } },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] } })
}

fn storage_class() -> Value {
    json!({ "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": { "name": "zonal" },
        "provisioner": "p", "volumeBindingMode": "WaitForFirstConsumer" })
}
