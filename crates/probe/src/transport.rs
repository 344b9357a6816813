//! The seam between the engine and a client library; tests put a broker made of a few lines behind it.

use rabbit::Timeouts;
use rabbit::amqp::transport::{Consuming, QueueSpec, Session, SessionEvent, Target};

use crate::config::{Config, SideConfig};

/// Unacked deliveries per channel, and deliveries per ack: what the baseline was measured with.
const CONSUMING: Consuming = Consuming { prefetch: 100, ack_every: 10 };

/// Opens links to the broker of a side.
pub(crate) trait Transport: Clone + 'static {
    type Link: Link;
    /// Connects and declares; the attempt's number picks the node. `first` starts from empty queues.
    async fn open(&self, attempt: usize, first: bool) -> Result<Self::Link, rabbit::Error>;
}

/// A live connection to the broker of a side.
pub(crate) trait Link: 'static {
    /// Hands a message over; never waits.
    fn publish(&mut self, queue: usize, sequence: u64, body: Vec<u8>);
    /// Messages without an answer.
    fn unconfirmed(&self) -> usize;
    /// Waits for what happens. Cancel-safe.
    async fn next(&mut self, into: &mut Vec<SessionEvent>);
    /// Closes, and removes the queues; bounded in time.
    async fn remove(self) -> Result<(), rabbit::Error>;
}

/// Links over lapin.
#[derive(Debug, Clone)]
pub(crate) struct Lapin {
    side: SideConfig,
    queues: Vec<QueueSpec>,
}

impl Lapin {
    pub fn new(config: &Config, side: &SideConfig) -> Self {
        let queue = |number| QueueSpec {
            name: format!("probe.{number}"),
            kind: side.queue_type.as_str(),
            expires: config.queue_expires,
        };
        Self { side: side.clone(), queues: (0..config.queues).map(queue).collect() }
    }
}

impl Transport for Lapin {
    type Link = Session;

    async fn open(&self, attempt: usize, first: bool) -> Result<Session, rabbit::Error> {
        Session::open(&self.target(attempt), &self.queues, CONSUMING, first).await
    }
}

impl Lapin {
    fn target(&self, attempt: usize) -> Target {
        let side = &self.side;
        let (host, port) =
            side.addrs.iter().cycle().nth(attempt % side.addrs.len().max(1)).cloned().unwrap_or_default();
        Target {
            host,
            port,
            vhost: side.vhost.clone(),
            credentials: side.credentials.clone(),
            tls: side.tls.clone(),
            name: format!("probe {}", side.label),
            timeouts: Timeouts::default(),
        }
    }
}

impl Link for Session {
    fn publish(&mut self, queue: usize, sequence: u64, body: Vec<u8>) {
        Session::publish(self, queue, sequence, body);
    }

    fn unconfirmed(&self) -> usize {
        Session::unconfirmed(self)
    }

    async fn next(&mut self, into: &mut Vec<SessionEvent>) {
        Session::next(self, into).await;
    }

    async fn remove(self) -> Result<(), rabbit::Error> {
        self.close(true).await
    }
}
