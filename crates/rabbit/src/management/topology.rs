//! Exchanges and bindings.

use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::http::Client;
use super::json as field;
use super::queues::MessageStats;
use crate::error::Result;

/// One exchange.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Exchange {
    /// Virtual host.
    pub vhost: String,
    /// Its name; empty for the default exchange.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub exchange_type: String,
    /// Survives a broker restart.
    pub durable: bool,
    /// Deleted with its last binding.
    pub auto_delete: bool,
    /// Not for clients.
    #[serde(default)]
    pub internal: bool,
    /// Arguments it was declared with.
    #[serde(default, deserialize_with = "field::object")]
    pub arguments: Map<String, Value>,
    /// Policy in force.
    #[serde(default, deserialize_with = "field::text")]
    pub policy: Option<String>,
    /// Counters and rates, seconds late: `publish_in`, `publish_out`, `drop_unroutable`, `return_unroutable`.
    #[serde(default)]
    pub message_stats: MessageStats,
}

/// One binding; live, not statistics.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Binding {
    /// Virtual host.
    pub vhost: String,
    /// Exchange; empty for the implicit bindings of the default exchange.
    pub source: String,
    /// Queue or exchange.
    pub destination: String,
    /// `queue` or `exchange`.
    pub destination_type: String,
    /// Routing key.
    pub routing_key: String,
    /// Arguments.
    #[serde(default, deserialize_with = "field::object")]
    pub arguments: Map<String, Value>,
}

impl Client {
    /// Lists exchanges of all vhosts that we may see. Tag: `management`. Changes nothing.
    pub async fn exchanges(&self) -> Result<Vec<Exchange>> {
        self.list("exchanges", &["api", "exchanges"]).await
    }

    /// Lists bindings of all vhosts that we may see, live. Tag: `management`. Changes nothing.
    pub async fn bindings(&self) -> Result<Vec<Binding>> {
        self.list("bindings", &["api", "bindings"]).await
    }

    /// Lists bindings of one vhost, live. Tag: `management` with access to it. Changes nothing.
    pub async fn bindings_in(&self, vhost: &str) -> Result<Vec<Binding>> {
        self.list(&format!("bindings in vhost {vhost}"), &["api", "bindings", vhost]).await
    }

    /// Declares an exchange with the body of an export. Tag: `management` and configure permission.
    /// Idempotent; 400 if it exists in another form.
    pub async fn put_exchange(&self, vhost: &str, name: &str, body: &impl Serialize) -> Result<()> {
        let object = format!("exchange {name} in vhost {vhost}");
        self.change(&object, Method::PUT, &["api", "exchanges", vhost, name], body).await
    }

    /// Deletes an exchange with its bindings; one that is not there is fine. Tag: `management` and configure
    /// permission.
    pub async fn delete_exchange(&self, vhost: &str, name: &str) -> Result<()> {
        let object = format!("exchange {name} in vhost {vhost}");
        self.remove(&object, &["api", "exchanges", vhost, name], "").await
    }

    /// Binds. Tag: `management`, write on the destination, read on the source. Idempotent; 404 if either end
    /// is not there.
    pub async fn put_binding(&self, binding: &Binding) -> Result<()> {
        let Binding { vhost, source, destination, destination_type, routing_key, arguments } = binding;
        let object = format!("binding {source} -> {destination} in vhost {vhost}");
        let kind = if destination_type == "queue" { "q" } else { "e" };
        let segments = ["api", "bindings", vhost, "e", source, kind, destination];
        let body = json!({ "routing_key": routing_key, "arguments": arguments });
        self.change(&object, Method::POST, &segments, &body).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_exchanges_and_bindings_parse() {
        let exchanges: Vec<Exchange> = serde_json::from_str(
            r#"[{"arguments":{"alternate-exchange":"unrouted"},"auto_delete":false,"durable":true,
            "internal":false,"name":"orders","type":"topic","user_who_performed_action":"guest","vhost":"v",
            "message_stats":{"publish_in":9,"drop_unroutable":2}}]"#,
        )
        .unwrap();
        assert_eq!(exchanges[0].arguments["alternate-exchange"], "unrouted");
        assert_eq!(exchanges[0].message_stats.count("drop_unroutable"), Some(2));
        let bindings: Vec<Binding> = serde_json::from_str(
            r#"[{"source":"","vhost":"v1","destination":"c1","destination_type":"queue","routing_key":"c1",
            "arguments":{},"properties_key":"c1"}]"#,
        )
        .unwrap();
        assert_eq!(bindings[0].destination, "c1");
    }
}
