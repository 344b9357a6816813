//! What all of green's objects are made from: the checked template with names, labels and ports.

use super::ports::Ports;
use crate::act::kubernetes::MANAGER;
use crate::error::ActError;
use ::api::spec::GreenTemplate;
use ::api::{LABEL_BROKER, LABEL_MIGRATION};
use decide::plan::{Plan, digest};
use decide::world::ServiceView;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What all of green's objects are made from.
#[derive(Clone, Debug)]
pub(super) struct Blueprint<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// Uid of the migration.
    pub uid: &'a str,
    /// Name of the StatefulSet and of most objects.
    pub name: &'a str,
    /// Name of the headless Service.
    pub headless: &'a str,
    /// Name of the Secret with user, password and cookie.
    pub secret: &'a str,
    /// The template.
    pub template: &'a GreenTemplate,
    /// Its digest.
    pub digest: String,
    /// Labels of the pods: what the moved Services select, and ours.
    pub pod_labels: BTreeMap<String, String>,
    /// Ports that the broker's container declares.
    pub ports: Ports,
}

impl<'a> Blueprint<'a> {
    /// Makes the blueprint. Fails where the plan has no template, or a Service wants a port that nobody
    /// knows.
    pub fn new(
        plan: &'a Plan,
        services: &[ServiceView],
        blue_ports: &BTreeMap<String, i32>,
    ) -> Result<Self, ActError> {
        let missing = |what: &str| ActError::Missing { what: what.to_owned() };
        let template = plan.template().ok_or_else(|| missing("spec.green.template"))?;
        let mut pod_labels = plan.green_labels(services.iter().map(|service| &service.selector));
        let name = plan.green.stateful_set_name.as_str();
        pod_labels.extend(labels(&plan.uid, name));
        let targets = services.iter().flat_map(|service| &service.target_ports);
        Ok(Self {
            namespace: &plan.namespace,
            uid: &plan.uid,
            name,
            headless: &plan.green.service_name,
            secret: &plan.green.credentials_secret.name,
            digest: plan.template_digest().ok_or_else(|| missing("spec.green.template"))?,
            ports: Ports::new(targets, blue_ports)?,
            template,
            pod_labels,
        })
    }

    /// Name of the ConfigMap.
    pub fn config(&self) -> String {
        format!("{}-config", self.name)
    }

    /// Name of the Service by which people and the probe reach green before it serves.
    pub fn preview(&self) -> String {
        format!("{}-preview", self.name)
    }

    /// What tells green's pods from all others.
    pub fn selector(&self) -> BTreeMap<String, String> {
        [(LABEL_BROKER.to_owned(), self.name.to_owned())].into()
    }

    /// Metadata of an object named `name`.
    pub fn metadata(&self, name: &str) -> Value {
        let mut labels = labels(self.uid, self.name);
        labels.insert("app.kubernetes.io/managed-by".to_owned(), MANAGER.to_owned());
        json!({
            "name": name,
            "namespace": self.namespace,
            "labels": labels,
            // Argo CD must not call an application out of sync because of what Git does not hold.
            "annotations": { "argocd.argoproj.io/compare-options": "IgnoreExtraneous" },
        })
    }

    /// What a rabbit node adds to its pod's name to be found: `.headless.namespace`, which every cluster
    /// domain completes.
    pub fn hostname_suffix(&self) -> String {
        format!(".{}.{}", self.headless, self.namespace)
    }

    /// Digest of the configuration: pods mount it singly and must be replaced to see a new one.
    pub fn config_digest(&self) -> String {
        digest(&[&super::conf::rabbitmq_conf(self), &super::config::enabled_plugins(self)])
    }
}

/// The two labels that say whose an object is.
fn labels(uid: &str, broker: &str) -> BTreeMap<String, String> {
    [(LABEL_MIGRATION, uid), (LABEL_BROKER, broker)].map(|(k, v)| (k.to_owned(), v.to_owned())).into()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use ::api::RabbitMQMigration;

    /// A plan with a template, for tests of the builders.
    pub fn plan() -> Plan {
        let migration: RabbitMQMigration = serde_json::from_value(json!({
            "apiVersion": "rabbitmq-migration.io/v1alpha1", "kind": "RabbitMQMigration",
            "metadata": { "name": "orders", "namespace": "messaging", "uid": "0000-1111" },
            "spec": {
                "blue": { "statefulSetName": "rabbitmq", "serviceName": "rabbitmq-headless",
                    "credentialsSecret": { "name": "rabbitmq", "username": "user" } },
                "green": { "template": {
                    "image": "rabbitmq:4.0-management",
                    "storage": { "className": "zonal", "size": "10Gi" },
                    "resources": { "requests": { "cpu": "500m" }, "limits": { "memory": "2Gi" } },
                    "config": "channel_max = 100\n",
                    "env": { "HOME": "/elsewhere", "EXTRA": "1" },
                }},
                "services": [{ "name": "rabbitmq" }],
            },
        }))
        .unwrap();
        Plan::parse(&migration).unwrap()
    }

    /// The moved Service of that plan.
    pub fn service() -> ServiceView {
        ServiceView {
            selector: [("app.kubernetes.io/name", "rabbitmq"), ("app.kubernetes.io/instance", "rel")]
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into(),
            target_ports: vec!["amqp".to_owned(), "stats".to_owned()],
            ..ServiceView::default()
        }
    }

    /// Says whether `object` is, word for word, an object of kind `K`: no field is misspelled or misplaced.
    pub fn is_exactly<K: serde::de::DeserializeOwned + serde::Serialize>(object: &Value) {
        let typed: K = serde_json::from_value(object.clone()).unwrap();
        assert_eq!(&serde_json::to_value(typed).unwrap(), object);
    }

    #[test]
    fn pods_carry_the_keys_of_the_services_but_not_the_release() {
        let plan = plan();
        let blueprint = Blueprint::new(&plan, &[service()], &BTreeMap::new()).unwrap();
        let keys: Vec<&str> = blueprint.pod_labels.keys().map(String::as_str).collect();
        assert_eq!(keys, ["app.kubernetes.io/name", LABEL_BROKER, LABEL_MIGRATION]);
        assert!(blueprint.pod_labels.get("app.kubernetes.io/name").is_some_and(|v| v == "orders-green"));
    }
}
