//! The gate's numbers, each with the reason for its default.

use serde::{Deserialize, Serialize};

/// The most windows the recent score looks at, whatever the spec says: they are stored, a letter each.
const MOST_RECENT: u64 = 20_000;

/// How much evidence the gate wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Valid windows before a pass; 24 (2 min) lets slow periodic work such as compaction show.
    pub minimum_windows: u32,
    /// Seconds of measuring before a pass, from the spec.
    pub minimum_duration_seconds: u64,
    /// The pass score: 20 is one in `1 / alpha` with alpha 5 %.
    pub pass_score: u32,
    /// The fail score. It restarts, so its error rate comes from simulation: at a million an equal green
    /// fails in under 5 % of two-day runs, all rules together, and a wholly bad one within 26 windows.
    pub fail_threshold: u32,
    /// How far back the recent score looks.
    pub recent_seconds: u64,
    /// The length of a window: 5 s, or longer where the highest percentile needs more messages.
    pub window_seconds: u64,
    /// Above this share of invalid windows there is no verdict at all.
    pub invalid_max_percent: u32,
    /// Rule A's rho: the share of windows beyond the promise, in percent, that a pass must rule out.
    pub bad_windows_percent: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            minimum_windows: 24,
            minimum_duration_seconds: 0,
            pass_score: 20,
            fail_threshold: 1_000_000,
            recent_seconds: 3600,
            window_seconds: 5,
            invalid_max_percent: 10,
            bad_windows_percent: 10,
        }
    }
}

impl Settings {
    /// Says how many windows the recent score looks at.
    pub fn recent_windows(&self) -> usize {
        let windows = self.recent_seconds / self.window_seconds.max(1);
        usize::try_from(windows.clamp(1, MOST_RECENT)).unwrap_or(1)
    }

    /// Says how many seconds so many windows last.
    pub fn seconds(&self, windows: u32) -> u64 {
        u64::from(windows).saturating_mul(self.window_seconds)
    }

    /// Rule A's rho as a share, kept between 1 % and 20 % so that five times rho is still a share.
    pub fn rho(&self) -> f64 {
        f64::from(self.bad_windows_percent.clamp(1, 20)) / 100.0
    }
}
