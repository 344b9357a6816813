//! A migration, followed from outside as a person would.

use crate::cluster::{Cluster, NAMESPACE};
use crate::error::{Error, Result};
use api::{Phase, RabbitMQMigration, RabbitMQMigrationStatus};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The migration of a run.
#[derive(Clone)]
pub struct Migration {
    cluster: Cluster,
    /// Its name.
    pub name: String,
}

impl Migration {
    /// A migration by name.
    pub fn new(cluster: &Cluster, name: &str) -> Self {
        Self { cluster: cluster.clone(), name: name.to_owned() }
    }

    fn api(&self) -> Api<RabbitMQMigration> {
        Api::namespaced(self.cluster.client.clone(), NAMESPACE)
    }

    fn failed(&self, attempt: &str) -> impl FnOnce(kube::Error) -> Error {
        let attempt = format!("{attempt} migration {}", self.name);
        move |source| Error::Kubernetes { attempt, source: Box::new(source) }
    }

    /// Reads it.
    pub async fn get(&self) -> Result<RabbitMQMigration> {
        self.api().get(&self.name).await.map_err(self.failed("get"))
    }

    /// Reads its status.
    pub async fn status(&self) -> Result<RabbitMQMigrationStatus> {
        Ok(self.get().await?.status.unwrap_or_default())
    }

    /// Merges `patch`.
    pub async fn patch(&self, patch: Value) -> Result<()> {
        let done = self.api().patch(&self.name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        done.map_err(self.failed("patch")).map(|_| ())
    }

    /// Sets an annotation.
    pub async fn annotate(&self, key: &str, value: &str) -> Result<()> {
        self.patch(json!({"metadata": {"annotations": {key: value}}})).await
    }

    /// Deletes it and waits until it is gone.
    pub async fn delete(&self) -> Result<()> {
        match self.api().delete(&self.name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            other => other.map_err(self.failed("delete"))?,
        };
        let api = self.api();
        self.cluster
            .wait(&format!("the end of migration {}", self.name), 120, || async {
                let found = api.get_opt(&self.name).await.map_err(self.failed("get"))?;
                Ok(found.map_or(Ok(()), |m| Err(describe(&m.status.unwrap_or_default()))))
            })
            .await
    }

    /// Waits for a phase; `shown` sees each status on the way. A Stalled migration ends the wait.
    pub async fn wait_for(
        &self,
        phase: Phase,
        seconds: u64,
        shown: &mut (dyn FnMut(&RabbitMQMigrationStatus) + Send),
    ) -> Result<RabbitMQMigrationStatus> {
        self.wait_until(&format!("phase {phase}"), seconds, shown, &|status| status.phase == Some(phase))
            .await
    }

    /// Waits until `holds`.
    pub async fn wait_until(
        &self,
        what: &str,
        seconds: u64,
        shown: &mut (dyn FnMut(&RabbitMQMigrationStatus) + Send),
        holds: &(dyn Fn(&RabbitMQMigrationStatus) -> bool + Sync),
    ) -> Result<RabbitMQMigrationStatus> {
        let end = Instant::now() + Duration::from_secs(seconds);
        loop {
            let status = self.status().await?;
            shown(&status);
            if holds(&status) {
                return Ok(status);
            }
            if Instant::now() >= end {
                return Err(Error::TimedOut { what: what.to_owned(), seconds, last: describe(&status) });
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

/// The names of all migrations of a run.
pub async fn names(cluster: &Cluster) -> Result<Vec<String>> {
    let migrations: Api<RabbitMQMigration> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    let listed = migrations.list_metadata(&ListParams::default()).await.map_err(|source| {
        Error::Kubernetes { attempt: "list migrations".to_owned(), source: Box::new(source) }
    })?;
    Ok(listed.items.into_iter().filter_map(|migration| migration.metadata.name).collect())
}

/// The demo's migration with `patch` merged into its spec.
pub async fn manifest(cluster: &Cluster, patch: &Value) -> Result<String> {
    let dry_run = ["create", "--dry-run=client", "-o", "json", "-f", "-"];
    let text = cluster.kubectl_with(&dry_run, crate::shop::manifests::MIGRATION).await?;
    let mut object: Value = serde_json::from_str(&text).map_err(|e| Error::Malformed(e.to_string()))?;
    if let Some(spec) = object.get_mut("spec") {
        merge(spec, patch);
    }
    Ok(object.to_string())
}

/// Merges as JSON merge patch does, but that null stays.
pub fn merge(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (key, value) in patch {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (slot, value) => slot.clone_from(value),
    }
}

/// One line of a status.
pub fn describe(status: &RabbitMQMigrationStatus) -> String {
    let phase = status.phase.unwrap_or_default();
    let wait = status.wait.as_ref().map(|w| format!("{}: {}", w.reason, w.detail)).unwrap_or_default();
    format!("{phase} {wait}")
}

/// A condition's status.
pub fn condition<'a>(status: &'a RabbitMQMigrationStatus, type_: &str) -> &'a str {
    status.conditions.iter().find(|c| c.type_ == type_).map_or("", |c| c.status.as_str())
}
