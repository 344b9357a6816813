//! What the probe knows so far: pairs windows of both sides, judges, merges and keeps them. Pure.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::config::Config;
use crate::latency::{Recorder, Samples};
use crate::schedule::Schedule;
use crate::summary::{Counters, Fault, Merged, PairedWindow, Throttling, Validity, WindowSummary};
use crate::warmup::{Phase, Warmup};
use crate::window::{Record, Recorders};

/// Half-paired windows kept; a side that is further behind than this is not paired any more.
const PENDING: usize = 32;

/// All valid windows of a side.
#[derive(Debug)]
struct Totals {
    windows: u64,
    invalid_windows: u64,
    counters: Counters,
    recorders: Recorders,
}

#[derive(Debug)]
pub(crate) struct Store {
    labels: Vec<String>,
    schedule: Schedule,
    samples: Samples,
    sendlag_bound: Duration,
    keep: usize,
    warmup: Warmup,
    pending: BTreeMap<u64, Vec<Option<Record>>>,
    throttling: BTreeMap<u64, Throttling>,
    windows: VecDeque<PairedWindow>,
    totals: Vec<Totals>,
    last: Option<u64>,
}

impl Store {
    pub fn new(config: &Config, schedule: Schedule, empty: &Recorder) -> Self {
        let totals = || Totals {
            windows: 0,
            invalid_windows: 0,
            counters: Counters::default(),
            recorders: Recorders::from(empty),
        };
        Self {
            labels: config.sides.iter().map(|side| side.label.clone()).collect(),
            schedule,
            samples: config.samples(),
            sendlag_bound: config.sendlag_bound,
            keep: config.keep_windows,
            warmup: Warmup::new(config.warmup),
            pending: BTreeMap::new(),
            throttling: BTreeMap::new(),
            windows: VecDeque::new(),
            totals: config.sides.iter().map(|_| totals()).collect(),
            last: None,
        }
    }

    /// Notes whether the kernel throttled us in a window, at the window's end.
    pub fn throttled(&mut self, window: u64, throttling: Throttling) {
        self.throttling.insert(window, throttling);
        while self.throttling.len() > 2 * PENDING {
            self.throttling.pop_first();
        }
        self.pair_complete();
    }

    /// Takes a closed window of one side.
    pub fn submit(&mut self, side: usize, record: Record) {
        let sides = self.labels.len();
        let pending = self.pending.entry(record.index).or_insert_with(|| (0..sides).map(|_| None).collect());
        if let Some(place) = pending.get_mut(side) {
            *place = Some(record);
        }
        self.pair_complete();
        while self.pending.len() > PENDING {
            self.pending.pop_first();
        }
    }

    /// Pairs, in order, what all sides have closed and the kernel's count is known for.
    fn pair_complete(&mut self) {
        while let Some((index, throttling)) = self.next_complete() {
            let records = self.pending.remove(&index).unwrap_or_default();
            self.pair(index, throttling, &records.into_iter().flatten().collect::<Vec<_>>());
        }
    }

    fn next_complete(&self) -> Option<(u64, Throttling)> {
        let complete = self.pending.iter().filter(|(_, sides)| sides.iter().all(Option::is_some));
        let known = complete.filter_map(|(index, _)| Some((*index, *self.throttling.get(index)?)));
        known.min_by_key(|(index, _)| *index)
    }

    /// Windows that not all sides have closed.
    #[cfg(test)]
    pub fn half_paired(&self) -> usize {
        self.pending.len()
    }

    /// Whether a window, or a later one, was paired.
    pub fn has_seen(&self, window: u64) -> bool {
        self.last.is_some_and(|last| last >= window)
    }

    /// Where the warm-up stands.
    pub fn phase(&self) -> Phase {
        self.warmup.phase()
    }

    /// Measured windows from this one on.
    pub fn windows_since(&self, index: u64) -> Vec<PairedWindow> {
        let from = self.windows.partition_point(|window| window.index < index);
        self.windows.range(from..).cloned().collect()
    }

    /// The last measured window.
    pub fn latest(&self) -> Option<PairedWindow> {
        self.windows.back().cloned()
    }

    /// All valid windows of a side together.
    pub fn merged(&self, label: &str) -> Option<Merged> {
        let side = self.labels.iter().position(|other| other == label)?;
        let Totals { windows, invalid_windows, counters, recorders } = self.totals.get(side)?;
        Some(Merged {
            side: label.to_owned(),
            windows: *windows,
            invalid_windows: *invalid_windows,
            counters: *counters,
            e2e: recorders.e2e.quantiles(self.samples),
            e2e_actual: recorders.e2e_actual.quantiles(self.samples),
            confirm: recorders.confirm.quantiles(self.samples),
            sendlag: recorders.sendlag.quantiles(self.samples),
        })
    }

    fn pair(&mut self, index: u64, throttling: Throttling, records: &[Record]) {
        self.last = Some(index);
        let sides = self.labels.iter().zip(records);
        let paired = PairedWindow {
            index,
            sides: sides.map(|(label, record)| self.summarize(label, record, throttling)).collect(),
        };
        if self.warmup.phase() == Phase::Warming {
            let medians = paired.sides.iter().map(|side| side.e2e.p50).collect();
            let ended = Duration::from_nanos(self.schedule.starts(index + 1));
            self.warmup.observe(ended, paired.is_valid().then_some(medians));
            tracing::debug!(window = index, phase = ?self.warmup.phase(), "warm-up window");
            return;
        }
        for (totals, record) in self.totals.iter_mut().zip(records) {
            if paired.is_valid() {
                totals.windows += 1;
                totals.counters.add(&record.counters);
                totals.recorders.merge(&record.recorders);
            } else {
                totals.invalid_windows += 1;
            }
        }
        self.windows.push_back(paired);
        while self.windows.len() > self.keep {
            self.windows.pop_front();
        }
    }

    fn summarize(&self, label: &str, record: &Record, throttling: Throttling) -> WindowSummary {
        let sendlag = record.recorders.sendlag.quantiles(Samples::Any).p99;
        let sendlag_p99 = sendlag.and_then(crate::latency::Latency::micros);
        WindowSummary {
            index: record.index,
            started_at_offset: Duration::from_nanos(self.schedule.starts(record.index)),
            side: label.to_owned(),
            counters: record.counters,
            e2e: record.recorders.e2e.quantiles(self.samples),
            e2e_actual: record.recorders.e2e_actual.quantiles(self.samples),
            confirm: record.recorders.confirm.quantiles(self.samples),
            sendlag_p99,
            throttling,
            validity: self.judge(record, sendlag_p99, throttling),
        }
    }

    fn judge(&self, record: &Record, sendlag_p99: Option<u64>, throttling: Throttling) -> Validity {
        let bound = self.sendlag_bound.as_micros();
        if record.paused {
            Validity::Invalid(Fault::Paused)
        } else if record.counters.own_reconnects > 0 {
            Validity::Invalid(Fault::OwnReconnect)
        } else if sendlag_p99.is_some_and(|micros| u128::from(micros) > bound) {
            Validity::Invalid(Fault::SendLag)
        } else if matches!(throttling, Throttling::Periods(_)) {
            Validity::Invalid(Fault::Throttled)
        } else {
            Validity::Valid
        }
    }
}
