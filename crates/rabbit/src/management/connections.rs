//! Client connections: the live list, the list with statistics, closing.

use reqwest::{Method, StatusCode};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::http::Client;
use super::json as field;
use crate::error::{Error, Result};

/// A connection in the live list (`disable_stats=true`): new ones show after 0.04 s, few fields.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LiveConnection {
    /// Broker's name of it, `peer:port -> host:port`.
    pub name: String,
    /// User who logged in.
    #[serde(default, deserialize_with = "field::text")]
    pub user: Option<String>,
    /// Virtual host.
    #[serde(default, deserialize_with = "field::text")]
    pub vhost: Option<String>,
    /// Node it is open to.
    #[serde(default, deserialize_with = "field::text")]
    pub node: Option<String>,
    /// `Direct` connections (links, shovels inside the broker) say so here.
    #[serde(default, deserialize_with = "field::text")]
    pub protocol: Option<String>,
    /// Name the client gave itself.
    #[serde(default, deserialize_with = "field::text")]
    pub user_provided_name: Option<String>,
}

/// A connection with statistics; a fresh one is missing or has gaps for up to 4.5 s.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// Broker's name of it, `peer:port -> host:port`.
    pub name: String,
    /// User who logged in.
    pub user: Option<String>,
    /// Virtual host.
    pub vhost: Option<String>,
    /// Node it is open to.
    pub node: Option<String>,
    /// Name the client gave itself.
    pub user_provided_name: Option<String>,
    /// Client library, from its properties.
    pub product: Option<String>,
    /// Version of the client library.
    pub product_version: Option<String>,
    /// Platform of the client library.
    pub platform: Option<String>,
    /// Address of the peer.
    pub peer_host: Option<String>,
    /// `running`, `blocked`, `blocking`, `flow`, ...
    pub state: Option<String>,
    /// `AMQP 0-9-1`, `AMQP 1.0`, `MQTT 3.1.1`, `Direct 0-9-1`, ...
    pub protocol: Option<String>,
    /// When it was opened, milliseconds of the Unix epoch.
    pub connected_at: Option<u64>,
    /// Number of channels.
    pub channels: Option<u64>,
    /// Largest frame it negotiated.
    pub frame_max: Option<u64>,
}

impl<'de> Deserialize<'de> for Connection {
    fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
        let row = Map::deserialize(d)?;
        let text = |key| field::string_in(&row, key).filter(|t| t != "undefined");
        let number = |key: &str| row.get(key).and_then(Value::as_u64);
        let empty = Map::new();
        let client = row.get("client_properties").and_then(Value::as_object).unwrap_or(&empty);
        Ok(Self {
            name: text("name").ok_or_else(|| serde::de::Error::missing_field("name"))?,
            user: text("user"),
            vhost: text("vhost"),
            node: text("node"),
            user_provided_name: text("user_provided_name")
                .or_else(|| field::string_in(client, "connection_name")),
            product: field::string_in(client, "product"),
            product_version: field::string_in(client, "version"),
            platform: field::string_in(client, "platform"),
            peer_host: text("peer_host"),
            state: text("state"),
            protocol: text("protocol"),
            connected_at: number("connected_at"),
            channels: number("channels"),
            frame_max: number("frame_max"),
        })
    }
}

/// What the broker said to a close by name. Never the proof: closed is absent from a later listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// The broker closes it.
    Asked,
    /// 404: gone, or too young for the statistics to know it and **still open**.
    NotKnownYet,
}

impl Client {
    /// Lists open connections, live. Tag: `monitoring` for all, else only our own. Changes nothing.
    pub async fn live_connections(&self) -> Result<Vec<LiveConnection>> {
        self.list_query("live connections", &["api", "connections"], "disable_stats=true").await
    }

    /// Lists connections with client properties and statistics, up to 4.5 s late. Tag: `monitoring` for all,
    /// else only our own. Changes nothing.
    pub async fn connections(&self) -> Result<Vec<Connection>> {
        self.list("connections", &["api", "connections"]).await
    }

    /// Closes one connection by name; the client sees 320 with the reason. Tag: `administrator`, or our own.
    /// Younger than 4 s it may answer [`Closed::NotKnownYet`]: then close by user or ask again.
    pub async fn close_connection(&self, name: &str, reason: &str) -> Result<Closed> {
        let segments = ["api", "connections", name];
        let close = async {
            let answer = self.send(self.call(Method::DELETE, &segments).with_reason(reason)).await?;
            if answer.status == StatusCode::NOT_FOUND {
                return Ok(Closed::NotKnownYet);
            }
            answer.success().map(|_| Closed::Asked)
        };
        close.await.map_err(|cause| Error::Close { object: format!("connection {name}"), cause })
    }

    /// Closes all connections of a user that the broker tracks, at once; new ones are tracked within
    /// milliseconds, on a starved broker later, so list and close again until none is left. Tag:
    /// `administrator`. A user without any is fine. Bulk timeout; a cut leaves some closed.
    pub async fn close_user_connections(&self, user: &str, reason: &str) -> Result<()> {
        let segments = ["api", "connections", "username", user];
        let close = async {
            let answer = self.send(self.bulk_call(Method::DELETE, &segments).with_reason(reason)).await?;
            if answer.status == StatusCode::NOT_FOUND { Ok(()) } else { answer.success().map(drop) }
        };
        close.await.map_err(|cause| Error::Close { object: format!("connections of user {user}"), cause })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_java_client_is_recognised() {
        let rows: Vec<Connection> = serde_json::from_str(
            r#"[{"auth_mechanism":"PLAIN","channels":2,"client_properties":{"capabilities":{"basic.nack":true},
            "connection_name":"orders-worker","product":"RabbitMQ","version":"5.20.0","platform":"Java"},
            "connected_at":1700000000123,"frame_max":131072,"name":"10.0.0.7:41234 -> 10.0.0.2:5672",
            "node":"rabbit@b-0","peer_host":"10.0.0.7","protocol":"AMQP 0-9-1","state":"running",
            "user":"shop","user_provided_name":"orders-worker","vhost":"orders","send_oct":17}]"#,
        )
        .unwrap();
        let row = &rows[0];
        assert_eq!(row.platform.as_deref(), Some("Java"));
        assert_eq!(row.product_version.as_deref(), Some("5.20.0"));
        assert_eq!(row.user_provided_name.as_deref(), Some("orders-worker"));
        assert_eq!((row.channels, row.connected_at), (Some(2), Some(1_700_000_000_123)));
    }

    #[test]
    fn a_fresh_connection_has_gaps_not_zeros() {
        let rows: Vec<Connection> =
            serde_json::from_str(r#"[{"name":"a -> b","client_properties":[],"channels":"undefined"}]"#)
                .unwrap();
        assert_eq!((rows[0].channels, rows[0].user.as_ref()), (None, None));
        let live: Vec<LiveConnection> =
            serde_json::from_str(r#"[{"name":"a -> b","user":"shop","vhost":"/","node":"rabbit@b-0"}]"#)
                .unwrap();
        assert_eq!(live[0].user.as_deref(), Some("shop"));
    }
}
