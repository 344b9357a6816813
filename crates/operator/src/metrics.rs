//! Metrics. Series of a migration vanish with it.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::collections::HashMap;
use std::sync::Mutex;

/// Which migration.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Migration {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A migration and its phase.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct InPhase {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The phase.
    pub phase: &'static str,
}

/// What one pass came to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct PassOutcome {
    /// `acted`, `moved`, `waiting`, `stopped`, `failed`.
    pub outcome: &'static str,
}

/// What one effect came to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct EffectOutcome {
    /// The effect.
    pub effect: &'static str,
    /// `done`, or the kind of failure.
    pub outcome: &'static str,
}

/// Why a migration waits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Waiting {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The reason.
    pub reason: String,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

/// All metrics of the operator.
pub struct Metrics {
    registry: Registry,
    /// Passes by outcome.
    pub passes: Family<PassOutcome, Counter>,
    /// Effects by outcome.
    pub effects: Family<EffectOutcome, Counter>,
    /// 1 for the phase in which a migration is.
    pub phase: Family<InPhase, Gauge>,
    /// Seconds for which a migration has been waiting for its reason.
    pub wait: Family<Waiting, Gauge>,
    /// Messages that the canary lost.
    pub lost: Family<Migration, Gauge>,
    /// Which series each migration has now, so that they can be removed.
    shown: Mutex<HashMap<Migration, (InPhase, Option<Waiting>)>>,
}

impl Metrics {
    /// Registers all metrics.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("rabbitmq_migration");
        let passes = Family::default();
        registry.register("passes", "Passes by outcome", passes.clone());
        let effects = Family::default();
        registry.register("effects", "Effects carried out, by outcome", effects.clone());
        let phase = Family::default();
        registry.register("phase", "1 for the phase in which a migration is", phase.clone());
        let wait = Family::default();
        registry.register("wait_seconds", "Seconds of waiting for the reason", wait.clone());
        let lost = Family::default();
        registry.register("canary_lost_messages", "Messages that the canary lost", lost.clone());
        Self { registry, passes, effects, phase, wait, lost, shown: Mutex::default() }
    }

    /// The text exposition.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)?;
        Ok(text)
    }

    /// Shows the recorded status of a migration. Called only after it was stored.
    pub fn show(&self, migration: &api::RabbitMQMigration, status: &api::RabbitMQMigrationStatus) {
        let metadata = &migration.metadata;
        let namespace = metadata.namespace.clone().unwrap_or_default();
        let name = metadata.name.clone().unwrap_or_default();
        self.forget(&namespace, &name);
        let migration = Migration { namespace: namespace.clone(), name: name.clone() };
        let phase = status.phase.unwrap_or_default().as_str();
        let in_phase = InPhase { namespace: namespace.clone(), name: name.clone(), phase };
        self.phase.get_or_create(&in_phase).set(1);
        let waiting = status.wait.as_ref().map(|wait| {
            let labels = Waiting { namespace, name, reason: wait.reason.clone() };
            let since = wait.since.as_ref().map(|at| jiff::Timestamp::now().as_second() - at.0.as_second());
            self.wait.get_or_create(&labels).set(since.unwrap_or_default());
            labels
        });
        if let Some(ledger) = &status.ledger {
            self.lost.get_or_create(&migration).set(ledger.lost);
        }
        if let Ok(mut shown) = self.shown.lock() {
            shown.insert(migration, (in_phase, waiting));
        }
    }

    /// Removes the series of a migration.
    pub fn forget(&self, namespace: &str, name: &str) {
        let migration = Migration { namespace: namespace.to_owned(), name: name.to_owned() };
        let Ok(mut shown) = self.shown.lock() else { return };
        if let Some((in_phase, waiting)) = shown.remove(&migration) {
            self.phase.remove(&in_phase);
            if let Some(waiting) = waiting {
                self.wait.remove(&waiting);
            }
            self.lost.remove(&migration);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_vanish_with_their_migration() {
        let metrics = Metrics::new();
        let mut migration: api::RabbitMQMigration = serde_json::from_value(serde_json::json!({
            "apiVersion": "rabbitmq-migration.io/v1alpha1", "kind": "RabbitMQMigration",
            "metadata": {"namespace": "n", "name": "orders"},
            "spec": {
                "blue": {"statefulSetName": "b", "serviceName": "b",
                         "credentialsSecret": {"name": "s", "username": "u"}},
                "green": {"existing": {"statefulSetName": "g", "serviceName": "g",
                         "credentialsSecret": {"name": "s", "username": "u"}}},
                "services": [{"name": "rabbitmq"}]
            }
        }))
        .unwrap();
        let status = api::RabbitMQMigrationStatus { phase: Some(api::Phase::Probing), ..Default::default() };
        metrics.show(&migration, &status);
        assert!(metrics.text().unwrap().contains("phase=\"Probing\""));
        migration.status = Some(status);
        metrics.forget("n", "orders");
        assert!(!metrics.text().unwrap().contains("orders"));
    }
}
