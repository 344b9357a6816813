//! Migrations to and fro between two standing clusters under load: how long clients wait, and that nothing is
//! lost however often it is done.

use crate::cluster::{Cluster, NAMESPACE};
use crate::demo;
use crate::error::{Error, Result, expect};
use crate::ledger::check;
use crate::migration::{self, Migration};
use crate::scenarios::quick_gate;
use crate::shop::{self, manifests};
use crate::show::Show;
use api::Phase;
use serde::Serialize;
use serde_json::{Value, json};
use std::path::Path;

/// A cluster, with @NAME@ and @VERSION@ to be replaced.
const CLUSTER: &str = include_str!("../manifests/ephemeral.yaml");
/// Its disks become claims: both stand for as long as the bench takes.
const EMPTY_DIR: &str = "        - {name: data, emptyDir: {}}\n";
const CLAIMS: &str = "  volumeClaimTemplates:
    - metadata: {name: data}
      spec:
        accessModes: [ReadWriteOnce]
        storageClassName: zonal
        resources: {requests: {storage: 1Gi}}
";
/// The two clusters.
const NAMES: [&str; 2] = ["alpha", "beta"];
const VERSION: &str = "4.0.5";
const MEMBERS: usize = 3;
/// How long one migration may take.
const SECONDS: u64 = 420;
/// At least so many messages, or the bench proves nothing.
const MESSAGES: u64 = 60_000;

/// The figures of one migration.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    number: usize,
    from: &'static str,
    to: &'static str,
    publish_gap_millis: u64,
    delivery_gap_millis: u64,
    patch_to_last_close_millis: Option<i64>,
    closed: i64,
    carried: i64,
    phases: Vec<(String, Option<i64>)>,
}

/// The figures of a whole bench.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Figures {
    commit: String,
    runs: Vec<Run>,
    published: u64,
    lost: u64,
    reordered: u64,
    duplicated_explained: u64,
    duplicated_unexplained: u64,
    unexpected: u64,
    void: Vec<String>,
    /// The ledgers from which all counts can be made again.
    raw: String,
}

/// Runs `count` migrations and writes `target/bench/switch.json`, with the raw ledgers beside it.
pub async fn run(cluster: &Cluster, root: &Path, count: usize) -> Result<()> {
    let mut show = Show::default();
    show.say("installing the operator, two clusters of RabbitMQ 4.0.5 on claims, and the shop");
    install(cluster, root).await?;
    shop::open(cluster).await?;
    let mut runs = Vec::new();
    for number in 1..=count {
        let run = migrate(cluster, number, &mut show).await?;
        show.say(&format!(
            "run {number} of {count}: {} to {}, publish gap {} ms, first write to last close {} ms",
            run.from,
            run.to,
            run.publish_gap_millis,
            run.patch_to_last_close_millis.map_or_else(|| "?".to_owned(), |millis| millis.to_string()),
        ));
        runs.push(run);
    }
    show.say("closing the shop and checking every message");
    let sides = NAMES.map(|name| (format!("{name}-0"), shop::administrator()));
    let evidence = shop::close(cluster, &sides).await?;
    let raw = demo::write(root, "bench/switch-ledgers.json", &evidence)?;
    let report = check(&evidence.documents, &evidence.remaining.into_iter().collect());
    let figures = Figures {
        commit: commit(root).await,
        runs,
        published: report.published,
        lost: report.lost,
        reordered: report.reordered,
        duplicated_explained: report.duplicated_explained,
        duplicated_unexplained: report.duplicated_unexplained,
        unexpected: report.unexpected,
        void: report.void.iter().cloned().collect(),
        raw,
    };
    figures.print();
    println!("\nThe same as JSON: {}", demo::write(root, "bench/switch.json", &figures)?);
    expect(report.is_clean(), format!("a clean ledger: {:?} {:?}", report.examples, report.void))?;
    expect(report.reordered == 0, format!("no first arrival out of order: {:?}", report.examples))?;
    expect(report.published >= MESSAGES, format!("{MESSAGES} messages, got {}", report.published))
}

impl Figures {
    fn print(&self) {
        println!("\n  {:<34} {:>9} {:>9} {:>9}", "", "least", "median", "most");
        let gaps = self.runs.iter().map(|run| run.publish_gap_millis).collect();
        row("publish gap (ms), aim 1000", gaps);
        let gaps = self.runs.iter().map(|run| run.delivery_gap_millis).collect();
        row("delivery gap (ms)", gaps);
        let sprint = |run: &Run| run.patch_to_last_close_millis.and_then(|millis| u64::try_from(millis).ok());
        row("first write to last close (ms), aim 3000", self.runs.iter().filter_map(sprint).collect());
        println!();
        for (name, value) in [
            ("migrations", u64::try_from(self.runs.len()).unwrap_or(u64::MAX)),
            ("published and confirmed", self.published),
            ("lost", self.lost),
            ("reordered", self.reordered),
            ("duplicated, explained by a close", self.duplicated_explained),
            ("duplicated, unexplained", self.duplicated_unexplained),
        ] {
            println!("  {name:<40} {value:>9}");
        }
    }
}

fn row(name: &str, mut values: Vec<u64>) {
    values.sort_unstable();
    let shown = |value: Option<&u64>| value.map_or_else(|| "?".to_owned(), u64::to_string);
    let (least, median, most) = (values.first(), values.get(values.len() / 2), values.last());
    println!("  {name:<40} {:>9} {:>9} {:>9}", shown(least), shown(median), shown(most));
}

async fn install(cluster: &Cluster, root: &Path) -> Result<()> {
    demo::begin(cluster, root).await?;
    cluster.make_namespace().await?;
    for name in NAMES {
        let manifest = CLUSTER.replace("@NAME@", name).replace("@VERSION@", VERSION).replace(EMPTY_DIR, "");
        cluster.apply(&format!("{manifest}{CLAIMS}")).await?;
    }
    cluster.apply(&entrance().to_string()).await?;
    for name in NAMES {
        shop::wait_for_members(cluster, name, MEMBERS).await?;
    }
    let first = shop::management(cluster, "alpha-0", &shop::administrator()).await?;
    let imported = first.import_definitions(definitions()?.as_bytes()).await;
    imported.map_err(shop::broker("import the shop's definitions"))
}

/// The Service that the shop uses. It leads to the first cluster.
fn entrance() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "rabbitmq", "namespace": NAMESPACE},
        "spec": {"selector": {"app.kubernetes.io/name": NAMES[0]},
                 "ports": [{"name": "amqp", "port": 5672, "targetPort": "amqp"}]},
    })
}

/// The shop's definitions without mirroring, which this version no longer has.
fn definitions() -> Result<String> {
    let mut all: Value =
        serde_json::from_str(manifests::DEFINITIONS).map_err(|e| Error::Malformed(e.to_string()))?;
    if let Some(Value::Array(policies)) = all.get_mut("policies") {
        policies.retain(|policy| policy["definition"].get("ha-mode").is_none());
    }
    Ok(all.to_string())
}

async fn migrate(cluster: &Cluster, number: usize, show: &mut Show) -> Result<Run> {
    let [from, to] = if number % 2 == 1 { NAMES } else { [NAMES[1], NAMES[0]] };
    let name = format!("bench-{number}");
    cluster.apply(&manifest(&name, from, to).to_string()).await?;
    let migration = Migration::new(cluster, &name);
    migration.wait_for(Phase::Probing, 120, &mut |s| show.status(s)).await?;
    shop::reset_gaps(cluster).await?;
    let status = migration.wait_for(Phase::Completed, SECONDS, &mut |s| show.status(s)).await?;
    let clients = shop::stats(cluster).await?;
    migration.delete().await?;
    let switching = status.switching.clone().unwrap_or_default();
    Ok(Run {
        number,
        from,
        to,
        publish_gap_millis: clients.iter().map(|c| c.longest_publish_gap_ms).max().unwrap_or_default(),
        delivery_gap_millis: clients.iter().map(|c| c.longest_delivery_gap_ms).max().unwrap_or_default(),
        patch_to_last_close_millis: switching.patch_to_last_close_millis,
        closed: switching.closed,
        carried: switching.carried,
        phases: status.history.iter().map(|p| (p.phase.to_string(), p.millis)).collect(),
    })
}

fn manifest(name: &str, from: &str, to: &str) -> Value {
    let broker = |broker: &str| {
        json!({
            "statefulSetName": broker, "serviceName": format!("{broker}-headless"),
            "credentialsSecret": {"name": broker, "passwordKey": "rabbitmq-password", "username": "user"},
        })
    };
    let mut spec = json!({
        "blue": broker(from),
        "green": {"existing": broker(to)},
        "services": [{"name": "rabbitmq"}],
        "leaveServices": [from],
        "cutover": {"approval": "Automatic", "timeoutSeconds": 120},
    });
    let mut gate = quick_gate();
    gate["gate"]["maxSendLagMillis"] = json!(200);
    gate["soak"]["durationSeconds"] = json!(5);
    migration::merge(&mut spec, &gate);
    json!({
        "apiVersion": "rabbitmq-migration.io/v1alpha1", "kind": "RabbitMQMigration",
        "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec,
    })
}

async fn commit(root: &Path) -> String {
    let told = tokio::process::Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root).output();
    match told.await {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        _ => "unknown".to_owned(),
    }
}
