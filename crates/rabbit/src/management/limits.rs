//! Limits of users and vhosts: a connection limit of 0 is the fence.

use std::collections::BTreeMap;

use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::http::Client;
use super::json as field;
use crate::error::Result;

/// Name of the limit that fences, for users and vhosts alike.
pub const MAX_CONNECTIONS: &str = "max-connections";

/// Limits of one user or vhost, by the broker's names. A limit that is not set is not in the map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// User or vhost.
    pub name: String,
    /// `max-connections`, `max-channels`, `max-queues`.
    pub values: BTreeMap<String, i64>,
}

impl Limits {
    /// The connection limit, if one is set.
    pub fn max_connections(&self) -> Option<i64> {
        self.values.get(MAX_CONNECTIONS).copied()
    }
}

#[derive(Deserialize)]
struct Row {
    #[serde(alias = "vhost")]
    user: String,
    #[serde(default, deserialize_with = "field::limits")]
    value: BTreeMap<String, i64>,
}

impl From<Row> for Limits {
    fn from(row: Row) -> Self {
        Self { name: row.user, values: row.value }
    }
}

impl Client {
    /// Lists the limits of all users that have any. Tag: `administrator`. Changes nothing.
    pub async fn user_limits(&self) -> Result<Vec<Limits>> {
        let rows: Vec<Row> = self.list("user limits", &["api", "user-limits"]).await?;
        Ok(rows.into_iter().map(Limits::from).collect())
    }

    /// Sets the most connections a user may have; 0 fences him: new AMQP, MQTT and STOMP logins are refused,
    /// open connections stay. Tag: `administrator`. Idempotent. Refused (400) where the flag `user_limits`
    /// is off and for users without an internal record.
    pub async fn set_user_max_connections(&self, user: &str, limit: u32) -> Result<()> {
        let object = format!("connection limit of user {user}");
        let segments = ["api", "user-limits", user, MAX_CONNECTIONS];
        self.change(&object, Method::PUT, &segments, &json!({ "value": limit })).await
    }

    /// Removes a user's connection limit. Tag: `administrator`. Idempotent.
    pub async fn clear_user_max_connections(&self, user: &str) -> Result<()> {
        let object = format!("connection limit of user {user}");
        self.remove(&object, &["api", "user-limits", user, MAX_CONNECTIONS], "").await
    }

    /// Lists the limits of all vhosts that have any. Tag: `administrator`. Changes nothing.
    pub async fn vhost_limits(&self) -> Result<Vec<Limits>> {
        let rows: Vec<Row> = self.list("vhost limits", &["api", "vhost-limits"]).await?;
        Ok(rows.into_iter().map(Limits::from).collect())
    }

    /// Sets a limit of a vhost; `max-connections` 0 refuses everybody, administrators included.
    /// Tag: `administrator`. Idempotent.
    pub async fn set_vhost_limit(&self, vhost: &str, limit: &str, value: i64) -> Result<()> {
        let object = format!("limit {limit} of vhost {vhost}");
        let segments = ["api", "vhost-limits", vhost, limit];
        self.change(&object, Method::PUT, &segments, &json!({ "value": value })).await
    }

    /// Removes a limit of a vhost. Tag: `administrator`. Idempotent.
    pub async fn clear_vhost_limit(&self, vhost: &str, limit: &str) -> Result<()> {
        let object = format!("limit {limit} of vhost {vhost}");
        self.remove(&object, &["api", "vhost-limits", vhost, limit], "").await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_listings_parse() {
        let users: Vec<Row> =
            serde_json::from_str(r#"[{"user":"shop","value":{"max-connections":0,"max-channels":5}}]"#)
                .unwrap();
        assert_eq!(Limits::from(users.into_iter().next().unwrap()).max_connections(), Some(0));
        let vhosts: Vec<Row> = serde_json::from_str(r#"[{"vhost":"orders","value":[]}]"#).unwrap();
        let limits = Limits::from(vhosts.into_iter().next().unwrap());
        assert_eq!((limits.name.as_str(), limits.max_connections()), ("orders", None));
    }
}
