//! Policies, operator policies, runtime parameters.

use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::http::Client;
use super::json as field;
use crate::error::Result;

/// One policy or operator policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    /// Virtual host.
    pub vhost: String,
    /// Its name.
    pub name: String,
    /// PCRE, unanchored.
    pub pattern: String,
    /// `queues`, `exchanges`, `all`, `classic_queues`, `quorum_queues`, `streams`.
    #[serde(rename = "apply-to")]
    pub apply_to: String,
    /// Higher wins.
    pub priority: i64,
    /// What it sets.
    #[serde(deserialize_with = "field::object")]
    pub definition: Map<String, Value>,
}

/// The name of a runtime parameter; values can hold passwords and are read through the export only.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Parameter {
    /// Virtual host.
    pub vhost: String,
    /// `shovel`, `federation-upstream`, `operator_policy`, `vhost-limits`, ...
    pub component: String,
    /// Its name.
    pub name: String,
}

impl Client {
    /// Lists policies. Tag: `management` (all vhosts: `monitoring`). Changes nothing.
    pub async fn policies(&self) -> Result<Vec<Policy>> {
        self.list("policies", &["api", "policies"]).await
    }

    /// Lists operator policies. Tag: `management`. Changes nothing.
    pub async fn operator_policies(&self) -> Result<Vec<Policy>> {
        self.list("operator policies", &["api", "operator-policies"]).await
    }

    /// Sets a policy. Tag: `policymaker`. Idempotent; takes effect at once, also on links.
    pub async fn put_policy(&self, policy: &Policy) -> Result<()> {
        let object = format!("policy {} in vhost {}", policy.name, policy.vhost);
        self.change(&object, Method::PUT, &["api", "policies", &policy.vhost, &policy.name], policy).await
    }

    /// Sets an operator policy. Tag: `administrator`. Idempotent; takes effect at once.
    pub async fn put_operator_policy(&self, policy: &Policy) -> Result<()> {
        let object = format!("operator policy {} in vhost {}", policy.name, policy.vhost);
        let segments = ["api", "operator-policies", &policy.vhost, &policy.name];
        self.change(&object, Method::PUT, &segments, policy).await
    }

    /// Deletes a policy; one that is not there is fine. Tag: `policymaker`.
    pub async fn delete_policy(&self, vhost: &str, name: &str) -> Result<()> {
        self.remove(&format!("policy {name} in vhost {vhost}"), &["api", "policies", vhost, name], "").await
    }

    /// Deletes an operator policy; one that is not there is fine. Tag: `administrator`.
    pub async fn delete_operator_policy(&self, vhost: &str, name: &str) -> Result<()> {
        let object = format!("operator policy {name} in vhost {vhost}");
        self.remove(&object, &["api", "operator-policies", vhost, name], "").await
    }

    /// Lists names of runtime parameters, without their values. Tag: `policymaker`. Changes nothing.
    pub async fn parameters(&self) -> Result<Vec<Parameter>> {
        self.list("parameters", &["api", "parameters"]).await
    }

    /// Sets a runtime parameter; a shovel or upstream **starts at once**. Tag: `policymaker`. Idempotent.
    pub async fn put_parameter(
        &self,
        component: &str,
        vhost: &str,
        name: &str,
        value: &impl Serialize,
    ) -> Result<()> {
        let object = format!("parameter {component} {name} in vhost {vhost}");
        let body = Wrapped { value, vhost, component, name };
        self.change(&object, Method::PUT, &["api", "parameters", component, vhost, name], &body).await
    }

    /// Deletes a runtime parameter; one that is not there is fine. Tag: `policymaker`.
    pub async fn delete_parameter(&self, component: &str, vhost: &str, name: &str) -> Result<()> {
        let object = format!("parameter {component} {name} in vhost {vhost}");
        self.remove(&object, &["api", "parameters", component, vhost, name], "").await
    }

    /// Sets a global parameter. Tag: `administrator`. Idempotent. `cluster_name` is refused here: it is the
    /// broker's identity ([`Client::set_cluster_name`]).
    pub async fn put_global_parameter(&self, name: &str, value: &impl Serialize) -> Result<()> {
        let object = format!("global parameter {name}");
        if name == "cluster_name" {
            let cause = crate::Cause::Name(name.to_owned());
            return Err(crate::Error::Change { object, cause });
        }
        let body = json!({ "name": name, "value": value });
        self.change(&object, Method::PUT, &["api", "global-parameters", name], &body).await
    }
}

#[derive(Serialize)]
struct Wrapped<'a, T> {
    value: &'a T,
    vhost: &'a str,
    component: &'a str,
    name: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_round_trip_in_the_brokers_words() {
        let text = r#"{"vhost":"v","name":"ha","pattern":"^(?!amq\\.).*","apply-to":"queues","priority":1,"definition":{"ha-mode":"all"}}"#;
        let policy: Policy = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&policy).unwrap(), text);
    }

    #[test]
    fn parameters_drop_their_values() {
        let rows: Vec<Parameter> = serde_json::from_str(
            r#"[{"value":{"src-uri":"amqp://u:planted@h"},"vhost":"v","component":"shovel","name":"s"}]"#,
        )
        .unwrap();
        assert!(!format!("{rows:?}").contains("planted"));
    }
}
