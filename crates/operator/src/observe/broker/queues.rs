//! Totals of all queues, from listings.

use crate::body::{Memory, Scene};
use crate::broker_link::BrokerLink;
use decide::effect::QueueRef;
use decide::side::Side;
use decide::world::{QueueTotals, Reading};
use rabbit::management::Queue;
use std::time::Duration;

/// Rates are read at most once a minute: blue serves customers.
const RATES: Duration = Duration::from_mins(1);
/// Above so many queues their statistics are too dear.
const MOST_QUEUES: usize = 10_000;

/// Lists all queues with totals, those of our probe left out. Consumers and rates come from statistics, which
/// are read outside a switch only; within one they are unknown.
pub async fn queues(scene: &Scene<'_>, memory: &mut Memory, side: Side) -> Reading<Vec<QueueTotals>> {
    let alarmed = memory.world.brokers.of(side).seen().is_some_and(|broker| !broker.alarms.is_empty());
    let link = memory.link(side);
    let list = match link.ask(|client| async move { client.queues_totals().await }).await {
        Ok(list) => link.queues.keep(list),
        Err(error) => return Reading::Failed(error.report()),
    };
    let with_rates = !scene.status.phase.unwrap_or_default().is_switch() && list.len() <= MOST_QUEUES;
    if with_rates && !alarmed && link.queues.wants_rates(RATES) {
        match link.ask(|client| async move { client.queues_stats().await }).await {
            Ok(rows) => link.queues.keep_rates(rows),
            Err(error) => tracing::debug!(error = error.report(), "no statistics of queues"),
        }
    }
    let probe = scene.plan.names.probe_vhost();
    let shown = list.iter().filter(|queue| queue.vhost != probe);
    Reading::Seen(shown.map(|queue| totals(queue, link, with_rates)).collect())
}

fn totals(queue: &Queue, link: &BrokerLink, with_rates: bool) -> QueueTotals {
    let name = QueueRef { vhost: queue.vhost.clone(), name: queue.name.clone() };
    let rates = if with_rates { link.queues.rates(&name) } else { crate::broker_link::QueueRates::default() };
    QueueTotals {
        queue: Some(name),
        kind: queue.queue_type.clone().unwrap_or_default(),
        exclusive: queue.exclusive == Some(true),
        ready: queue.messages_ready,
        unacked: queue.messages_unacked,
        messages: queue.messages,
        consumers: queue.consumers.or(rates.consumers),
        acks_per_second: rates.acks_per_second,
        state: queue.state.clone(),
    }
}
