//! The probe's windows: as many as time has passed, as good as the world's settings say.

use super::{GateMood, Millis, Toy};
use crate::gate::{Evidence, PairedWindow, Quantile, Quantiles, SideWindow};
use crate::gate_plan::{gate_settings, rules};
use crate::plan::Plan;
use crate::side::Side;
use crate::world::ProbeView;

/// What the probe stored: it outlives the operator's process.
#[derive(Clone, Debug, Default)]
pub struct Store {
    /// The evidence so far.
    pub evidence: Evidence,
    /// Windows so far.
    pub windows: u64,
    /// Milliseconds measured so far.
    pub measured: Millis,
    /// Until when windows were counted.
    counted_until: Millis,
}

/// Messages of one window: enough for a P99.
const PLANNED: u64 = 300;

impl Toy {
    /// What the probe says.
    pub(crate) fn probe_view(&mut self, plan: &Plan) -> ProbeView {
        let Some(since) = self.process.probe_since else {
            return ProbeView { state: "not running".to_owned(), ..ProbeView::default() };
        };
        self.count_windows(plan, since);
        ProbeView {
            sides: Side::BOTH.to_vec(),
            state: "measuring".to_owned(),
            measured_seconds: u64::try_from(self.evidence.measured / 1000).unwrap_or(0),
            evidence: self.evidence.evidence.clone(),
            newest: None,
            latencies: Vec::new(),
            load_test: None,
        }
    }

    fn count_windows(&mut self, plan: &Plan, since: Millis) {
        let length = Millis::from(plan.gate.window_seconds.max(1)).saturating_mul(1000);
        let from = self.evidence.counted_until.max(since);
        let new = self.now.saturating_sub(from) / length;
        for _ in 0..new {
            let window = self.window();
            self.evidence.windows = self.evidence.windows.saturating_add(1);
            let (rules, settings) = (rules(plan), gate_settings(plan));
            let evidence = std::mem::take(&mut self.evidence.evidence);
            self.evidence.evidence = evidence.push(&window, &rules, &settings);
        }
        let counted = new.saturating_mul(length);
        self.evidence.measured = self.evidence.measured.saturating_add(counted);
        self.evidence.counted_until = from.saturating_add(counted);
    }

    fn window(&mut self) -> PairedWindow {
        let blue = self.chance.between(2000, 3000);
        let green = match self.settings.gate {
            GateMood::Good | GateMood::Silent => self.chance.between(2000, 3000),
            GateMood::Slow => self.chance.between(2_000_000, 3_000_000),
        };
        let invalid = (self.settings.gate == GateMood::Silent).then(|| "the prober stalled".to_owned());
        PairedWindow {
            index: self.evidence.windows,
            invalid,
            blue: Some(side(blue)),
            green: Some(side(green)),
        }
    }
}

fn side(micros: i64) -> SideWindow {
    let at = Quantile::Micros(u64::try_from(micros).unwrap_or(0));
    let quantiles = Quantiles { p50: at, p95: at, p99: at, p999: at };
    SideWindow { planned: PLANNED, end_to_end: quantiles, confirm: quantiles, ..SideWindow::default() }
}
