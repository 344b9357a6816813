//! Mistakes in the spec: each gets a clear condition, and blue is untouched.

use crate::brokers::{definitions, nothing_of_ours};
use crate::cluster::Cluster;
use crate::demo;
use crate::error::{Error, Result, expect};
use crate::migration::{self, Migration, describe};
use crate::scenarios::rules;
use crate::shop::{self, manifests};
use serde_json::{Value, json};
use std::path::PathBuf;

/// A mistake, and the check that must name it.
struct Mistake {
    what: &'static str,
    patch: fn() -> Value,
    check: &'static str,
    says: &'static str,
}

const MISTAKES: [Mistake; 5] = [
    Mistake {
        what: "a Secret that does not exist",
        patch: || json!({"blue": {"credentialsSecret": {"name": "nowhere"}}}),
        check: "credentials-present",
        says: "nowhere",
    },
    Mistake {
        what: "a wrong password",
        patch: || json!({"blue": {"credentialsSecret": {"passwordKey": "rabbitmq-erlang-cookie"}}}),
        check: "blue-one-cluster",
        says: "",
    },
    Mistake {
        what: "a StatefulSet that does not exist",
        patch: || json!({"blue": {"statefulSetName": "nothing"}}),
        check: "blue-one-cluster",
        says: "nothing",
    },
    Mistake {
        what: "a blue that cannot be reached",
        patch: || json!({"blue": {"statefulSetName": "deaf"}}),
        check: "blue-one-cluster",
        says: "deaf-0",
    },
    Mistake {
        what: "an unknown StorageClass",
        patch: || json!({"green": {"template": {"storage": {"className": "golden"}}}}),
        check: "storage-class-exists",
        says: "golden",
    },
];

/// A StatefulSet whose pods run and listen to nobody.
const DEAF: &str = include_str!("../../manifests/deaf.yaml");

/// Tries every mistake against a real blue.
pub async fn run(cluster: Cluster, root: PathBuf) -> Result<()> {
    rules::run(&cluster, &root).await?;
    demo::begin(&cluster, &root).await?;
    shop::install_blue(&cluster).await?;
    cluster.apply(DEAF).await?;
    let blue = shop::administrator();
    let before = definitions(&cluster, "rabbitmq-0", &blue).await?;
    for mistake in &MISTAKES {
        try_one(&cluster, mistake).await?;
    }
    refused_by_the_api_server(&cluster).await?;
    nothing_of_ours(&cluster, "rabbitmq-0", &blue).await?;
    let after = definitions(&cluster, "rabbitmq-0", &blue).await?;
    expect(before == after, "blue's definitions to be as they were")
}

async fn try_one(cluster: &Cluster, mistake: &Mistake) -> Result<()> {
    cluster.apply(&migration::manifest(cluster, &(mistake.patch)()).await?).await?;
    let migration = Migration::new(cluster, "orders");
    let named = |status: &api::RabbitMQMigrationStatus| {
        status.findings.iter().any(|f| f.check == mistake.check && f.evidence.contains(mistake.says))
    };
    let status = migration.wait_until(mistake.what, 60, &mut |_| {}, &named).await?;
    let shown = describe(&status);
    println!("   {}: {shown}", mistake.what);
    expect(status.phase == Some(api::Phase::Preflight), format!("to stay in Preflight, got {shown}"))?;
    expect(status.findings.iter().all(|f| !f.remedy.is_empty()), "every finding to have a remedy")?;
    migration.delete().await
}

/// What the schema and its rules refuse never becomes an object.
async fn refused_by_the_api_server(cluster: &Cluster) -> Result<()> {
    let wrong = [
        ("replicas: 3", "replicas: 4", "odd"),
        ("- {name: rabbitmq, mode: Adopt, role: All}", "- {name: rabbitmq-metrics}", "not in both"),
    ];
    for (right, mistake, says) in wrong {
        let manifest = manifests::MIGRATION.replace(right, mistake);
        match cluster.apply(&manifest).await {
            Err(Error::Program { output, .. }) if output.contains(says) => {
                println!("   refused by the API server: {}", output.lines().last().unwrap_or_default());
            }
            other => return Err(Error::Expected(format!("{mistake} to be refused ({says}), got {other:?}"))),
        }
    }
    Ok(())
}
