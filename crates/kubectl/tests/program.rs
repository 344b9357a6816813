//! The whole program against a server that answers like the API server: flags, requests and exit codes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

/// What was asked: path, content type and body.
type Patches = Arc<Mutex<Vec<(String, String, Value)>>>;

struct Server {
    port: u16,
    patches: Patches,
    kubeconfig: PathBuf,
    _runtime: tokio::runtime::Runtime,
}

fn stored(namespace: &str) -> Value {
    let text = include_str!("statuses/awaiting-approval.json");
    let mut file: Value = serde_json::from_str(text).unwrap();
    let mut object = file["migration"].take();
    object["metadata"]["namespace"] = json!(namespace);
    object["metadata"]["resourceVersion"] = json!("7");
    object
}

fn refusal(code: StatusCode, reason: &str, message: &str) -> Response {
    let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code.as_u16(),
        "reason": reason, "message": message});
    (code, Json(body)).into_response()
}

async fn one(Path((namespace, name)): Path<(String, String)>) -> Response {
    match (namespace.as_str(), name.as_str()) {
        ("locked", _) => refusal(StatusCode::FORBIDDEN, "Forbidden", "user has no access"),
        (_, "orders") => Json(stored(&namespace)).into_response(),
        _ => refusal(StatusCode::NOT_FOUND, "NotFound", "rabbitmqmigrations not found"),
    }
}

async fn patch(
    State(patches): State<Patches>,
    Path((namespace, name)): Path<(String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let kind = headers.get("content-type").unwrap().to_str().unwrap().to_owned();
    let body = serde_json::from_slice(&body).unwrap();
    patches.lock().unwrap().push((format!("{namespace}/{name}"), kind, body));
    Json(stored(&namespace)).into_response()
}

/// A list, or a watch in which the object is changed and then deleted.
async fn all(Path(namespace): Path<String>, Query(query): Query<HashMap<String, String>>) -> Response {
    assert_eq!(query.get("fieldSelector").map(String::as_str), Some("metadata.name=orders"));
    let object = stored(&namespace);
    if query.get("watch").is_none_or(|watch| watch != "true") {
        let list = json!({"apiVersion": "rabbitmq-migration.io/v1alpha1", "kind": "RabbitMQMigrationList",
            "metadata": {"resourceVersion": "7"}, "items": [object]});
        return Json(list).into_response();
    }
    let events = ["MODIFIED", "DELETED"].map(|kind| json!({"type": kind, "object": object}).to_string());
    (StatusCode::OK, events.join("\n") + "\n").into_response()
}

impl Server {
    fn start(test: &str) -> Self {
        let patches = Patches::default();
        let root = "/apis/rabbitmq-migration.io/v1alpha1/namespaces/{namespace}/rabbitmqmigrations";
        let routes = Router::new()
            .route(root, get(all))
            .route(&format!("{root}/{{name}}"), get(one).patch(patch))
            .with_state(patches.clone());
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        runtime.spawn(async { axum::serve(listener, routes).await });
        let kubeconfig = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}.kubeconfig"));
        std::fs::write(&kubeconfig, config(port)).unwrap();
        Self { port, patches, kubeconfig, _runtime: runtime }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_kubectl-rabbitmq_migration"))
            .args(arguments)
            .env_clear()
            .env("KUBECONFIG", &self.kubeconfig)
            .output()
            .unwrap()
    }
}

/// Two contexts: one that leads here, one that leads nowhere and is the current one.
fn config(port: u16) -> String {
    let cluster = |name: &str, port: u16| json!({"name": name, "cluster": {"server": format!("http://127.0.0.1:{port}")}});
    let context = |name: &str, namespace: &str| json!({"name": name, "context": {"cluster": name, "user": "me", "namespace": namespace}});
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "nowhere",
        "clusters": [cluster("here", port), cluster("nowhere", 1)],
        "contexts": [context("here", "messaging"), context("nowhere", "default")],
        "users": [{"name": "me", "user": {}}],
    })
    .to_string()
}

fn told(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn status_is_drawn_without_colors_where_there_is_no_terminal() {
    let server = Server::start("status");
    let (code, out, err) = told(&server.run(&["status", "orders", "--context", "here"]));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.starts_with("orders in messaging: AwaitingApproval for "), "{out}");
    assert!(!out.contains('\x1b'), "{out}");
}

#[test]
fn status_is_printed_as_it_is_stored() {
    let server = Server::start("output");
    let (_, json, _) = told(&server.run(&["--context", "here", "status", "orders", "-o", "json"]));
    let parsed: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(parsed["plan"]["digest"], stored("messaging")["status"]["plan"]["digest"]);
    let (_, yaml, _) = told(&server.run(&["--context", "here", "status", "orders", "-o", "yaml"]));
    assert!(yaml.contains("phase: AwaitingApproval"), "{yaml}");
}

#[test]
fn flags_say_which_file_context_and_namespace() {
    let server = Server::start("flags");
    let file = server.kubeconfig.to_str().unwrap();
    let arguments = ["approve", "orders", "--kubeconfig", file, "--context", "here", "-n", "elsewhere"];
    let (code, out, err) = told(&server.run(&arguments));
    assert_eq!(code, Some(0), "{err}");
    let digest = stored("elsewhere")["status"]["plan"]["digest"].clone();
    let patches = server.patches.lock().unwrap();
    let wanted = json!({"metadata": {"annotations": {"rabbitmq-migration.io/approve": digest}}});
    assert_eq!(
        *patches,
        [("elsewhere/orders".to_owned(), "application/merge-patch+json".to_owned(), wanted)]
    );
    assert!(out.starts_with("approved plan "), "{out}");
}

#[test]
fn what_goes_wrong_is_one_line_and_exit_code_one() {
    let server = Server::start("wrong");
    let line = |arguments: &[&str]| {
        let (code, out, err) = told(&server.run(arguments));
        assert_eq!((code, out.as_str(), err.lines().count()), (Some(1), "", 1), "{arguments:?}: {err}");
        err
    };
    let err = line(&["status", "ordres", "--context", "here"]);
    assert_eq!(err, "error: there is no rabbitmqmigration ordres in namespace messaging\n");
    let err = line(&["status", "orders", "--context", "here", "-n", "locked"]);
    assert_eq!(err, "error: read rabbitmqmigration orders in namespace locked: user has no access\n");
    let err = line(&["status", "orders"]);
    assert!(err.starts_with("error: read rabbitmqmigration orders in namespace default: "), "{err}");
    let err = line(&["status", "orders", "--context", "absent"]);
    assert!(err.starts_with("error: read the kubeconfig: ") && err.contains("absent"), "{err}");
    let err = line(&["retry", "orders", "--context", "here"]);
    assert_eq!(err, "error: orders is in AwaitingApproval: a retry starts from RolledBack or Failed\n");
    assert!(server.patches.lock().unwrap().is_empty(), "something was written");
}

#[test]
fn a_watch_shows_each_change_and_ends_with_the_object() {
    let server = Server::start("watch");
    let (code, out, err) = told(&server.run(&["status", "orders", "-w", "--context", "here"]));
    assert_eq!(code, Some(1), "{err}");
    assert!(out.matches("orders in messaging: AwaitingApproval").count() >= 2, "{out}");
    assert_eq!(err, "error: rabbitmqmigration orders in namespace messaging was deleted\n");
}

#[test]
fn version_and_help_need_no_cluster() {
    let server = Server::start("version");
    let (code, out, _) = told(&server.run(&["version"]));
    assert_eq!(code, Some(0));
    assert!(out.contains("rabbitmq-migration.io/v1alpha1"), "{out}");
    assert_eq!(told(&server.run(&["--help"])).0, Some(0));
    assert_eq!(told(&server.run(&["abort"])).0, Some(1), "a name is missing");
    assert!(server.port > 0);
}
