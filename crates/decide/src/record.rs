//! The SwitchRecord: what nobody could see afterwards. Complete and stored before the first fence.

use crate::effect::QueueRef;
use crate::side::Side;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What nobody could see after the switch began. Its format never changes within a protocol version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SwitchRecord {
    /// Version of this format.
    pub protocol: i32,
    /// When it was taken, RFC 3339.
    pub taken_at: String,
    /// `Forward` or `Back`.
    pub heading: String,
    /// The side that traffic leaves.
    pub from: Option<Side>,
    /// Limits of every user, as they were before any fence, on either side.
    pub limits: Vec<OriginalLimit>,
    /// Selectors of every moved Service, as they were before the first switch.
    pub services: Vec<OriginalService>,
    /// Who was connected.
    pub clients: Vec<Client>,
    /// The queues that had consumers, with what was in flight.
    pub queues: Vec<ConsumedQueue>,
    /// Messages that `to` had dropped as unroutable before the switch.
    pub unroutable_before: Option<u64>,
    /// The commands by which a person without the operator reaches a stable side.
    pub manual_exit: Vec<String>,
}

/// A user's limit before the fence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OriginalLimit {
    /// Where.
    pub side: Side,
    /// Whose.
    pub user: String,
    /// `None`: no limit.
    pub max_connections: Option<i64>,
}

/// A Service before the switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OriginalService {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The selector that leads to blue.
    pub blue_selector: BTreeMap<String, String>,
    /// The selector that leads to green.
    pub green_selector: BTreeMap<String, String>,
    /// Who managed the selector.
    pub manager: Option<String>,
}

impl OriginalService {
    /// The selector that leads to a side.
    pub const fn selector(&self, side: Side) -> &BTreeMap<String, String> {
        match side {
            Side::Blue => &self.blue_selector,
            Side::Green => &self.green_selector,
        }
    }
}

/// A client that was connected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Client {
    /// The connection's name on the broker.
    pub connection: String,
    /// The user.
    pub user: String,
    /// What the client calls itself.
    pub client: Option<String>,
    /// What it did.
    pub role: crate::roles::Role,
}

/// A queue that had consumers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConsumedQueue {
    /// Which.
    pub queue: QueueRef,
    /// Deliveries that were not acked.
    pub unacked: Option<u64>,
    /// Acks per second.
    pub acks_per_second: Option<u64>,
}

impl SwitchRecord {
    /// How long to wait after the queues are empty until what is unacked has been acked, in milliseconds:
    /// five times unacked / ack rate, at least 200, at most 10,000.
    pub fn settle_millis(&self) -> u64 {
        self.queues
            .iter()
            .map(|q| match (q.unacked, q.acks_per_second) {
                (Some(unacked), Some(rate)) if rate > 0 => unacked.saturating_mul(5000) / rate,
                (Some(0), _) => 0,
                _ => 1000,
            })
            .max()
            .unwrap_or(0)
            .clamp(200, 10_000)
    }

    /// The original limit of a user; outer `None` where the record does not know the user.
    pub fn limit(&self, side: Side, user: &str) -> Option<Option<i64>> {
        self.limits.iter().find(|l| l.side == side && l.user == user).map(|l| l.max_connections)
    }
}
