//! What a run came to, for people and as JSON.

use crate::ledger::Report;
use api::RabbitMQMigrationStatus;
use serde::Serialize;

/// The figures of one run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Messages that brokers confirmed.
    pub published: u64,
    /// Confirmed and never delivered.
    pub lost: u64,
    /// Delivered twice without explanation.
    pub duplicated_unexplained: u64,
    /// Delivered twice; the publisher had it unconfirmed, or the consumer unacked, at a close.
    pub duplicated_explained: u64,
    /// First arrivals out of order.
    pub reordered: u64,
    /// Longest time between two confirms of a publisher.
    pub publish_gap_millis: u64,
    /// Longest time between two deliveries of a consumer.
    pub delivery_gap_millis: u64,
    /// From the first write to a Service to the last close.
    pub patch_to_last_close_millis: Option<i64>,
    /// Messages that the operator carried.
    pub carried: i64,
    /// How long each phase took.
    pub phases: Vec<PhaseTime>,
    /// Where each volume is.
    pub zones: Vec<Zone>,
    /// Latencies that the gate judged.
    pub percentiles: Vec<Percentiles>,
    /// Why the run proves nothing, where it does not.
    pub void: Vec<String>,
}

/// A phase and its time.
#[derive(Debug, Serialize)]
pub struct PhaseTime {
    /// The phase.
    pub phase: String,
    /// Milliseconds; absent while it runs.
    pub millis: Option<i64>,
}

/// A replica and its zone.
#[derive(Debug, Serialize)]
pub struct Zone {
    /// The replica.
    pub replica: String,
    /// Its zone.
    pub zone: String,
    /// Its volume.
    pub volume: String,
}

/// Latencies of one side in milliseconds.
#[derive(Debug, Serialize)]
pub struct Percentiles {
    /// `Blue` or `Green`.
    pub side: String,
    /// The median.
    pub p50: Option<f64>,
    /// 95 %.
    pub p95: Option<f64>,
    /// 99 %.
    pub p99: Option<f64>,
}

impl Summary {
    /// Puts the operator's status and the clients' ledgers together.
    pub fn of(status: &RabbitMQMigrationStatus, report: &Report) -> Self {
        let switching = status.switching.clone().unwrap_or_default();
        Self {
            published: report.published,
            lost: report.lost,
            duplicated_unexplained: report.duplicated_unexplained,
            duplicated_explained: report.duplicated_explained,
            reordered: report.reordered,
            publish_gap_millis: report.publish_gap_millis,
            delivery_gap_millis: report.delivery_gap_millis,
            patch_to_last_close_millis: switching.patch_to_last_close_millis,
            carried: switching.carried,
            phases: status
                .history
                .iter()
                .map(|p| PhaseTime { phase: p.phase.to_string(), millis: p.millis })
                .collect(),
            zones: status.placement.iter().flat_map(|p| &p.replicas).map(zone).collect(),
            percentiles: status.gate.iter().flat_map(|g| &g.latencies).map(percentiles).collect(),
            void: report.void.iter().cloned().collect(),
        }
    }

    /// A table for people, within 100 columns.
    pub fn print(&self) {
        println!("\nPhases");
        for phase in &self.phases {
            let time =
                phase.millis.map_or_else(|| "-".to_owned(), |m| format!("{}.{} s", m / 1000, m % 1000 / 100));
            println!("  {:<20} {time:>10}", phase.phase);
        }
        println!("\nVolumes");
        for zone in &self.zones {
            println!("  replica {:<3} {:<24} {}", zone.replica, zone.volume, zone.zone);
        }
        println!("\nLatency from the intended send time (ms)        p50       p95       p99");
        for side in &self.percentiles {
            let shown = |v: Option<f64>| v.map_or_else(|| "?".to_owned(), |v| format!("{v:.1}"));
            println!(
                "  {:<40} {:>9} {:>9} {:>9}",
                side.side,
                shown(side.p50),
                shown(side.p95),
                shown(side.p99)
            );
        }
        println!("\nMessages");
        let rows = [
            ("published and confirmed", self.published),
            ("lost", self.lost),
            ("duplicated, explained by a close", self.duplicated_explained),
            ("duplicated, unexplained", self.duplicated_unexplained),
            ("reordered", self.reordered),
            ("longest publish gap (ms)", self.publish_gap_millis),
            ("longest delivery gap (ms)", self.delivery_gap_millis),
        ];
        for (name, value) in rows {
            println!("  {name:<40} {value:>9}");
        }
        let last = self.patch_to_last_close_millis.map_or_else(|| "?".to_owned(), |m| m.to_string());
        println!("  {:<40} {last:>9}", "first write to last close (ms)");
        println!("  {:<40} {:>9}", "carried by the operator", self.carried);
        for reason in &self.void {
            println!("  VOID: {reason}");
        }
    }
}

fn zone(replica: &api::status::ReplicaPlacement) -> Zone {
    Zone { replica: replica.pod.clone(), zone: replica.zone.clone(), volume: replica.volume.clone() }
}

fn percentiles(latency: &api::status::SideLatency) -> Percentiles {
    // Microseconds below 2^53 are exact as a float.
    #[expect(clippy::cast_precision_loss, reason = "latencies are far below 2^53 microseconds")]
    let millis = |micros: i64| (micros >= 0).then_some(micros as f64 / 1000.0);
    Percentiles {
        side: latency.side.clone(),
        p50: millis(latency.p50_micros),
        p95: millis(latency.p95_micros),
        p99: millis(latency.p99_micros),
    }
}
