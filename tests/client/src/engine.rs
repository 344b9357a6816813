//! One connection's life: open, work until it ends, wait, open again. I/O.

use std::time::Duration;

use crate::consume::Consume;
use crate::hub::{Clock, Shared};
use crate::link::{Link, Target};
use crate::publish::Publish;
use crate::reason::{Down, reason};
use crate::sessions::Sessions;

/// One connection with what it does: publish, consume, or both.
pub struct Engine {
    /// Its number in the process, from 1.
    pub number: usize,
    /// Its name in the management API.
    pub name: String,
    /// Where to.
    pub target: Target,
    /// The pause before each new attempt.
    pub reconnect: Duration,
    /// The time.
    pub clock: Clock,
    /// The log of connections.
    pub sessions: Shared<Sessions>,
    /// The publishing half.
    pub publish: Option<Publish>,
    /// The consuming half.
    pub consume: Option<Consume>,
}

impl Engine {
    /// Runs for ever.
    pub async fn run(mut self) {
        loop {
            match Link::open(&self.target, &self.name).await {
                Ok(link) => self.session(link).await,
                Err(reason) => self.sessions.with(|sessions| sessions.failed(&reason)),
            }
            tokio::time::sleep(self.reconnect).await;
        }
    }

    /// Both halves until one of them or the connection ends; each ends the other.
    async fn session(&mut self, link: Link) {
        let (number, now) = (self.number, self.clock.now());
        let cluster = self.sessions.with(|sessions| sessions.opened(number, link.server(), now));
        let down = Down::default();
        tokio::join!(
            publishing(self.publish.as_mut(), &link, &down),
            consuming(self.consume.as_ref(), &link, cluster, &down),
            link.watch(&down),
        );
        let (reason, now) = (down.reason().unwrap_or_default(), self.clock.now());
        self.sessions.with(|sessions| sessions.closed(number, &reason, now));
        link.close().await;
    }
}

async fn publishing(publish: Option<&mut Publish>, link: &Link, down: &Down) {
    let Some(publish) = publish else { return };
    match link.channel().await {
        Ok(channel) => down.report(publish.run(&channel, down).await),
        Err(error) => down.fail(reason(&error)),
    }
}

async fn consuming(consume: Option<&Consume>, link: &Link, cluster: u32, down: &Down) {
    let Some(consume) = consume else { return };
    match link.channel().await {
        Ok(channel) => down.report(consume.run(&channel, cluster, down).await),
        Err(error) => down.fail(reason(&error)),
    }
}
