//! The probe's words in the gate's: windows, latencies, and the load test's result. Pure.

use api::spec::LoadTest;
use decide::gate::{PairedWindow, Quantile, Quantiles, SideWindow};
use decide::side::Side;
use probe::{Handle, Latency, LoadSummary, Merged, Validity, WindowSummary};

/// What a line about a load test that green held begins with.
const HELD: &str = "held";

/// The probe's label of a side.
pub fn label(side: Side) -> String {
    side.to_string()
}

/// A window of the probe as the gate takes it, its number moved by `base`.
pub fn paired(window: &probe::PairedWindow, base: u64) -> PairedWindow {
    let side = |side| window.side(&label(side)).map(side_window);
    let invalid = window.sides.iter().find_map(|summary| match summary.validity {
        Validity::Valid => None,
        Validity::Invalid(fault) => Some(format!("{} of the probe of {}", words(fault), summary.side)),
    });
    PairedWindow {
        index: base.saturating_add(window.index),
        invalid,
        blue: side(Side::Blue),
        green: side(Side::Green),
    }
}

const fn words(fault: probe::Fault) -> &'static str {
    match fault {
        probe::Fault::Paused => "a pause",
        probe::Fault::OwnReconnect => "a reconnect",
        probe::Fault::SendLag => "lateness",
        probe::Fault::Throttled => "throttling",
    }
}

fn side_window(summary: &WindowSummary) -> SideWindow {
    let counters = &summary.counters;
    SideWindow {
        planned: counters.planned,
        lost: counters.lost_confirmed,
        duplicated: counters.duplicate,
        reordered: counters.reordered,
        nacked: counters.nacked,
        returned: counters.returned,
        closed: counters.reconnects.saturating_sub(counters.own_reconnects),
        blocked: counters.blocked,
        end_to_end: quantiles(&summary.e2e),
        confirm: quantiles(&summary.confirm),
    }
}

fn quantiles(quantiles: &probe::Quantiles) -> Quantiles {
    let quantile = |latency: Option<Latency>| match latency {
        Some(Latency::Micros(micros)) => Quantile::Micros(micros),
        Some(Latency::Infinite) => Quantile::Infinite,
        None => Quantile::Unknown,
    };
    Quantiles {
        p50: quantile(quantiles.p50),
        p95: quantile(quantiles.p95),
        p99: quantile(quantiles.p99),
        p999: quantile(quantiles.p999),
    }
}

/// A side's latencies over all valid windows, with what was planned and lost.
pub fn latency(handle: &Handle, side: Side) -> Option<(Side, [Option<u64>; 3], u64, u64)> {
    let Merged { e2e, counters, .. } = handle.merged(&label(side))?;
    let micros = [e2e.p50, e2e.p95, e2e.p99].map(|latency| latency.and_then(Latency::micros));
    Some((side, micros, counters.planned, counters.lost))
}

/// Whether green held the load test: nothing lost or refused, and at most one in a thousand not sent in time.
pub fn load_test(summary: &LoadSummary, asked: Option<&LoadTest>) -> (bool, String) {
    let Merged { counters, e2e, .. } = &summary.measured;
    let late = counters.not_sent.saturating_mul(1000) > counters.planned;
    let failed = counters.lost + counters.nacked + counters.returned;
    let held = summary.complete && counters.planned > 0 && failed == 0 && !late;
    let latency = match e2e.p99 {
        Some(Latency::Micros(micros)) => format!("p99 {}.{} ms", micros / 1000, micros % 1000 / 100),
        Some(Latency::Infinite) => "p99 never came".to_owned(),
        None => "p99 unknown".to_owned(),
    };
    let rate = asked.map_or(0, |asked| asked.rate_per_second);
    let line = format!(
        "{} {rate}/s: {} planned, {} not sent, {} lost, {} refused, {latency}",
        if held { HELD } else { "did not hold" },
        counters.planned,
        counters.not_sent,
        counters.lost,
        counters.nacked + counters.returned,
    );
    (held, line)
}

/// Whether a line that was stored says that green held.
pub fn held(line: &str) -> bool {
    line.starts_with(HELD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe::Counters;

    fn merged(counters: Counters) -> LoadSummary {
        let quantiles =
            probe::Quantiles { p99: Some(Latency::Micros(12_340)), ..probe::Quantiles::default() };
        LoadSummary {
            measured: Merged {
                side: "green".into(),
                windows: 1,
                invalid_windows: 0,
                counters,
                e2e: quantiles,
                e2e_actual: quantiles,
                confirm: quantiles,
                sendlag: quantiles,
            },
            complete: true,
        }
    }

    #[test]
    fn a_load_test_holds_only_without_losses() {
        let asked = LoadTest { rate_per_second: 5000, duration_seconds: 120 };
        let (ok, line) = load_test(&merged(Counters { planned: 9000, ..Counters::default() }), Some(&asked));
        assert!(ok && held(&line));
        assert_eq!(line, "held 5000/s: 9000 planned, 0 not sent, 0 lost, 0 refused, p99 12.3 ms");
        for counters in [
            Counters { planned: 9000, lost: 1, ..Counters::default() },
            Counters { planned: 9000, not_sent: 10, ..Counters::default() },
            Counters::default(),
        ] {
            let (ok, line) = load_test(&merged(counters), Some(&asked));
            assert!(!ok && !held(&line), "{line}");
        }
    }

    #[test]
    fn unknown_quantiles_stay_unknown_and_lost_ones_infinite() {
        let mapped =
            quantiles(&probe::Quantiles { p95: Some(Latency::Infinite), ..probe::Quantiles::default() });
        assert_eq!((mapped.p50, mapped.p95), (Quantile::Unknown, Quantile::Infinite));
    }
}
