//! Who the broker is and how it is: overview, nodes, members, health, cluster name, leader rebalance.

use reqwest::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::http::Client;
use super::json as field;
use crate::error::{Error, Result};

/// What `/api/overview` says.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Overview {
    /// Version of the answering node.
    pub rabbitmq_version: String,
    /// Its Erlang version.
    pub erlang_version: String,
    /// Cluster name, the identity to compare with the handshake.
    pub cluster_name: String,
    /// The node that answered.
    pub node: String,
    /// `true`: statistics are off, so rates, channels and consumers are unknown. `None`: not said.
    #[serde(default, deserialize_with = "field::boolean")]
    pub disable_stats: Option<bool>,
    /// `none`: no rates.
    #[serde(default, deserialize_with = "field::text")]
    pub rates_mode: Option<String>,
    /// Names of the exchange types of this node.
    #[serde(default, deserialize_with = "type_names")]
    pub exchange_types: Vec<String>,
    /// Listeners of all running nodes.
    #[serde(default)]
    pub listeners: Vec<Listener>,
}

impl Overview {
    /// Whether statistics are collected; `None` if the broker does not say.
    pub fn statistics_enabled(&self) -> Option<bool> {
        self.disable_stats.map(|off| !off)
    }
}

/// A listening socket of the broker.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Listener {
    /// Node it belongs to.
    pub node: String,
    /// `amqp`, `amqp/ssl`, `http`, `stream`, `mqtt`, `clustering`, ...
    pub protocol: String,
    /// Port.
    pub port: u16,
}

/// One rabbit node; what a stopped node does not report is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Node {
    /// `rabbit@host`.
    pub name: String,
    /// Whether the answering node sees it running.
    pub running: bool,
    /// `disc` or `ram`.
    #[serde(default, rename = "type", deserialize_with = "field::text")]
    pub node_type: Option<String>,
    /// Memory in use, bytes.
    #[serde(default, deserialize_with = "field::number")]
    pub mem_used: Option<u64>,
    /// Memory alarm level, bytes.
    #[serde(default, deserialize_with = "field::number")]
    pub mem_limit: Option<u64>,
    /// Memory alarm.
    #[serde(default, deserialize_with = "field::boolean")]
    pub mem_alarm: Option<bool>,
    /// Free disk, bytes.
    #[serde(default, deserialize_with = "field::number")]
    pub disk_free: Option<u64>,
    /// Disk alarm level, bytes.
    #[serde(default, deserialize_with = "field::number")]
    pub disk_free_limit: Option<u64>,
    /// Disk alarm.
    #[serde(default, deserialize_with = "field::boolean")]
    pub disk_free_alarm: Option<bool>,
    /// Enabled plugins.
    #[serde(default, deserialize_with = "field::names")]
    pub enabled_plugins: Option<Vec<String>>,
    /// Nodes it is partitioned from.
    #[serde(default, deserialize_with = "field::names")]
    pub partitions: Option<Vec<String>>,
    /// Where its data lies.
    #[serde(default, deserialize_with = "field::text")]
    pub db_dir: Option<String>,
    /// Whether it is in maintenance mode.
    #[serde(default, deserialize_with = "field::boolean")]
    pub being_drained: Option<bool>,
}

/// The member list as one node sees it. Ask every node: lists that differ mean a split cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Members {
    /// All members, sorted.
    pub all: Vec<String>,
    /// Those running, sorted.
    pub running: Vec<String>,
}

/// Answer of a health check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// Whether the check passed.
    pub ok: bool,
    /// The broker's reason.
    pub reason: Option<String>,
}

#[derive(Deserialize)]
struct ClusterName {
    name: String,
}

impl Client {
    /// Reads versions and identity of the node that answers. Tag: `management`. Changes nothing.
    pub async fn overview(&self) -> Result<Overview> {
        self.get("overview", &["api", "overview"]).await
    }

    /// Lists the nodes with memory, disk and alarms. Tag: `monitoring`. Changes nothing.
    pub async fn nodes(&self) -> Result<Vec<Node>> {
        self.get("nodes", &["api", "nodes"]).await
    }

    /// Lists member names, sorted. Tag: `monitoring`. Changes nothing.
    pub async fn members(&self) -> Result<Members> {
        Ok(members_of(&self.nodes().await?))
    }

    /// Asks whether an alarm is in force anywhere. Tag: `monitoring`. Changes nothing.
    pub async fn check_alarms(&self) -> Result<Health> {
        self.health("alarms").await
    }

    /// Asks whether stopping the answering node would cost a quorum queue its majority. Tag: `monitoring`.
    /// Changes nothing.
    pub async fn check_quorum_critical(&self) -> Result<Health> {
        self.health("node-is-quorum-critical").await
    }

    async fn health(&self, check: &str) -> Result<Health> {
        let object = format!("health check {check}");
        let segments = ["api", "health", "checks", check];
        let ask = async {
            let answer = self.send(self.call(Method::GET, &segments)).await?;
            // A failed check is an answer, not an error: 503 with status "failed".
            if answer.status == StatusCode::SERVICE_UNAVAILABLE {
                return Ok(Health { ok: false, reason: Some(super::reason::reason(&answer.body, &[])) });
            }
            let answer = answer.success()?;
            Ok(Health { ok: true, reason: reason_of(&answer.body) })
        };
        ask.await.map_err(|cause| Error::Read { object, cause })
    }

    /// Reads the cluster name. Tag: `management`. Changes nothing.
    pub async fn cluster_name(&self) -> Result<String> {
        Ok(self.get::<ClusterName>("cluster name", &["api", "cluster-name"]).await?.name)
    }

    /// Sets the cluster name. Tag: `administrator`. Changes the broker's identity; idempotent.
    pub async fn set_cluster_name(&self, name: &str) -> Result<()> {
        self.change("cluster name", Method::PUT, &["api", "cluster-name"], &json!({ "name": name })).await
    }

    /// Spreads queue leaders over the members. Tag: `administrator`. Moves leaders, and goes on after the
    /// answer; idempotent.
    pub async fn rebalance_leaders(&self) -> Result<()> {
        self.change_slowly("queue leaders", Method::POST, &["api", "rebalance", "queues"], &json!({})).await
    }

    /// Lists deprecated features in use; `None` where the broker has no such list (404 before 3.13).
    /// Tag: `management`. Changes nothing.
    pub async fn deprecated_features_used(&self) -> Result<Option<Vec<String>>> {
        let rows: Result<Vec<Value>> =
            self.get("deprecated features", &["api", "deprecated-features", "used"]).await;
        match rows {
            Ok(rows) => {
                Ok(Some(rows.iter().filter_map(|r| r.get("name")?.as_str().map(str::to_owned)).collect()))
            }
            Err(error) if error.kind() == crate::Kind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn members_of(nodes: &[Node]) -> Members {
    let mut all: Vec<String> = nodes.iter().map(|n| n.name.clone()).collect();
    let mut running: Vec<String> = nodes.iter().filter(|n| n.running).map(|n| n.name.clone()).collect();
    all.sort();
    running.sort();
    Members { all, running }
}

fn reason_of(body: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(body).ok()?;
    value.get("reason")?.as_str().map(str::to_owned)
}

fn type_names<'de, D: serde::Deserializer<'de>>(d: D) -> std::result::Result<Vec<String>, D::Error> {
    let types = Vec::<Value>::deserialize(d)?;
    Ok(types.iter().filter_map(|t| t.get("name")?.as_str().map(str::to_owned)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_overview_parses() {
        let overview: Overview = serde_json::from_str(
            r#"{"management_version":"3.10.8","rates_mode":"basic","exchange_types":[{"name":"direct","enabled":true},
            {"name":"x-delayed-message"}],"product_version":"3.10.8","rabbitmq_version":"3.10.8",
            "cluster_name":"blue","erlang_version":"25.2.3","disable_stats":false,"node":"rabbit@b-0",
            "listeners":[{"node":"rabbit@b-0","protocol":"amqp","ip_address":"::","port":5672,"socket_opts":[]}]}"#,
        )
        .unwrap();
        assert_eq!(overview.statistics_enabled(), Some(true));
        assert_eq!(overview.exchange_types, ["direct", "x-delayed-message"]);
        assert_eq!(overview.listeners[0].port, 5672);
    }

    #[test]
    fn a_stopped_node_reports_nothing_rather_than_zero() {
        let nodes: Vec<Node> = serde_json::from_str(
            r#"[{"name":"rabbit@b-1","type":"disc","running":false},
            {"name":"rabbit@b-0","type":"disc","running":true,"mem_used":153456640,"mem_limit":2000000000,
             "mem_alarm":false,"disk_free":"nan","disk_free_limit":50000000,"disk_free_alarm":true,
             "enabled_plugins":["rabbitmq_management"],"partitions":[]}]"#,
        )
        .unwrap();
        assert_eq!(nodes[0].mem_used, None);
        assert_eq!(nodes[0].mem_alarm, None);
        assert_eq!(nodes[1].disk_free, None);
        assert_eq!(nodes[1].disk_free_alarm, Some(true));
        let members = members_of(&nodes);
        assert_eq!(members.all, ["rabbit@b-0", "rabbit@b-1"]);
        assert_eq!(members.running, ["rabbit@b-0"]);
    }
}
