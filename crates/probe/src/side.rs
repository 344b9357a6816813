//! Drives one side: publishes what is due, keeps the books, reconnects. Never waits for a publish or a confirm.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::LocalBoxFuture;
use rabbit::amqp::transport::SessionEvent;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};

use crate::clock::Clock;
use crate::ledger::Ledger;
use crate::shared::{Shared, lock};
use crate::transport::{Link, Transport};

/// How often windows are checked for closing. Below any window's length.
const HOUSEKEEPING: Duration = Duration::from_millis(100);
/// Slots handled at once when far behind, so that confirms and deliveries get their turn.
const CHUNK: u64 = 1_024;
/// Pause before the first reconnect; doubled up to the longest.
const SHORTEST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// For one last attempt to remove the queues of a broker that is away at the end.
const LAST_ATTEMPT: Duration = Duration::from_secs(5);

/// What the pacer says; a later value contains all earlier ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tick {
    /// Messages of the plan that are due.
    pub due: u64,
    /// Messages before this one were covered by a pause.
    pub from: u64,
    pub paused: bool,
    pub stop: bool,
}

enum State<T: Transport> {
    Down { until: Instant },
    Opening(LocalBoxFuture<'static, Result<T::Link, rabbit::Error>>),
    Up(T::Link),
}

/// What a side needs to run.
pub(crate) struct Seat<T> {
    pub label: String,
    /// Position in the run.
    pub position: usize,
    pub transport: T,
    pub clock: Clock,
    pub ledger: Ledger,
    pub ticks: watch::Receiver<Tick>,
    pub shared: Arc<Mutex<Shared>>,
    pub size: usize,
    pub queues: u64,
    pub in_flight_cap: usize,
}

pub(crate) struct Side<T: Transport> {
    seat: Seat<T>,
    state: State<T>,
    attempt: usize,
    pause: Duration,
}

impl<T: Transport> Side<T> {
    /// Takes its seat with an open link.
    pub fn new(seat: Seat<T>, link: T::Link) -> Self {
        Self { seat, state: State::Up(link), attempt: 0, pause: SHORTEST_PAUSE }
    }

    /// Runs until told to stop, then removes the queues.
    pub async fn run(mut self) -> Result<(), rabbit::Error> {
        let mut housekeeping = interval(HOUSEKEEPING);
        housekeeping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut events = Vec::new();
        loop {
            tokio::select! {
                tick = self.seat.ticks.changed() => {
                    if tick.is_err() || self.follow() {
                        return self.finish().await;
                    }
                }
                step = step(&mut self.state, &mut events) => self.advance(step, &mut events),
                _ = housekeeping.tick() => self.close_windows(),
            }
        }
    }

    /// Does what the pacer said; whether to stop.
    fn follow(&mut self) -> bool {
        let tick = *self.seat.ticks.borrow_and_update();
        self.seat.ledger.skip_to(tick.from);
        let behind = tick.due.saturating_sub(self.seat.ledger.cursor());
        for _ in 0..behind.min(CHUNK) {
            self.publish_one();
        }
        if behind > CHUNK {
            self.close_windows();
            self.seat.ticks.mark_changed();
        } else if tick.paused {
            self.seat.ledger.pause();
        }
        tick.stop
    }

    fn publish_one(&mut self) {
        let seat = &mut self.seat;
        let undelivered = usize::try_from(seat.ledger.undelivered()).unwrap_or(usize::MAX);
        match (&mut self.state, seat.clock.now()) {
            (State::Up(link), Some(now))
                if link.unconfirmed() < seat.in_flight_cap && undelivered < seat.in_flight_cap =>
            {
                let stamp = seat.ledger.send(now);
                let queue = usize::try_from(stamp.sequence % seat.queues.max(1)).unwrap_or_default();
                link.publish(queue, stamp.sequence, stamp.encode(seat.size));
            }
            _ => seat.ledger.drop_slot(),
        }
        if seat.ledger.is_crowded() {
            self.close_windows();
        }
    }

    fn advance(&mut self, step: Step<T::Link>, events: &mut Vec<SessionEvent>) {
        match step {
            Step::Events => events.drain(..).for_each(|event| self.handle(event)),
            Step::Retry => {
                let (transport, attempt) = (self.seat.transport.clone(), self.attempt);
                self.attempt += 1;
                self.state = State::Opening(Box::pin(async move { transport.open(attempt, false).await }));
            }
            Step::Opened(link) => {
                tracing::info!(side = %self.seat.label, "probe connected again");
                self.pause = SHORTEST_PAUSE;
                self.state = State::Up(link);
            }
            Step::Refused(error) => {
                tracing::warn!(side = %self.seat.label, error = %error.report(), "probe cannot connect");
                self.fall();
            }
        }
    }

    fn handle(&mut self, event: SessionEvent) {
        let (ledger, now) = (&mut self.seat.ledger, self.seat.clock.now().unwrap_or_default());
        match event {
            SessionEvent::Sent(token) => ledger.wire(token, now),
            SessionEvent::Confirmed(token, outcome) => ledger.answer(token, outcome, now),
            SessionEvent::Delivered { queue, body, redelivered } => {
                ledger.receive(queue, &body, redelivered, now);
            }
            SessionEvent::Blocked => {
                tracing::warn!(side = %self.seat.label, "broker blocks the probe");
                ledger.block();
            }
            SessionEvent::Unblocked => {}
            SessionEvent::Closed { cause, own } => {
                tracing::warn!(side = %self.seat.label, own, %cause, "probe connection ended");
                ledger.reconnect(own);
                self.fall();
            }
        }
    }

    fn fall(&mut self) {
        self.state = State::Down { until: Instant::now() + self.pause };
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    fn close_windows(&mut self) {
        let now = self.seat.clock.now().unwrap_or_default();
        while let Some(record) = self.seat.ledger.close_next(now) {
            lock(&self.seat.shared).store.submit(self.seat.position, record);
        }
    }

    async fn finish(self) -> Result<(), rabbit::Error> {
        let Self { seat, state, attempt, .. } = self;
        let removal = async {
            let link = match state {
                State::Up(link) => link,
                State::Opening(opening) => opening.await?,
                State::Down { .. } => seat.transport.open(attempt, false).await?,
            };
            link.remove().await
        };
        let late = rabbit::Cause::Timeout(LAST_ATTEMPT);
        let late = rabbit::Error::Queue { attempt: "delete", queue: "probe.*".to_owned(), cause: late };
        timeout(LAST_ATTEMPT, removal).await.unwrap_or(Err(late))
    }
}

/// What comes next on the link.
enum Step<L> {
    Events,
    Retry,
    Opened(L),
    Refused(rabbit::Error),
}

/// Cut-safe: whatever it waits for is kept in the state.
async fn step<T: Transport>(state: &mut State<T>, events: &mut Vec<SessionEvent>) -> Step<T::Link> {
    match state {
        State::Down { until } => {
            sleep_until(*until).await;
            Step::Retry
        }
        State::Opening(opening) => match opening.await {
            Ok(link) => Step::Opened(link),
            Err(error) => Step::Refused(error),
        },
        State::Up(link) => {
            link.next(events).await;
            Step::Events
        }
    }
}
