//! What the probe is told, from the plan.

use crate::broker_link::AMQP;
use api::spec::{LoadTest, ProbeQueueType};
use decide::gate;
use decide::gate_plan::{highest_percentile, window_seconds};
use decide::plan::Plan;
use decide::side::{Pair, Side};
use probe::{Config, Percentile, QueueType, Rate, SideConfig, WarmupConfig, WindowLength};
use rabbit::Credentials;
use std::time::Duration;

/// A warm-up that does not settle is given up after so many times its minimum.
const WARM_UP_CAP: u32 = 4;
/// The load test's warm-up: connections and the first segment files, no more.
const LOAD_WARM_UP: Duration = Duration::from_secs(5);
/// Percent by which medians may differ in a settled warm-up.
const TOLERANCE: u32 = 10;

/// The A/B run: the same traffic on all sides at the same time.
pub fn both(plan: &Plan, sides: &[Side], addresses: &Pair<Vec<String>>, creds: &Credentials) -> Config {
    let sides = sides.iter().map(|side| side_config(plan, *side, addresses, creds)).collect();
    let least = seconds(plan.gate.warm_up_seconds);
    let warmup = WarmupConfig { min: least, cap: least.saturating_mul(WARM_UP_CAP), tolerance: TOLERANCE };
    Config {
        warmup,
        window: window(plan),
        sendlag_bound: Duration::from_millis(u64::try_from(plan.gate.max_send_lag_millis).unwrap_or(1)),
        size: usize::try_from(plan.gate.load.size_bytes).unwrap_or(64),
        ..Config::new(sides, rate(plan.gate.load.rate_per_second))
    }
}

/// The load test of green alone, and how long it lasts.
pub fn load_test(
    plan: &Plan,
    asked: &LoadTest,
    addresses: &Pair<Vec<String>>,
    creds: &Credentials,
) -> (Config, Duration) {
    let side = side_config(plan, Side::Green, addresses, creds);
    let config = Config {
        warmup: WarmupConfig { min: LOAD_WARM_UP, cap: LOAD_WARM_UP, tolerance: TOLERANCE },
        size: usize::try_from(plan.gate.load.size_bytes).unwrap_or(64),
        // Its windows judge nobody: a late generator must not hide what was lost.
        sendlag_bound: Duration::from_secs(1),
        ..Config::new(vec![side], rate(asked.rate_per_second))
    };
    (config, seconds(asked.duration_seconds))
}

fn side_config(plan: &Plan, side: Side, addresses: &Pair<Vec<String>>, creds: &Credentials) -> SideConfig {
    SideConfig {
        label: side.to_string(),
        addrs: addresses.of(side).iter().map(|ip| (ip.clone(), AMQP)).collect(),
        vhost: plan.names.probe_vhost(),
        credentials: creds.clone(),
        tls: None,
        queue_type: match plan.gate.load.queue_type {
            ProbeQueueType::Quorum => QueueType::Quorum,
            ProbeQueueType::Classic => QueueType::Classic,
        },
    }
}

/// The probe's own rule where it comes to the same length; else the plan's, for tests. The gate itself refuses
/// quantiles of too few messages.
fn window(plan: &Plan) -> WindowLength {
    let length = Duration::from_secs(window_seconds(plan));
    let by_rule = WindowLength::For(match highest_percentile(plan) {
        gate::Percentile::P50 | gate::Percentile::P95 => Percentile::P95,
        gate::Percentile::P99 => Percentile::P99,
        gate::Percentile::P999 => Percentile::P999,
    });
    let config = Config { window: by_rule, ..Config::new(Vec::new(), rate(plan.gate.load.rate_per_second)) };
    if config.window_length() == length { by_rule } else { WindowLength::TestOnly(length) }
}

fn rate(per_second: i32) -> Rate {
    Rate::per_second(u32::try_from(per_second).unwrap_or(1))
}

fn seconds(seconds: i32) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}
