//! The run's clock: CLOCK_MONOTONIC as nanoseconds since the run's epoch, for both ends in one process.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds in a second.
pub(crate) const SECOND: u64 = 1_000_000_000;

/// Reads time as an offset from a run's epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    epoch: u64,
}

impl Clock {
    /// A clock whose epoch comes this many nanoseconds from now.
    pub fn starting_in(lead: u64) -> Self {
        Self { epoch: monotonic() + lead }
    }

    /// Nanoseconds since the epoch; `None` before it.
    pub fn now(self) -> Option<u64> {
        monotonic().checked_sub(self.epoch)
    }

    /// The absolute CLOCK_MONOTONIC time of an offset, for an absolute timer.
    pub fn absolute(self, offset: u64) -> Timespec {
        let at = self.epoch.saturating_add(offset);
        let seconds = i64::try_from(at / SECOND).unwrap_or(i64::MAX);
        let nanos = i64::try_from(at % SECOND).unwrap_or_default();
        Timespec { tv_sec: seconds, tv_nsec: nanos }
    }
}

fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    let nanos = u64::try_from(now.tv_nsec).unwrap_or_default();
    seconds * SECOND + nanos
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn before_the_epoch_there_is_no_offset() {
        assert_eq!(Clock::starting_in(60 * SECOND).now(), None);
        assert!(Clock::starting_in(0).now().is_some());
    }

    #[test]
    fn absolute_times_lie_an_offset_apart() {
        let clock = Clock { epoch: 5 * SECOND - 1 };
        assert_eq!(clock.absolute(1), Timespec { tv_sec: 5, tv_nsec: 0 });
    }
}
