//! What changes in Kubernetes wakes the migrations that read it, at once and without flooding; what may not be
//! watched is polled.

use crate::scene::{NAMESPACE, logs, put_migration, server, settings, spec};
use crate::server::Server;
use crate::server::call::Call;
use operator::metrics::Metrics;
use operator::settings::{Settings, Timing};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const NOBODY: [&str; 3] = ["127.99.4.1", "127.99.4.2", "127.99.4.3"];
/// Far below the five minutes in which a completed migration looks around by itself.
const SOON: Duration = Duration::from_mins(1);

/// An operator that runs as it does in production.
struct Running {
    stop: CancellationToken,
    task: JoinHandle<Result<(), operator::Failure>>,
}

impl Running {
    fn start(server: &Arc<Server>, timing: Timing) -> Self {
        Self::start_with(server, timing, settings("a"))
    }

    fn start_with(server: &Arc<Server>, timing: Timing, settings: Settings) -> Self {
        let (client, _) = server.client("a");
        let stop = CancellationToken::new();
        let led = operator::lead(client, settings, timing, Arc::new(Metrics::new()), stop.clone());
        Self { stop, task: tokio::spawn(led) }
    }

    async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }
}

fn count(server: &Server, verb: &str, resource: &str) -> usize {
    server.calls().iter().filter(|call| call.is_on(verb, resource) && call.code == 200).count()
}

async fn until(server: &Server, what: &str, is_so: impl Fn(&Server) -> bool) {
    let waited = tokio::time::timeout(SOON, server.until(is_so)).await;
    assert!(waited.is_ok(), "in {SOON:?} there was no {what}");
}

/// Until the migration rests and everything is watched.
async fn until_at_rest(server: &Server) {
    until(server, "pass", |server| {
        count(server, "get", "services") >= 1 && count(server, "update", "rabbitmqmigrations/status") >= 1
    })
    .await;
    for resource in ["services", "endpointslices", "statefulsets", "pods", "persistentvolumeclaims"] {
        until(server, "watch", |server| count(server, "watch", resource) >= 1).await;
    }
    for resource in ["nodes", "persistentvolumes", "storageclasses"] {
        until(server, "watch", |server| count(server, "watch", resource) >= 1).await;
    }
}

fn touch(server: &Server, resource: &str, name: &str, value: usize) {
    server.change(resource, NAMESPACE, name, |object| {
        object["metadata"]["annotations"] = json!({ "touched": value.to_string() });
    });
}

#[tokio::test]
async fn a_change_wakes_who_reads_it_and_nobody_else() {
    let server = server(NOBODY);
    put_migration(&server, &spec(), Some("Completed"));
    let running = Running::start(&server, Timing::default());
    until_at_rest(&server).await;
    let (read, passes) = (count(&server, "get", "services"), count(&server, "get", "rabbitmqmigrations"));
    // A completed migration reads no pods.
    touch(&server, "pods", "rabbitmq-0", 1);
    touch(&server, "services", "rabbitmq", 1);
    until(&server, "wake", |server| count(server, "get", "services") > read).await;
    assert_eq!(
        count(&server, "get", "rabbitmqmigrations"),
        passes + 1,
        "the Service woke it, the pod did not"
    );
    running.end().await;

    let watches: Vec<Call> = server
        .calls()
        .into_iter()
        .filter(|c| c.verb == "watch" && c.resource != "rabbitmqmigrations")
        .collect();
    assert!(watches.iter().all(|call| call.bare), "watches carry metadata alone");
    assert!(!server.calls().iter().any(|call| call.resource == "secrets" && call.verb != "get"));
}

#[tokio::test]
async fn a_storm_costs_a_bounded_number_of_passes() {
    let server = server(NOBODY);
    put_migration(&server, &spec(), Some("Completed"));
    let timing = Timing { gap: Duration::from_millis(500), ..Timing::default() };
    let running = Running::start(&server, timing);
    until_at_rest(&server).await;
    let passes = |server: &Server| count(server, "get", "rabbitmqmigrations");
    let before = passes(&server);
    let begun = Instant::now();
    touch(&server, "services", "rabbitmq", 0);
    until(&server, "wake at once", |server| passes(server) > before).await;
    for value in 1..400 {
        touch(&server, "services", "rabbitmq", value);
        tokio::task::yield_now().await;
    }
    // The last change has a wake after it.
    let at_last = passes(&server);
    until(&server, "wake for the last change", |server| passes(server) > at_last).await;
    let (cost, took) = (passes(&server) - before, begun.elapsed());
    let allowed = 2 + usize::try_from(took.as_millis() / timing.gap.as_millis()).unwrap();
    assert!(cost <= allowed, "{cost} passes for 400 changes in {took:?}, {allowed} are allowed");
    running.end().await;
}

#[tokio::test]
async fn what_may_not_be_watched_is_polled_until_it_may() {
    let server = server(NOBODY);
    server.deny(&["watch services", "list nodes"]);
    put_migration(&server, &spec(), Some("Completed"));
    let timing = Timing { review: Duration::from_millis(50), ..Timing::default() };
    let running = Running::start(&server, timing);
    let asked = |server: &Server, resource: &str| {
        let about = |call: &&Call| {
            let asked = &call.body["spec"]["resourceAttributes"];
            asked["resource"] == resource && asked["verb"] == "list"
        };
        server.calls().iter().filter(about).count()
    };
    until(&server, "review", |server| asked(server, "services") >= 3 && asked(server, "nodes") >= 3).await;
    let tried = |call: &Call| call.bare && ["services", "nodes"].contains(&call.resource.as_str());
    assert!(!server.calls().iter().any(tried), "nothing is tried that is refused");
    until(&server, "pass", |server| count(server, "get", "services") >= 1).await;
    let told =
        logs().lines().filter(|line| line.contains("no access to watch") && line.contains("nodes")).count();
    assert_eq!(told, 1, "it is told once");

    server.deny(&[]);
    until(&server, "watch", |server| count(server, "watch", "services") >= 1).await;
    let read = count(&server, "get", "services");
    touch(&server, "services", "rabbitmq", 1);
    until(&server, "wake", |server| count(server, "get", "services") > read).await;
    running.end().await;
}

/// As the overlay one-namespace installs it: the same rules, bound in one namespace.
#[tokio::test]
async fn in_one_namespace_nothing_is_asked_of_others() {
    let server = server(NOBODY);
    server.bind_in(NAMESPACE);
    put_migration(&server, &spec(), Some("Completed"));
    let one = Settings { namespaces: vec![NAMESPACE.to_owned()], ..settings("a") };
    let running = Running::start_with(&server, Timing::default(), one);
    until_at_rest(&server).await;
    let read = count(&server, "get", "services");
    touch(&server, "services", "rabbitmq", 1);
    until(&server, "wake", |server| count(server, "get", "services") > read).await;
    running.end().await;
    let refused: Vec<String> = server.calls().iter().filter(|c| c.code == 403).map(Call::what).collect();
    assert!(refused.is_empty(), "refused: {refused:?}");
}
