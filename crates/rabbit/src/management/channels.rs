//! Channels and consumers: what a connection's role is derived from.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::http::Client;
use super::json as field;
use super::queues::MessageStats;
use crate::error::Result;

/// One channel; fresh ones are missing for up to 4.5 s.
#[derive(Debug, Clone, PartialEq)]
pub struct Channel {
    /// Broker's name of it, `connection (number)`.
    pub name: String,
    /// Connection it belongs to.
    pub connection: Option<String>,
    /// User.
    pub user: Option<String>,
    /// Virtual host.
    pub vhost: Option<String>,
    /// Consumers on it. `None`: no statistics yet, which is not 0.
    pub consumers: Option<u64>,
    /// Whether it asked for confirms.
    pub confirms: Option<bool>,
    /// Whether it is transactional.
    pub transactional: Option<bool>,
    /// Prefetch per consumer.
    pub prefetch: Option<u64>,
    /// Prefetch of the whole channel (global QoS).
    pub global_prefetch: Option<u64>,
    /// Deliveries not acked.
    pub unacked: Option<u64>,
    /// Publishes not confirmed.
    pub unconfirmed: Option<u64>,
    /// Counters and rates; `None`: no statistics yet. `publish` tells a publisher, `get` a poller.
    pub message_stats: Option<MessageStats>,
}

/// One consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consumer {
    /// Virtual host of the queue.
    pub vhost: String,
    /// The queue.
    pub queue: String,
    /// Its tag.
    pub tag: String,
    /// Connection it belongs to.
    pub connection: Option<String>,
    /// Channel it belongs to.
    pub channel: Option<String>,
    /// Whether it acks.
    pub ack_required: Option<bool>,
    /// Whether it is the only one allowed.
    pub exclusive: Option<bool>,
    /// Whether it is served; `false` for the waiting ones of a single active consumer.
    pub active: Option<bool>,
    /// Its prefetch.
    pub prefetch: Option<u64>,
    /// Its `x-priority`; `None` is 0 to the broker. Federation links have -1.
    pub priority: Option<i64>,
}

impl<'de> Deserialize<'de> for Channel {
    fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
        let row = Map::deserialize(d)?;
        let text = |key| field::string_in(&row, key).filter(|t| t != "undefined");
        let number = |key: &str| row.get(key).and_then(Value::as_u64);
        let boolean = |key: &str| row.get(key).and_then(Value::as_bool);
        let stats = row.get("message_stats").map(MessageStats::deserialize);
        Ok(Self {
            name: text("name").ok_or_else(|| serde::de::Error::missing_field("name"))?,
            connection: nested(&row, "connection_details", "name"),
            user: text("user"),
            vhost: text("vhost"),
            consumers: number("consumer_count"),
            confirms: boolean("confirm"),
            transactional: boolean("transactional"),
            prefetch: number("prefetch_count"),
            global_prefetch: number("global_prefetch_count"),
            unacked: number("messages_unacknowledged"),
            unconfirmed: number("messages_unconfirmed"),
            message_stats: stats.transpose().map_err(serde::de::Error::custom)?,
        })
    }
}

impl<'de> Deserialize<'de> for Consumer {
    fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
        let row = Map::deserialize(d)?;
        let boolean = |key: &str| row.get(key).and_then(Value::as_bool);
        let missing = serde::de::Error::missing_field;
        Ok(Self {
            vhost: nested(&row, "queue", "vhost").ok_or_else(|| missing("queue.vhost"))?,
            queue: nested(&row, "queue", "name").ok_or_else(|| missing("queue.name"))?,
            tag: field::string_in(&row, "consumer_tag").ok_or_else(|| missing("consumer_tag"))?,
            connection: nested(&row, "channel_details", "connection_name"),
            channel: nested(&row, "channel_details", "name"),
            ack_required: boolean("ack_required"),
            exclusive: boolean("exclusive"),
            active: boolean("active"),
            prefetch: row.get("prefetch_count").and_then(Value::as_u64),
            priority: row.get("arguments").and_then(|a| a.get("x-priority")).and_then(Value::as_i64),
        })
    }
}

impl Client {
    /// Lists channels with statistics, new ones up to 4.5 s late. Tag: `monitoring` for all. Changes nothing.
    /// Refused or empty where statistics are off: check [`super::Overview::statistics_enabled`].
    pub async fn channels(&self) -> Result<Vec<Channel>> {
        self.list("channels", &["api", "channels"]).await
    }

    /// Lists consumers of all vhosts, new ones up to 4.5 s late. Tag: `monitoring` for all. Changes nothing.
    pub async fn consumers(&self) -> Result<Vec<Consumer>> {
        self.list("consumers", &["api", "consumers"]).await
    }

    /// Lists consumers of one vhost. Tag: `management` with access to it. Changes nothing.
    pub async fn consumers_in(&self, vhost: &str) -> Result<Vec<Consumer>> {
        self.list(&format!("consumers in vhost {vhost}"), &["api", "consumers", vhost]).await
    }
}

fn nested(row: &Map<String, Value>, object: &str, key: &str) -> Option<String> {
    row.get(object)?.get(key)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_channel_parses() {
        let row: Channel = serde_json::from_str(
            r#"{"acks_uncommitted":0,"confirm":true,"connection_details":{"name":"a -> b","peer_host":"a"},
            "consumer_count":1,"global_prefetch_count":0,"message_stats":{"publish":4,
            "publish_details":{"rate":0.8}},"messages_unacknowledged":3,"messages_unconfirmed":0,
            "name":"a -> b (1)","prefetch_count":20,"transactional":false,"user":"shop","vhost":"v"}"#,
        )
        .unwrap();
        assert_eq!(row.connection.as_deref(), Some("a -> b"));
        assert_eq!((row.consumers, row.prefetch), (Some(1), Some(20)));
        assert_eq!(row.message_stats.unwrap().rate("publish"), Some(0.8));
    }

    #[test]
    fn a_fresh_channel_is_unknown() {
        let row: Channel = serde_json::from_str(r#"{"name":"a -> b (1)","connection_details":[]}"#).unwrap();
        assert_eq!((row.consumers, row.message_stats.is_none()), (None, true));
    }

    #[test]
    fn a_consumer_parses() {
        let row: Consumer = serde_json::from_str(
            r#"{"ack_required":true,"active":true,"activity_status":"up","arguments":{"x-priority":-1},
            "channel_details":{"connection_name":"a -> b","name":"a -> b (1)","number":1},
            "consumer_tag":"ctag1","exclusive":false,"prefetch_count":1000,"queue":{"name":"q","vhost":"v"}}"#,
        )
        .unwrap();
        assert_eq!((row.queue.as_str(), row.priority, row.prefetch), ("q", Some(-1), Some(1000)));
    }
}
