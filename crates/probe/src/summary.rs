//! What leaves the probe: one summary per window and side, paired by window. Raw messages never do.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::latency::Quantiles;

/// What was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Counters {
    /// Messages of the schedule that were due.
    pub planned: u64,
    /// Handed to the client.
    pub sent: u64,
    /// Due, but the cap of messages in flight was reached or there was no connection.
    pub not_sent: u64,
    /// Accepted by the broker.
    pub confirmed: u64,
    /// Refused by the broker.
    pub nacked: u64,
    /// Sent back for want of a queue.
    pub returned: u64,
    /// Came, each counted once.
    pub received: u64,
    /// Sent, not refused, and did not come within the loss deadline.
    pub lost: u64,
    /// Of the lost, those the broker had accepted: these it owed us.
    pub lost_confirmed: u64,
    /// Came after their window had closed; counted as lost there.
    pub late: u64,
    /// Came again without the broker's redelivery flag.
    pub duplicate: u64,
    /// Came again with that flag, as after a cut connection.
    pub redelivered: u64,
    /// Came after a later message of the same queue and publisher, not redelivered.
    pub reordered: u64,
    /// Came before it was sent: a clock is wrong. Not in the histograms.
    pub negative: u64,
    /// Not of this run and side.
    pub foreign: u64,
    /// Connections that ended, whoever ended them.
    pub reconnects: u64,
    /// Of these, by our own doing.
    pub own_reconnects: u64,
    /// Times the broker blocked our publisher.
    pub blocked: u64,
}

impl Counters {
    /// Adds another count.
    pub fn add(&mut self, other: &Self) {
        let Self {
            planned,
            sent,
            not_sent,
            confirmed,
            nacked,
            returned,
            received,
            lost,
            lost_confirmed,
            late,
            duplicate,
            redelivered,
            reordered,
            negative,
            foreign,
            reconnects,
            own_reconnects,
            blocked,
        } = other;
        self.planned += planned;
        self.sent += sent;
        self.not_sent += not_sent;
        self.confirmed += confirmed;
        self.nacked += nacked;
        self.returned += returned;
        self.received += received;
        self.lost += lost;
        self.lost_confirmed += lost_confirmed;
        self.late += late;
        self.duplicate += duplicate;
        self.redelivered += redelivered;
        self.reordered += reordered;
        self.negative += negative;
        self.foreign += foreign;
        self.reconnects += reconnects;
        self.own_reconnects += own_reconnects;
        self.blocked += blocked;
    }
}

/// Whether a window may vote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Validity {
    /// It may.
    Valid,
    /// It may not: the probe, not a broker, was at fault.
    Invalid(Fault),
}

/// Why a window may not vote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Fault {
    /// The probe was paused in it.
    Paused,
    /// A connection ended by the probe's own doing.
    OwnReconnect,
    /// The p99 of the send lag was above its bound: the generator was late.
    SendLag,
    /// The container was throttled (`nr_throttled` grew).
    Throttled,
}

impl Validity {
    /// Whether the window may vote.
    pub fn is_valid(self) -> bool {
        self == Self::Valid
    }
}

/// Whether the kernel throttled us in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Throttling {
    /// No `cpu.stat` could be read.
    Unknown,
    /// It did not.
    None,
    /// In this many periods.
    Periods(u64),
}

/// One side in one window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WindowSummary {
    /// Window of the schedule; the same number on both sides is the same time.
    pub index: u64,
    /// Start, as time since the run's epoch.
    pub started_at_offset: Duration,
    /// Label of the side.
    pub side: String,
    /// What was counted.
    pub counters: Counters,
    /// Intended time to delivery: the objective's metric.
    pub e2e: Quantiles,
    /// From the message's bytes being in the socket to delivery; the difference to `e2e` is back-pressure.
    pub e2e_actual: Quantiles,
    /// Intended time to confirm.
    pub confirm: Quantiles,
    /// Intended time to sending, p99 in microseconds; `None` if nothing was sent.
    pub sendlag_p99: Option<u64>,
    /// Throttling of our own container.
    pub throttling: Throttling,
    /// Whether it may vote.
    pub validity: Validity,
}

/// The same window of all sides, in the order of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PairedWindow {
    /// Window of the schedule. Numbers may be missing: a window wholly within a pause is not kept.
    pub index: u64,
    /// One per side.
    pub sides: Vec<WindowSummary>,
}

impl PairedWindow {
    /// A side by its label.
    pub fn side(&self, label: &str) -> Option<&WindowSummary> {
        self.sides.iter().find(|window| window.side == label)
    }

    /// Whether all sides are valid: only then does the window vote.
    pub fn is_valid(&self) -> bool {
        self.sides.iter().all(|window| window.validity.is_valid())
    }
}

/// Everything measured of one side so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Merged {
    /// Label of the side.
    pub side: String,
    /// Valid windows, merged here.
    pub windows: u64,
    /// Windows left out as invalid.
    pub invalid_windows: u64,
    /// Counted in the valid windows.
    pub counters: Counters,
    /// Intended time to delivery.
    pub e2e: Quantiles,
    /// Socket to delivery.
    pub e2e_actual: Quantiles,
    /// Intended time to confirm.
    pub confirm: Quantiles,
    /// Intended time to sending.
    pub sendlag: Quantiles,
}
