//! Queues: totals (fast for classic, a 5 s tick for quorum) and statistics (5-8 s late).

use std::collections::BTreeSet;

use reqwest::Method;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::http::Client;
use super::json as field;
use crate::error::{Cause, Error, Result};

/// Queues per page: the broker's own maximum.
const PAGE_SIZE: usize = 500;

/// How often a paged listing starts again because queues came or went between two pages. 5: at ten pages a
/// second a listing that never holds still is reported rather than trusted.
const RESTARTS: usize = 5;

/// One queue with its totals. A total that the broker did not send is `None`. A quorum queue's totals come
/// from a table that a 5 s tick refreshes, and **default to 0 after a leader change**: never a proof.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Queue {
    /// Virtual host.
    pub vhost: String,
    /// Its name.
    pub name: String,
    /// `classic`, `quorum`, `stream`; 3.x names mirrored classic queues `classic` too.
    #[serde(default, rename = "type", deserialize_with = "field::text")]
    pub queue_type: Option<String>,
    /// Survives a broker restart.
    #[serde(default, deserialize_with = "field::boolean")]
    pub durable: Option<bool>,
    /// Deleted with its last consumer.
    #[serde(default, deserialize_with = "field::boolean")]
    pub auto_delete: Option<bool>,
    /// Belongs to one connection; quorum queues say nothing.
    #[serde(default, deserialize_with = "field::boolean")]
    pub exclusive: Option<bool>,
    /// Arguments it was declared with.
    #[serde(default, deserialize_with = "field::object")]
    pub arguments: Map<String, Value>,
    /// Node of a classic queue.
    #[serde(default, deserialize_with = "field::text")]
    pub node: Option<String>,
    /// Leader of a quorum queue or stream.
    #[serde(default, deserialize_with = "field::text")]
    pub leader: Option<String>,
    /// Members of a quorum queue or stream.
    #[serde(default, deserialize_with = "field::names")]
    pub members: Option<Vec<String>>,
    /// Members that are up.
    #[serde(default, deserialize_with = "field::names")]
    pub online: Option<Vec<String>>,
    /// `running`, `down`, `minority`, `stopped`, ...
    #[serde(default, deserialize_with = "field::text")]
    pub state: Option<String>,
    /// Policy in force (only with statistics on some versions).
    #[serde(default, deserialize_with = "field::text")]
    pub policy: Option<String>,
    /// Messages that can be delivered.
    #[serde(default, deserialize_with = "field::number")]
    pub messages_ready: Option<u64>,
    /// Messages delivered and not acked.
    #[serde(default, rename = "messages_unacknowledged", deserialize_with = "field::number")]
    pub messages_unacked: Option<u64>,
    /// All messages; more than ready + unacked: dead letters in flight.
    #[serde(default, deserialize_with = "field::number")]
    pub messages: Option<u64>,
    /// Consumers; absent in the totals form.
    #[serde(default, deserialize_with = "field::number")]
    pub consumers: Option<u64>,
}

impl Queue {
    /// Where the queue is served: leader of a quorum queue or stream, node of a classic one.
    pub fn located_at(&self) -> Option<&str> {
        self.leader.as_deref().or(self.node.as_deref())
    }
}

/// One queue with its statistics.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct QueueStats {
    /// The queue, depths as the statistics have them.
    #[serde(flatten)]
    pub queue: Queue,
    /// Counters and rates.
    #[serde(default)]
    pub message_stats: MessageStats,
    /// Bytes of all messages.
    #[serde(default, deserialize_with = "field::number")]
    pub message_bytes: Option<u64>,
    /// Dead letters in flight (at-least-once dead lettering).
    #[serde(default, deserialize_with = "field::number")]
    pub messages_dlx: Option<u64>,
    /// Name of the connection or channel that owns an exclusive queue.
    #[serde(default, rename = "owner_pid_details", deserialize_with = "owner")]
    pub owner: Option<String>,
}

/// Counters and rates of a queue, exchange or channel. Absent means unknown or never happened.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MessageStats {
    /// Counters by the broker's name: `publish`, `ack`, `deliver_get`, `get`, `get_no_ack`, `get_empty`,
    /// `redeliver`, `confirm`, `publish_in`, `publish_out`, `drop_unroutable`, `return_unroutable`, ...
    pub counts: std::collections::BTreeMap<String, u64>,
    /// Rates per second by the same names.
    pub rates: std::collections::BTreeMap<String, f64>,
}

impl MessageStats {
    /// A counter.
    pub fn count(&self, name: &str) -> Option<u64> {
        self.counts.get(name).copied()
    }

    /// A rate per second.
    pub fn rate(&self, name: &str) -> Option<f64> {
        self.rates.get(name).copied()
    }
}

impl<'de> Deserialize<'de> for MessageStats {
    fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
        let mut stats = Self::default();
        for (key, value) in field::object(d)? {
            if let Some(name) = key.strip_suffix("_details") {
                if let Some(rate) = value.get("rate").and_then(Value::as_f64) {
                    stats.rates.insert(name.to_owned(), rate);
                }
            } else if let Some(count) = value.as_u64() {
                stats.counts.insert(key, count);
            }
        }
        Ok(stats)
    }
}

#[derive(Deserialize)]
struct Page<T> {
    items: Vec<T>,
    #[serde(rename = "page_count")]
    pages: usize,
    #[serde(rename = "total_count")]
    total: u64,
}

impl Client {
    /// Lists all queues with totals, without statistics, in pages. Tag: `monitoring` for all vhosts, else
    /// those we may see. Changes nothing. Starts again when the number of queues changes between pages.
    pub async fn queues_totals(&self) -> Result<Vec<Queue>> {
        let rows: Vec<Queue> =
            self.pages("queue totals", "disable_stats=true&enable_queue_totals=true").await?;
        Ok(rows)
    }

    /// Lists all queues with statistics and rates, 5-8 s late. Tag: `monitoring`. Changes nothing.
    pub async fn queues_stats(&self) -> Result<Vec<QueueStats>> {
        self.pages("queue statistics", "disable_stats=false").await
    }

    async fn pages<T: for<'de> Deserialize<'de> + Named>(&self, object: &str, query: &str) -> Result<Vec<T>> {
        for _ in 0..RESTARTS {
            if let Some(rows) = self.pages_once(object, query).await? {
                return Ok(rows);
            }
        }
        let cause = Cause::Malformed("the number of queues changed during each of the readings".into());
        Err(Error::Read { object: object.to_owned(), cause })
    }

    /// All pages, or `None` if the number of queues changed between two of them.
    async fn pages_once<T>(&self, object: &str, query: &str) -> Result<Option<Vec<T>>>
    where
        T: for<'de> Deserialize<'de> + Named,
    {
        let mut rows = Vec::new();
        let mut total = None;
        for number in 1.. {
            let query = format!("{query}&page={number}&page_size={PAGE_SIZE}");
            let page: Page<T> = match self.list_query(object, &["api", "queues"], &query).await {
                Ok(page) => page,
                // Past the last page the broker answers 400: queues went away.
                Err(error) if number > 1 && error.kind() == crate::Kind::Refused => return Ok(None),
                Err(error) => return Err(error),
            };
            if *total.get_or_insert(page.total) != page.total {
                return Ok(None);
            }
            rows.extend(page.items);
            if number >= page.pages {
                break;
            }
        }
        let distinct: BTreeSet<_> = rows.iter().map(Named::key).collect();
        Ok((distinct.len() == rows.len()).then_some(rows))
    }

    /// Declares a queue with the body of an export (`durable`, `auto_delete`, `arguments`).
    /// Tag: `management` and configure permission. Idempotent; 400 if it exists with other arguments.
    pub async fn put_queue(&self, vhost: &str, name: &str, body: &impl Serialize) -> Result<()> {
        let object = format!("queue {name} in vhost {vhost}");
        self.change(&object, Method::PUT, &["api", "queues", vhost, name], body).await
    }

    /// Deletes a queue only if it is empty and has no consumer; one that is not there is fine. The broker
    /// refuses (400) otherwise. Quorum queues refuse the condition itself (400). Tag: `management` and
    /// configure permission.
    pub async fn delete_unused_queue(&self, vhost: &str, name: &str) -> Result<()> {
        let object = format!("queue {name} in vhost {vhost}");
        self.remove(&object, &["api", "queues", vhost, name], "if-empty=true&if-unused=true").await
    }

    /// Deletes a queue **with its messages**; one that is not there is fine. Tag: `management` and configure
    /// permission.
    pub async fn delete_queue(&self, vhost: &str, name: &str) -> Result<()> {
        let object = format!("queue {name} in vhost {vhost}");
        self.remove(&object, &["api", "queues", vhost, name], "").await
    }
}

/// What makes two rows the same queue.
trait Named {
    fn key(&self) -> (&str, &str);
}

impl Named for Queue {
    fn key(&self) -> (&str, &str) {
        (&self.vhost, &self.name)
    }
}

impl Named for QueueStats {
    fn key(&self) -> (&str, &str) {
        self.queue.key()
    }
}

fn owner<'de, D: Deserializer<'de>>(d: D) -> std::result::Result<Option<String>, D::Error> {
    Ok(field::string_in(&field::object(d)?, "name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_a_broker_repeats_is_read_once() {
        let page: Page<Queue> = crate::management::http::parse(
            br#"{"filtered_count":1,"item_count":1,"items":[{"arguments":{"x-queue-type":"quorum"},
            "auto_delete":false,"durable":true,"exclusive":null,"leader":"rabbit@g-2","members":["rabbit@g-2"],
            "messages":0,"messages_ready":0,"messages_unacknowledged":0,"name":"emails","node":"rabbit@g-2",
            "online":["rabbit@g-0","rabbit@g-2"],"online":["rabbit@g-2"],"state":"running","type":"quorum",
            "vhost":"/"}],"page":1,"page_count":1,"page_size":500,"total_count":1}"#,
        )
        .unwrap();
        let [queue] = page.items.as_slice() else { panic!("one queue") };
        assert_eq!(queue.online.as_deref(), Some(["rabbit@g-2".to_owned()].as_slice()));
        assert_eq!(queue.messages, Some(0));
    }

    #[test]
    fn recorded_totals_parse() {
        let page: Page<Queue> = serde_json::from_str(
            r#"{"filtered_count":2,"item_count":2,"items":[{"arguments":{},"auto_delete":false,"durable":true,
            "exclusive":false,"messages":0,"messages_ready":0,"messages_unacknowledged":0,"name":"c1",
            "node":"rabbit@b-0","state":"running","type":"classic","vhost":"v1"},
            {"arguments":{"x-queue-type":"quorum"},"auto_delete":false,"durable":true,"exclusive":null,
            "leader":"rabbit@b-1","members":["rabbit@b-0","rabbit@b-1"],"name":"q1","online":["rabbit@b-1"],
            "state":"running","type":"quorum","vhost":"v1"}],"page":1,"page_count":1,"page_size":500,
            "total_count":2}"#,
        )
        .unwrap();
        let [classic, quorum] = page.items.as_slice() else { panic!("two queues") };
        assert_eq!(classic.messages_ready, Some(0));
        assert_eq!(quorum.messages_ready, None, "absent is unknown, not empty");
        assert_eq!(quorum.located_at(), Some("rabbit@b-1"));
        assert_eq!((quorum.exclusive, quorum.consumers), (None, None));
        assert_eq!(quorum.arguments["x-queue-type"], "quorum");
    }

    #[test]
    fn recorded_statistics_parse() {
        let row: QueueStats = serde_json::from_str(
            r#"{"name":"q","vhost":"v","type":"classic","consumers":2,"messages":7,"messages_ready":5,
            "messages_unacknowledged":2,"owner_pid_details":{"name":"10.0.0.7:1 -> 10.0.0.2:5672"},
            "message_stats":{"ack":10,"ack_details":{"rate":2.5},"publish":17,"publish_details":{"rate":0.0}}}"#,
        )
        .unwrap();
        assert_eq!(row.message_stats.rate("ack"), Some(2.5));
        assert_eq!(row.message_stats.count("publish"), Some(17));
        assert_eq!(row.message_stats.count("deliver_get"), None);
        assert_eq!(row.queue.consumers, Some(2));
        assert_eq!(row.owner.as_deref(), Some("10.0.0.7:1 -> 10.0.0.2:5672"));
        let idle: QueueStats =
            serde_json::from_str(r#"{"name":"q","vhost":"v","message_stats":[]}"#).unwrap();
        assert_eq!(idle.message_stats, MessageStats::default());
    }
}
