//! Lines that say what is going on and for how long, and waiting for conditions.

use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// How often a long step says that it is still going.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How often a condition is looked at: short beside the seconds that components take to start.
const LOOK: Duration = Duration::from_millis(100);

/// One step: announced when it starts, reported when it ends.
#[derive(Debug)]
pub struct Step {
    what: String,
    started: Instant,
    spoke: Instant,
}

impl Step {
    /// Announces a step.
    pub fn start(what: impl Into<String>) -> Self {
        let what = what.into();
        let now = Instant::now();
        eprintln!("lab: {what} ...");
        Self { what, started: now, spoke: now }
    }

    /// Says that the step still runs, at most once per heartbeat.
    pub fn beat(&mut self) {
        if self.spoke.elapsed() >= HEARTBEAT {
            self.spoke = Instant::now();
            eprintln!("lab: {} ... {} s", self.what, self.started.elapsed().as_secs());
        }
    }

    /// Reports the end of the step and how long it took.
    pub fn done(self) {
        eprintln!("lab: {}: {:.1} s", self.what, self.started.elapsed().as_secs_f32());
    }
}

/// What one look at a condition shows.
#[derive(Debug)]
pub enum Look<T> {
    /// It holds.
    Ready(T),
    /// Not yet, for the reason given.
    NotYet(String),
}

/// Looks at a condition until it holds or the time is up; an error of a look ends the wait at once.
pub fn wait_until<T>(attempt: &str, limit: Duration, mut look: impl FnMut() -> Result<Look<T>>) -> Result<T> {
    let started = Instant::now();
    loop {
        match look()? {
            Look::Ready(value) => return Ok(value),
            Look::NotYet(last) if started.elapsed() >= limit => {
                let attempt = attempt.to_owned();
                return Err(Error::Timeout { attempt, seconds: limit.as_secs(), last });
            }
            Look::NotYet(_) => std::thread::sleep(LOOK),
        }
    }
}
