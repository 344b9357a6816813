//! The longest time in which nothing happened. Pure: time comes in as milliseconds.

/// Measures the time between events of one kind.
#[derive(Debug, Clone, Copy, Default)]
pub struct Gap {
    last: Option<u64>,
    longest: u64,
}

impl Gap {
    /// An event happened.
    pub fn mark(&mut self, now: u64) {
        self.longest = self.longest_until(now);
        self.last = Some(now);
    }

    /// The time until the next event is nobody's fault: nothing is being sent.
    pub fn pause(&mut self) {
        self.last = None;
    }

    /// Forgets the longest gap; one that is still open counts from now on.
    pub fn reset(&mut self, now: u64) {
        *self = Self { last: self.last.map(|_| now), longest: 0 };
    }

    /// The longest gap between two events.
    pub fn longest(&self) -> u64 {
        self.longest
    }

    /// The longest gap, where the one that is still open counts too.
    pub fn longest_until(&self, now: u64) -> u64 {
        self.longest.max(self.age(now).unwrap_or(0))
    }

    /// The time since the last event, if there was one.
    pub fn age(&self, now: u64) -> Option<u64> {
        self.last.map(|last| now.saturating_sub(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_longest() {
        let mut gap = Gap::default();
        for now in [100, 105, 250, 260] {
            gap.mark(now);
        }
        assert_eq!((gap.longest(), gap.longest_until(300), gap.longest_until(600)), (145, 145, 340));
        gap.reset(300);
        gap.mark(310);
        assert_eq!(gap.longest(), 10);
        gap.pause();
        gap.mark(900);
        assert_eq!(gap.longest(), 10);
    }
}
