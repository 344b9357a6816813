//! Runs a probe on its own thread: connects all sides, paces them from one timer, removes what it made.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::watch;
use tokio::task::{JoinHandle, LocalSet};

use crate::clock::Clock;
use crate::config::Config;
use crate::connect::{Leftover, Refused, connect_all};
use crate::latency::Recorder;
use crate::ledger::{Ledger, Terms};
use crate::pacer::Pacer;
use crate::schedule::{Schedule, nanos};
use crate::shared::{Shared, Stage, lock};
use crate::side::{Seat, Side, Tick};
use crate::throttle::Gauge;
use crate::transport::Transport;

/// From all being connected to the first message.
const LEAD: u64 = 50_000_000;
/// Between looks while nothing is due.
const IDLE: u64 = 100_000_000;
/// After the loss deadline of the last window, for its books to be closed.
const GRACE: Duration = Duration::from_secs(1);

/// What the handle wants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Control {
    pub paused: bool,
    pub stop: bool,
}

/// A run, as its thread sees it.
pub(crate) struct Engine<T> {
    pub config: Config,
    pub transports: Vec<T>,
    pub schedule: Schedule,
    /// The plan ends before this message; `None`: it does not.
    pub end: Option<u64>,
    pub empty: Recorder,
    pub run: u64,
    pub shared: Arc<Mutex<Shared>>,
    pub control: watch::Receiver<Control>,
}

/// A side that runs.
struct Running {
    label: String,
    ticks: watch::Sender<Tick>,
    task: JoinHandle<Result<(), rabbit::Error>>,
}

impl<T: Transport> Engine<T> {
    /// Runs to the end on this thread.
    pub fn run(self) -> Vec<Leftover> {
        let shared = self.shared.clone();
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                lock(&shared).stage = Stage::Failed(format!("start the probe's runtime: {error}"));
                return Vec::new();
            }
        };
        let left = LocalSet::new().block_on(&runtime, self.drive());
        let mut shared = lock(&shared);
        if !matches!(shared.stage, Stage::Failed(_)) {
            shared.stage = Stage::Finished;
        }
        drop(shared);
        // A name lookup that hangs may not hold up the end.
        runtime.shutdown_timeout(Duration::from_secs(1));
        left
    }

    async fn drive(mut self) -> Vec<Leftover> {
        let links = match connect_all(&self.config, &self.transports, &self.control).await {
            Ok(links) => links,
            Err(Refused { why, left }) => {
                if !self.control.borrow().stop {
                    tracing::warn!(%why, "probe cannot start");
                    lock(&self.shared).stage = Stage::Failed(why);
                }
                return left;
            }
        };
        let clock = Clock::starting_in(LEAD);
        let sides = self.seat(links, clock);
        lock(&self.shared).stage = Stage::Running;
        if let Err(error) = self.pace(&sides, clock).await {
            lock(&self.shared).stage = Stage::Failed(format!("pace: {error}"));
        }
        finish(sides).await
    }

    fn seat(&self, links: Vec<T::Link>, clock: Clock) -> Vec<Running> {
        let sides = self.config.sides.iter().zip(&self.transports).zip(links).zip(0u8..);
        sides
            .map(|(((side, transport), link), position)| {
                let (sender, ticks) = watch::channel(Tick::default());
                let queues = u64::from(self.config.queues);
                let terms = Terms {
                    schedule: self.schedule,
                    run: self.run,
                    side: position,
                    queues,
                    loss_deadline: nanos(self.config.loss_deadline),
                };
                let seat = Seat {
                    label: side.label.clone(),
                    position: usize::from(position),
                    transport: transport.clone(),
                    clock,
                    ledger: Ledger::new(terms, self.empty.clone()),
                    ticks,
                    shared: self.shared.clone(),
                    size: self.config.size,
                    queues,
                    in_flight_cap: self.config.in_flight_cap(),
                };
                let task = tokio::task::spawn_local(Side::new(seat, link).run());
                Running { label: side.label.clone(), ticks: sender, task }
            })
            .collect()
    }

    /// Tells the sides what is due, until told to stop or at the plan's end.
    async fn pace(&mut self, sides: &[Running], clock: Clock) -> std::io::Result<()> {
        let pacer = Pacer::new()?;
        let mut gauge = Gauge::new();
        let mut tick = Tick::default();
        loop {
            let control = *self.control.borrow_and_update();
            if control.stop {
                return Ok(());
            }
            let now = clock.now();
            let due = now.map_or(0, |now| self.schedule.due(now)).min(self.end.unwrap_or(u64::MAX));
            if tick.paused && !control.paused {
                tick.from = due;
            }
            if control.paused != tick.paused {
                lock(&self.shared).paused = control.paused;
            }
            if !tick.paused || !control.paused {
                tick.due = due;
                tick.paused = control.paused;
                tell(sides, tick);
            }
            self.gauge(&mut gauge, now);
            if self.is_over(due, now) {
                return Ok(());
            }
            let quiet = tick.paused || self.end == Some(due);
            let next = if quiet { now.unwrap_or_default() + IDLE } else { self.schedule.offset(due) };
            let next = next.min(self.schedule.starts(gauge.window + 1));
            tokio::select! {
                waited = pacer.wait_until(clock.absolute(next)) => waited?,
                changed = self.control.changed() => if changed.is_err() { return Ok(()) },
            }
        }
    }

    /// Whether the plan is over and its last window closed, or given up.
    fn is_over(&self, due: u64, now: Option<u64>) -> bool {
        if self.end != Some(due) {
            return false;
        }
        let last = self.schedule.window_of(due.saturating_sub(1));
        let given_up = self.schedule.starts(last + 1) + nanos(self.config.loss_deadline) + nanos(GRACE);
        now.is_some_and(|now| now > given_up) || lock(&self.shared).store.has_seen(last)
    }

    /// At the end of each window notes whether we were throttled in it.
    fn gauge(&self, gauge: &mut Gauge, now: Option<u64>) {
        let window = now.unwrap_or_default() / self.schedule.window();
        if window <= gauge.window {
            return;
        }
        let throttling = gauge.read();
        let mut shared = lock(&self.shared);
        // After a stall of our own all the windows it covered are told the same.
        let first = gauge.window.max(window.saturating_sub(32));
        (first..window).for_each(|window| shared.store.throttled(window, throttling));
        gauge.window = window;
    }
}

/// Wakes the sides in turn, so that neither is always second.
fn tell(sides: &[Running], tick: Tick) {
    let first = usize::try_from(tick.due).unwrap_or_default() % sides.len().max(1);
    for side in sides.iter().cycle().skip(first).take(sides.len()) {
        side.ticks.send_if_modified(|last| std::mem::replace(last, tick) != tick);
    }
}

async fn finish(sides: Vec<Running>) -> Vec<Leftover> {
    let ends = sides.into_iter().map(|Running { label, ticks, task }| async move {
        ticks.send_modify(|tick| tick.stop = true);
        let error = match task.await {
            Ok(Ok(())) => return None,
            Ok(Err(error)) => error.report(),
            Err(error) => format!("side ended early: {error}"),
        };
        Some(Leftover { side: label, error })
    });
    join_all(ends).await.into_iter().flatten().collect()
}
