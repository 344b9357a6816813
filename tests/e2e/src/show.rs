//! Shows a migration's progress as a person wants to see it: one line whenever something changed.

use crate::migration::describe;
use api::RabbitMQMigrationStatus;
use std::time::{Duration, Instant};

/// How often a phase that only counts is shown.
const EVERY: Duration = Duration::from_secs(5);

/// Prints a line per change.
pub struct Show {
    begun: Instant,
    last: String,
    printed: Instant,
    traffic: Option<String>,
}

impl Default for Show {
    fn default() -> Self {
        let now = Instant::now();
        Self { begun: now, last: String::new(), printed: now, traffic: None }
    }
}

impl Show {
    /// A line of one's own.
    pub fn say(&self, line: &str) {
        let seconds = self.begun.elapsed().as_secs();
        println!("[{:>3}:{:02}] {line}", seconds / 60, seconds % 60);
    }

    /// What the clients see, shown beside the status.
    pub fn traffic(&mut self, text: String) {
        self.traffic = Some(text);
    }

    /// Shows the status where it says something new.
    pub fn status(&mut self, status: &RabbitMQMigrationStatus) {
        let phase = status.phase.unwrap_or_default();
        let reason = status.wait.as_ref().map(|w| w.reason.clone()).unwrap_or_default();
        let stage = status.switching.as_ref().map(|s| s.stage.clone()).unwrap_or_default();
        let key = format!("{phase} {reason} {stage}");
        if key == self.last && self.printed.elapsed() < EVERY {
            return;
        }
        self.last = key;
        self.printed = Instant::now();
        let mut line = describe(status);
        if phase.is_switch() && !stage.is_empty() {
            line = format!(
                "{phase} {stage}: {}",
                status.wait.as_ref().map(|w| w.detail.as_str()).unwrap_or_default()
            );
        }
        if let Some(traffic) = &self.traffic {
            line = format!("{line}  ({traffic})");
        }
        self.say(&line);
    }
}
