//! An open-loop schedule: messages are due at fixed times, however slow the broker is. Pure: time comes in.

use std::time::{Duration, Instant};

/// When the next message is due.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    interval: Duration,
    next: Instant,
}

impl Schedule {
    /// So many messages a second (above 0), the first one now.
    pub fn new(per_second: f64, now: Instant) -> Self {
        Self { interval: Duration::from_secs_f64(1.0 / per_second), next: now }
    }

    /// When the next message is due; in the past when the broker could not keep up.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// One message was sent.
    pub fn advance(&mut self) {
        self.next += self.interval;
    }

    /// Nothing is owed for the time until now: publishing was stopped.
    pub fn forgive(&mut self, now: Instant) {
        self.next = self.next.max(now);
    }

    /// How many messages are due and not sent.
    pub fn behind(&self, now: Instant) -> u64 {
        let late = now.saturating_duration_since(self.next).as_nanos();
        u64::try_from(late / self.interval.as_nanos().max(1)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owes_what_it_could_not_send() {
        let start = Instant::now();
        let mut schedule = Schedule::new(100.0, start);
        assert_eq!(schedule.behind(start + Duration::from_secs(1)), 100);
        (0..40).for_each(|_| schedule.advance());
        assert_eq!(schedule.behind(start + Duration::from_secs(1)), 60);
        schedule.forgive(start + Duration::from_secs(1));
        assert_eq!((schedule.behind(start), schedule.behind(start + Duration::from_secs(1))), (0, 0));
    }
}
