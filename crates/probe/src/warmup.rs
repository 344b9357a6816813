//! When the start-up is over: long enough, and five medians in a row alike. Pure.

use std::collections::VecDeque;
use std::time::Duration;

use crate::config::WarmupConfig;
use crate::latency::Latency;

/// Windows whose medians must be alike.
const ALIKE: usize = 5;

/// Where the warm-up stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Warming,
    /// Over; `settled` is false if the cap ended it.
    Over {
        settled: bool,
    },
}

#[derive(Debug)]
pub(crate) struct Warmup {
    config: WarmupConfig,
    /// Medians of the latest valid windows, one per side.
    medians: VecDeque<Vec<Option<Latency>>>,
    phase: Phase,
}

impl Warmup {
    pub fn new(config: WarmupConfig) -> Self {
        let phase = if config.cap.is_zero() { Phase::Over { settled: false } } else { Phase::Warming };
        Self { config, medians: VecDeque::new(), phase }
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Takes a window that ended at this time since the start; an invalid one proves nothing (`None`).
    pub fn observe(&mut self, ended: Duration, medians: Option<Vec<Option<Latency>>>) {
        if self.phase != Phase::Warming {
            return;
        }
        if let Some(medians) = medians {
            self.medians.push_back(medians);
        }
        while self.medians.len() > ALIKE {
            self.medians.pop_front();
        }
        if ended >= self.config.min && self.is_settled() {
            self.phase = Phase::Over { settled: true };
        } else if ended >= self.config.cap {
            self.phase = Phase::Over { settled: false };
        }
    }

    fn is_settled(&self) -> bool {
        let sides = self.medians.front().map_or(0, Vec::len);
        self.medians.len() == ALIKE && (0..sides).all(|side| self.is_alike(side))
    }

    fn is_alike(&self, side: usize) -> bool {
        let medians =
            self.medians.iter().map(|medians| medians.get(side).copied()?.and_then(Latency::micros));
        let Some(mut medians) = medians.collect::<Option<Vec<u64>>>() else { return false };
        medians.sort_unstable();
        let Some(&middle) = medians.get(ALIKE / 2) else { return false };
        let slack = middle * u64::from(self.config.tolerance) / 100;
        medians.iter().all(|median| median.abs_diff(middle) <= slack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(medians: impl IntoIterator<Item = Option<Latency>>) -> Vec<Phase> {
        let mut warmup = Warmup::new(WarmupConfig::default());
        medians
            .into_iter()
            .zip(1..)
            .map(|(median, window)| {
                warmup.observe(Duration::from_secs(5 * window), Some(vec![median, median]));
                warmup.phase()
            })
            .collect()
    }

    fn ended(phases: &[Phase]) -> Option<(usize, Phase)> {
        phases.iter().position(|phase| *phase != Phase::Warming).map(|at| (5 * (at + 1), phases[at]))
    }

    #[test]
    fn steady_from_the_start_it_still_takes_the_minimum() {
        let phases = run([Some(Latency::Micros(1_000)); 30]);
        assert_eq!(ended(&phases), Some((30, Phase::Over { settled: true })));
    }

    #[test]
    fn five_alike_windows_end_it_after_a_slow_start() {
        let falling = [9_000, 5_000, 3_000, 2_000, 1_500, 1_300, 1_200, 1_100, 1_050];
        let medians = falling.into_iter().chain(std::iter::repeat_n(1_000, 20));
        let phases = run(medians.map(|micros| Some(Latency::Micros(micros))));
        assert_eq!(ended(&phases), Some((60, Phase::Over { settled: true })));
    }

    #[test]
    fn what_never_settles_ends_at_the_cap_and_says_so() {
        let swinging = (0..40).map(|window| Some(Latency::Micros(1_000 + 300 * (window % 2))));
        assert_eq!(ended(&run(swinging)), Some((120, Phase::Over { settled: false })));
        assert_eq!(ended(&run([Some(Latency::Infinite); 40])), Some((120, Phase::Over { settled: false })));
        assert_eq!(ended(&run([None; 40])), Some((120, Phase::Over { settled: false })));
    }

    #[test]
    fn invalid_windows_prove_nothing() {
        let mut warmup = Warmup::new(WarmupConfig::default());
        for window in 1..20 {
            warmup.observe(Duration::from_secs(5 * window), None);
        }
        assert_eq!(warmup.phase(), Phase::Warming);
    }

    #[test]
    fn a_cap_of_zero_means_no_warm_up() {
        let config = WarmupConfig { min: Duration::ZERO, cap: Duration::ZERO, tolerance: 10 };
        assert_eq!(Warmup::new(config).phase(), Phase::Over { settled: false });
    }
}
