//! What the probe's thread and its handle share, behind one lock that is never held across a wait.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::store::Store;
use crate::warmup::Phase;

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Connecting to all sides for the first time.
    Connecting,
    /// Traffic flows; its windows are discarded.
    WarmingUp,
    /// Windows count. `settled` is false if the warm-up ended at its cap.
    Measuring {
        /// Whether the medians had settled.
        settled: bool,
    },
    /// No traffic, on request.
    Paused,
    /// Over: stopped, or a load test at its end.
    Finished,
    /// It could not start, or its thread died.
    Failed(String),
}

/// Which part of its life the thread is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stage {
    Connecting,
    Running,
    Finished,
    Failed(String),
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub stage: Stage,
    pub paused: bool,
    pub store: Store,
}

impl Shared {
    pub fn state(&self) -> State {
        match (&self.stage, self.paused, self.store.phase()) {
            (Stage::Connecting, ..) => State::Connecting,
            (Stage::Failed(why), ..) => State::Failed(why.clone()),
            (Stage::Finished, ..) => State::Finished,
            (Stage::Running, true, _) => State::Paused,
            (Stage::Running, false, Phase::Warming) => State::WarmingUp,
            (Stage::Running, false, Phase::Over { settled }) => State::Measuring { settled },
        }
    }
}

pub(crate) fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
