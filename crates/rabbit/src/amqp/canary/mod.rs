//! The canary: a publisher and a consumer of our own that live through a switch like everybody else.

mod consumer;
mod publisher;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::ledger::{Ledger, LedgerSnapshot, Outages};
use super::session::{Session, within};
use crate::error::{Cause, Kind};
use crate::secret::Credentials;

/// What a canary does and where.
#[derive(Debug, Clone)]
pub struct CanaryConfig {
    /// `host:port` of the Service under test.
    pub address: String,
    /// A virtual host of our own.
    pub vhost: String,
    /// A user of our own, fenced and closed like everybody else.
    pub creds: Credentials,
    /// Queue it uses, alone.
    pub queue: String,
    /// Prefix of both connections' names.
    pub name: String,
    /// Marks our messages; a delivery with another mark is unexpected.
    pub run: String,
    /// Whether each connection declares the queue.
    pub declare: Declare,
    /// Time between two publishes. 20 ms by default.
    pub interval: Duration,
    /// Pause before each reconnect. 50 ms by default.
    pub reconnect: Duration,
    /// Time limit of each AMQP call.
    pub timeout: Duration,
    /// How long a stop waits for what was confirmed and not yet delivered.
    pub settle: Duration,
    /// A stored ledger to go on from.
    pub resume: Option<LedgerSnapshot>,
}

impl CanaryConfig {
    /// A canary with the default pace (20 ms), a durable classic queue and nothing stored.
    pub fn new(address: &str, vhost: &str, creds: Credentials, queue: &str, run: &str) -> Self {
        Self {
            address: address.to_owned(),
            vhost: vhost.to_owned(),
            creds,
            queue: queue.to_owned(),
            name: queue.to_owned(),
            run: run.to_owned(),
            declare: Declare::Classic,
            interval: Duration::from_millis(20),
            reconnect: Duration::from_millis(50),
            timeout: Duration::from_secs(5),
            settle: Duration::from_secs(5),
            resume: None,
        }
    }
}

/// How the canary's queue comes to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Declare {
    /// It is there already.
    Nothing,
    /// Each connection declares it durable and classic.
    Classic,
    /// Each connection declares it as a quorum queue.
    Quorum,
}

/// Starts canaries.
#[derive(Debug)]
pub struct Canary;

impl Canary {
    /// Starts publishing and consuming in two tasks until [`CanaryHandle::stop`]. Needs a tokio runtime, and
    /// configure, write and read permission for the queue. Reconnects by itself for ever and resends what
    /// was unconfirmed, as an honest client does. A cut leaves messages in the queue.
    pub fn start(config: CanaryConfig) -> CanaryHandle {
        let ledger = config.resume.as_ref().map(Ledger::resume).unwrap_or_default();
        let outages = |of: fn(&LedgerSnapshot) -> &Outages| config.resume.as_ref().map(of).cloned();
        let book = Book {
            ledger,
            publisher: Line::resume(outages(|s| &s.publisher)),
            consumer: Line::resume(outages(|s| &s.consumer)),
        };
        let shared = Arc::new(Shared { config, book: Mutex::new(book) });
        let (stop, stopped) = watch::channel(Stage::Run);
        let publisher = tokio::spawn(publisher::run(Arc::clone(&shared), stopped.clone()));
        let consumer = tokio::spawn(consumer::run(Arc::clone(&shared), stopped));
        CanaryHandle { shared, stop, publisher, consumer }
    }
}

/// A running canary; dropping it kills the tasks without settling.
#[derive(Debug)]
pub struct CanaryHandle {
    shared: Arc<Shared>,
    stop: watch::Sender<Stage>,
    publisher: JoinHandle<()>,
    consumer: JoinHandle<()>,
}

impl CanaryHandle {
    /// What the ledger says now.
    pub fn ledger(&self) -> LedgerSnapshot {
        self.shared.snapshot()
    }

    /// Stops publishing, waits for the last confirms, then up to the settle time for deliveries, closes both
    /// connections and returns the final ledger. Bounded by the settle time plus three call limits.
    pub async fn stop(mut self) -> LedgerSnapshot {
        let config = &self.shared.config;
        let limit = config.timeout + config.timeout;
        self.stop.send_replace(Stage::Settle);
        let _ = tokio::time::timeout(limit, &mut self.publisher).await;
        let settled = Instant::now() + config.settle;
        while !self.shared.book().ledger.is_settled() && Instant::now() < settled {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.stop.send_replace(Stage::End);
        let _ = tokio::time::timeout(config.timeout, &mut self.consumer).await;
        self.shared.snapshot()
    }
}

impl Drop for CanaryHandle {
    fn drop(&mut self) {
        self.publisher.abort();
        self.consumer.abort();
    }
}

/// What the tasks are to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Publish and consume.
    Run,
    /// Publish no more; consume.
    Settle,
    /// Hang up.
    End,
}

#[derive(Debug)]
struct Shared {
    config: CanaryConfig,
    book: Mutex<Book>,
}

/// Everything that is counted.
#[derive(Debug)]
struct Book {
    ledger: Ledger,
    publisher: Line,
    consumer: Line,
}

/// One connection's outages and when it last made progress.
#[derive(Debug, Default)]
struct Line {
    outages: Outages,
    progress: Option<Instant>,
}

impl Line {
    fn resume(stored: Option<Outages>) -> Self {
        Self { outages: stored.unwrap_or_default(), progress: None }
    }

    /// A confirm or delivery: closes a gap.
    fn progress(&mut self, now: Instant) {
        self.outages.longest_gap_ms = self.gap_at(now);
        self.progress = Some(now);
    }

    /// The longest gap, the one still open included.
    fn gap_at(&self, now: Instant) -> u64 {
        let open = self.progress.map_or(0, |since| millis(now.saturating_duration_since(since)));
        self.outages.longest_gap_ms.max(open)
    }

    fn failed(&mut self, cause: &Cause) {
        match cause.kind() {
            Kind::Unauthorized | Kind::Refused => self.outages.refused += 1,
            _ => self.outages.unreachable += 1,
        }
        self.outages.last_error = Some(cause.to_string());
    }

    fn closed(&mut self, cause: &Cause) {
        self.outages.closes += 1;
        self.outages.last_error = Some(cause.to_string());
    }

    fn seen_at(&self, now: Instant) -> Outages {
        Outages { longest_gap_ms: self.gap_at(now), ..self.outages.clone() }
    }
}

impl Shared {
    fn book(&self) -> MutexGuard<'_, Book> {
        // A poisoned lock means a panic elsewhere; the counts in it are still the best we have.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn snapshot(&self) -> LedgerSnapshot {
        let now = Instant::now();
        let book = self.book();
        book.ledger.snapshot(&book.publisher.seen_at(now), &book.consumer.seen_at(now))
    }

    /// Logs in and makes sure of the queue; counts what happens on the given line.
    async fn connect(&self, role: &str, line: fn(&mut Book) -> &mut Line) -> Option<Session> {
        let CanaryConfig { address, vhost, creds, name, timeout, .. } = &self.config;
        let name = format!("{name}-{role}");
        let attempt = async {
            let session = Session::connect(address, vhost, creds, &name, *timeout)
                .await
                .map_err(|error| error.cause().clone())?;
            self.declare(&session).await?;
            Ok::<_, Cause>(session)
        };
        match attempt.await {
            Ok(session) => {
                line(&mut self.book()).outages.connects += 1;
                Some(session)
            }
            Err(cause) => {
                tracing::debug!(role, %cause, "canary not connected");
                line(&mut self.book()).failed(&cause);
                None
            }
        }
    }

    async fn declare(&self, session: &Session) -> Result<(), Cause> {
        let kind = match self.config.declare {
            Declare::Nothing => return Ok(()),
            Declare::Classic => "classic",
            Declare::Quorum => "quorum",
        };
        let channel = session.channel().await?;
        let mut arguments = lapin::types::FieldTable::default();
        arguments.insert("x-queue-type".into(), lapin::types::AMQPValue::LongString(kind.into()));
        let options = lapin::options::QueueDeclareOptions::durable();
        let name = super::session::short(&self.config.queue)?;
        within(self.config.timeout, channel.queue_declare(name, options, arguments)).await?;
        session.put_back(channel);
        Ok(())
    }

    /// Waits before the next attempt; `false` if there shall be none.
    async fn pause(&self, stage: &mut watch::Receiver<Stage>, until: Stage) -> bool {
        tokio::select! {
            () = tokio::time::sleep(self.config.reconnect) => *stage.borrow() != until && !ended(stage),
            () = reached(stage, until) => false,
        }
    }
}

/// Resolves once the stage is `until` or the handle is gone.
async fn reached(stage: &mut watch::Receiver<Stage>, until: Stage) {
    let _ = stage.wait_for(|stage| *stage == until || *stage == Stage::End).await;
}

fn ended(stage: &watch::Receiver<Stage>) -> bool {
    *stage.borrow() == Stage::End || stage.has_changed().is_err()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_count_while_they_are_open() {
        let start = Instant::now();
        let mut line = Line::default();
        assert_eq!(line.gap_at(start), 0, "no progress yet is no gap");
        line.progress(start);
        line.progress(start + Duration::from_millis(20));
        assert_eq!(line.outages.longest_gap_ms, 20);
        assert_eq!(line.gap_at(start + Duration::from_millis(520)), 500);
        line.progress(start + Duration::from_millis(120));
        assert_eq!(line.outages.longest_gap_ms, 100);
    }

    #[test]
    fn refusals_and_silence_are_counted_apart() {
        let mut line = Line::default();
        line.failed(&Cause::Amqp { code: 530, text: "NOT_ALLOWED - connection limit".into() });
        line.failed(&Cause::Unreachable("refused".into()));
        line.closed(&Cause::Amqp { code: 320, text: "CONNECTION_FORCED".into() });
        let Outages { refused, unreachable, closes, last_error, .. } = line.outages;
        assert_eq!((refused, unreachable, closes), (1, 1, 1));
        assert_eq!(last_error.as_deref(), Some("amqp 320: CONNECTION_FORCED"));
    }
}
