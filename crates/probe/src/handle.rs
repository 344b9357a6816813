//! Starting, watching and ending a run from outside its thread.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::config::{Config, ConfigError, WarmupConfig};
use crate::connect::Leftover;
use crate::engine::{Control, Engine};
use crate::latency::Recorder;
use crate::schedule::{Schedule, nanos};
use crate::shared::{Shared, Stage, State, lock};
use crate::store::Store;
use crate::summary::{Merged, PairedWindow};
use crate::transport::{Lapin, Transport};

/// Where runs begin.
#[derive(Debug, Clone, Copy)]
pub struct Probe;

/// Why a run did not begin.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration cannot run.
    #[error("check the probe's configuration")]
    Config(#[from] ConfigError),
    /// Histograms could not be made.
    #[error("make the probe's histograms: {0}")]
    Histogram(hdrhistogram::CreationError),
    /// The thread could not be made.
    #[error("start the probe's thread")]
    Thread(#[source] std::io::Error),
}

impl Probe {
    /// Starts an A/B run (or of one side), without end.
    pub fn start(config: Config) -> Result<Handle, StartError> {
        let transports = config.sides.iter().map(|side| Lapin::new(&config, side)).collect();
        spawn(config, transports, None)
    }

    /// Starts a load test: the sides of the configuration (as a rule one) at its rate for a bounded time
    /// after a warm-up of exactly `config.warmup.min`.
    pub fn load_test(config: Config, duration: Duration) -> Result<LoadTest, StartError> {
        let transports = config.sides.iter().map(|side| Lapin::new(&config, side)).collect();
        spawn_load(config, transports, duration)
    }
}

/// As [`Probe::load_test`], over any transport.
pub(crate) fn spawn_load<T: Transport + Send>(
    mut config: Config,
    transports: Vec<T>,
    duration: Duration,
) -> Result<LoadTest, StartError> {
    let warmup = config.warmup.min;
    config.warmup = WarmupConfig { cap: warmup, ..config.warmup };
    let label = config.sides.first().map(|side| side.label.clone()).unwrap_or_default();
    Ok(LoadTest { label, handle: spawn(config, transports, Some(warmup + duration))? })
}

/// Starts a run over any transport; it ends by itself after `length`, rounded up to whole windows.
pub(crate) fn spawn<T: Transport + Send>(
    config: Config,
    transports: Vec<T>,
    length: Option<Duration>,
) -> Result<Handle, StartError> {
    config.check()?;
    let empty = Recorder::new().map_err(StartError::Histogram)?;
    let schedule = Schedule::new(config.rate, config.tick(), config.window_length());
    let store = Store::new(&config, schedule, &empty);
    let shared = Arc::new(Mutex::new(Shared { stage: Stage::Connecting, paused: false, store }));
    let (control, listener) = watch::channel(Control::default());
    let end = length
        .map(|length| schedule.first_from(nanos(length).div_ceil(schedule.window()) * schedule.window()));
    let engine = Engine {
        run: config.run_id.unwrap_or_else(chance),
        config,
        transports,
        schedule,
        end,
        empty,
        shared: shared.clone(),
        control: listener,
    };
    let thread = thread::Builder::new()
        .name("probe".to_owned())
        .spawn(move || engine.run())
        .map_err(StartError::Thread)?;
    Ok(Handle { shared, control, thread: Some(thread) })
}

/// A number nobody else has, without a random number generator of our own.
fn chance() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A run. Dropping it stops the run without waiting; [`Handle::stop`] waits and says what is left.
pub struct Handle {
    shared: Arc<Mutex<Shared>>,
    control: watch::Sender<Control>,
    thread: Option<JoinHandle<Vec<Leftover>>>,
}

impl Handle {
    /// Where the run stands.
    pub fn state(&self) -> State {
        let ended = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        match lock(&self.shared).state() {
            state @ (State::Finished | State::Failed(_)) => state,
            _ if ended => State::Failed("the probe's thread ended unexpectedly".to_owned()),
            state => state,
        }
    }

    /// Measured windows with at least this index, oldest first. To continue, ask from the last index + 1.
    pub fn windows_since(&self, index: u64) -> Vec<PairedWindow> {
        lock(&self.shared).store.windows_since(index)
    }

    /// The last measured window.
    pub fn latest(&self) -> Option<PairedWindow> {
        lock(&self.shared).store.latest()
    }

    /// All valid windows of a side together; `None` if there is no such side.
    pub fn merged(&self, label: &str) -> Option<Merged> {
        lock(&self.shared).store.merged(label)
    }

    /// Stops the traffic on all sides and stays connected. The windows it touches are invalid.
    pub fn pause(&self) {
        self.control.send_modify(|control| control.paused = true);
    }

    /// Takes up the plan where time has got to.
    pub fn resume(&self) {
        self.control.send_modify(|control| control.paused = false);
    }

    /// Asks the run to end, without waiting: [`Handle::state`] will say `Finished`.
    pub fn request_stop(&self) {
        self.control.send_modify(|control| control.stop = true);
    }

    /// Ends the run, removes its queues and says where that failed. Blocks the thread for some ten seconds
    /// at worst; from async code, call it on a blocking thread.
    pub fn stop(mut self) -> Vec<Leftover> {
        self.request_stop();
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("state", &self.state()).finish_non_exhaustive()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.request_stop();
    }
}

/// A load test under way. Dropping it ends it.
#[derive(Debug)]
pub struct LoadTest {
    label: String,
    handle: Handle,
}

/// What a load test found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadSummary {
    /// The measured side.
    pub measured: Merged,
    /// Whether it ran to its end; else this is what came until the stop.
    pub complete: bool,
}

impl LoadTest {
    /// Where it stands.
    pub fn state(&self) -> State {
        self.handle.state()
    }

    /// Its windows, as of a run.
    pub fn windows_since(&self, index: u64) -> Vec<PairedWindow> {
        self.handle.windows_since(index)
    }

    /// The result once it is over; `None` before that, and if it failed.
    pub fn result(&self) -> Option<LoadSummary> {
        (self.state() == State::Finished).then(|| self.summary(true)).flatten()
    }

    /// Ends it early, with what came so far, and what is left on the broker.
    pub fn stop(self) -> (Option<LoadSummary>, Vec<Leftover>) {
        let summary = self.summary(self.state() == State::Finished);
        (summary, self.handle.stop())
    }

    fn summary(&self, complete: bool) -> Option<LoadSummary> {
        Some(LoadSummary { measured: self.handle.merged(&self.label)?, complete })
    }
}
