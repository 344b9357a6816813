//! The first connection: all sides, or none. Does I/O.

use std::time::Duration;

use futures::future::join_all;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

use crate::config::Config;
use crate::engine::Control;
use crate::transport::{Link, Transport};

/// Between attempts.
const RETRY: Duration = Duration::from_millis(500);

/// What is left on one broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Label of the side.
    pub side: String,
    /// Why the queues could not be removed; they expire by themselves.
    pub error: String,
}

/// Why not all sides could be connected.
#[derive(Debug)]
pub(crate) struct Refused {
    pub why: String,
    pub left: Vec<Leftover>,
}

/// Connects all sides. If one fails, or a stop is asked for, what did connect is removed again.
pub(crate) async fn connect_all<T: Transport>(
    config: &Config,
    transports: &[T],
    control: &watch::Receiver<Control>,
) -> Result<Vec<T::Link>, Refused> {
    let deadline = Instant::now() + config.connect_deadline;
    let attempts = transports.iter().map(|transport| async {
        let mut stopped = control.clone();
        tokio::select! {
            link = first_link(transport, deadline) => link,
            _ = stopped.wait_for(|control| control.stop) => Err("stopped".to_owned()),
        }
    });
    let (mut links, mut failures) = (Vec::new(), Vec::new());
    for (side, opened) in config.sides.iter().zip(join_all(attempts).await) {
        match opened {
            Ok(link) => links.push((side.label.clone(), link)),
            Err(why) => failures.push(format!("{}: {why}", side.label)),
        }
    }
    if failures.is_empty() {
        return Ok(links.into_iter().map(|(_, link)| link).collect());
    }
    let removals = links.into_iter().map(|(side, link)| async {
        let removed = link.remove().await;
        removed.err().map(|error| Leftover { side, error: error.report() })
    });
    let left = join_all(removals).await.into_iter().flatten().collect();
    Err(Refused { why: failures.join("; "), left })
}

/// Connects one side. Only what another attempt may mend is tried again.
async fn first_link<T: Transport>(transport: &T, deadline: Instant) -> Result<T::Link, String> {
    let mut last = "no answer".to_owned();
    for attempt in 0.. {
        match timeout_at(deadline, transport.open(attempt, true)).await {
            Ok(Ok(link)) => return Ok(link),
            Ok(Err(error)) if error.kind() != rabbit::Kind::Unreachable => return Err(error.report()),
            Ok(Err(error)) => last = error.report(),
            Err(_) => break,
        }
        if Instant::now() + RETRY >= deadline {
            break;
        }
        tracing::info!(attempt, error = %last, "probe connects again");
        sleep(RETRY).await;
    }
    Err(last)
}
