//! When each message is due: pure arithmetic, the same for both sides, kept when we are behind.
//!
//! `t_i = ceil(i / (rate * Q)) * Q`, as nanoseconds since the run's epoch. The quantum `Q` is part of the
//! plan: the intended time is the tick itself.

use std::time::Duration;

/// One million: a rate is counted in messages per thousand seconds, a quantum in nanoseconds.
const SCALE: u128 = 1_000 * 1_000_000_000;

/// Messages per second and side, exact to a thousandth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u64);

impl Rate {
    /// This many messages per second; at least one.
    pub fn per_second(messages: u32) -> Self {
        Self(u64::from(messages.max(1)) * 1_000)
    }

    /// This many messages per 1000 seconds; at least one. For a tenth of a slow blue.
    pub fn per_kilosecond(messages: u32) -> Self {
        Self(u64::from(messages.max(1)))
    }

    /// Messages per 1000 seconds.
    pub fn in_kilosecond(self) -> u64 {
        self.0
    }
}

/// The plan of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    rate: Rate,
    quantum: u64,
    window: u64,
}

impl Schedule {
    /// A plan with this rate, tick and window; the window is rounded up to whole ticks.
    pub fn new(rate: Rate, quantum: Duration, window: Duration) -> Self {
        let quantum = nanos(quantum).max(1);
        let window = nanos(window).max(1).div_ceil(quantum) * quantum;
        Self { rate, quantum, window }
    }

    /// When message `index` is due.
    pub fn offset(&self, index: u64) -> u64 {
        let ticks = (u128::from(index) * SCALE).div_ceil(self.per_tick());
        narrow(ticks).saturating_mul(self.quantum)
    }

    /// How many messages are due at this offset, the first (due at 0) included.
    pub fn due(&self, offset: u64) -> u64 {
        let ticks = u128::from(offset / self.quantum);
        narrow(ticks * self.per_tick() / SCALE).saturating_add(1)
    }

    /// The first message due at or after this offset.
    pub fn first_from(&self, offset: u64) -> u64 {
        match offset.div_ceil(self.quantum) {
            0 => 0,
            ticks => self.due((ticks - 1) * self.quantum),
        }
    }

    /// The window in which a message is due.
    pub fn window_of(&self, index: u64) -> u64 {
        self.offset(index) / self.window
    }

    /// The messages of a window: first, and one past the last.
    pub fn slots(&self, window: u64) -> (u64, u64) {
        (self.first_from(self.starts(window)), self.first_from(self.starts(window.saturating_add(1))))
    }

    /// Offset at which a window starts.
    pub fn starts(&self, window: u64) -> u64 {
        window.saturating_mul(self.window)
    }

    /// Length of a window in nanoseconds.
    pub fn window(&self) -> u64 {
        self.window
    }

    fn per_tick(&self) -> u128 {
        u128::from(self.rate.0) * u128::from(self.quantum)
    }
}

/// A run of centuries would be needed to leave 64 bits.
fn narrow(wide: u128) -> u64 {
    u64::try_from(wide).unwrap_or(u64::MAX)
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn plan(rate: u32, quantum_ms: u64, window_s: u64) -> Schedule {
        let window = Duration::from_secs(window_s);
        Schedule::new(Rate::per_second(rate), Duration::from_millis(quantum_ms), window)
    }

    #[test]
    fn five_thousand_a_second_come_five_to_a_tick() {
        let plan = plan(5_000, 1, 5);
        let offsets: Vec<u64> = (0..12).map(|i| plan.offset(i) / MS).collect();
        assert_eq!(offsets, [0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3]);
        assert_eq!(plan.due(0), 1);
        assert_eq!(plan.due(MS), 6);
        assert_eq!(plan.due(2 * MS - 1), 6);
    }

    #[test]
    fn a_window_holds_rate_times_seconds() {
        let plan = plan(500, 5, 5);
        for window in 1..100 {
            let (first, end) = plan.slots(window);
            assert_eq!(end - first, 2_500);
        }
    }

    #[test]
    fn behind_by_a_minute_the_plan_is_kept() {
        let plan = plan(1_000, 1, 5);
        let before = plan.due(10_000 * MS);
        let after = plan.due(70_000 * MS);
        assert_eq!(after - before, 60_000);
        assert_eq!(plan.offset(before), 10_001 * MS);
    }

    #[test]
    fn the_default_window_is_rounded_to_whole_ticks() {
        let plan = Schedule::new(Rate::per_second(7), Duration::from_millis(5), Duration::from_micros(11));
        assert_eq!(plan.window(), 5 * MS);
    }

    proptest! {
        #[test]
        fn due_and_offset_are_inverse(
            rate in 1u32..20_000_000, quantum in 1u64..50, index in 0u64..10_000_000_000,
        ) {
            let plan = Schedule::new(
                Rate::per_kilosecond(rate), Duration::from_millis(quantum), Duration::from_secs(5),
            );
            let at = plan.offset(index);
            prop_assert!(plan.offset(index + 1) >= at);
            prop_assert!(plan.due(at) > index);
            prop_assert!(at == 0 || plan.due(at - 1) <= index);
            prop_assert!(plan.first_from(at) <= index);
            prop_assert!(plan.offset(plan.first_from(at)) == at);
        }

        #[test]
        fn every_message_lies_in_the_slots_of_its_window(
            rate in 1u32..20_000_000, index in 0u64..1_000_000_000,
        ) {
            let plan = Schedule::new(
                Rate::per_kilosecond(rate), Duration::from_millis(1), Duration::from_secs(5),
            );
            let (first, end) = plan.slots(plan.window_of(index));
            prop_assert!(first <= index && index < end);
        }

        #[test]
        fn arrivals_never_exceed_the_rate_by_more_than_a_tick(
            rate in 1u32..20_000_000, from in 0u64..1_000_000_000_000, ms in 1u64..100_000,
        ) {
            let plan = Schedule::new(
                Rate::per_kilosecond(rate), Duration::from_millis(1), Duration::from_secs(5),
            );
            let came = u128::from(plan.due(from + ms * MS) - plan.due(from));
            let allowed = u128::from(rate) * u128::from(ms + 1) / 1_000_000 + 1;
            prop_assert!(came <= allowed);
        }
    }
}
