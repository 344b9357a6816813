//! Client connections: the live list, with roles from statistics.

use super::{is_hidden, is_moving};
use crate::body::{Memory, Scene};
use crate::broker_link::{BrokerLink, Statistics};
use decide::side::Side;
use decide::world::{ConnectionView, Reading};
use std::time::{Duration, Instant};

/// At rest statistics are read at most once a minute: blue serves customers.
const AT_REST: Duration = Duration::from_mins(1);
/// In a switch they are read again this often in any case.
const SWITCHING: Duration = Duration::from_secs(10);
/// In a switch, while somebody is unknown.
const UNKNOWN: Duration = Duration::from_secs(1);
/// How old the list of queues may be that tells private queues from shared ones.
const QUEUES: Duration = Duration::from_secs(30);

/// Lists the connections of clients, live, the canary's among them. Who is not in the statistics yet is
/// unknown.
pub async fn connections(scene: &Scene<'_>, memory: &mut Memory, side: Side) -> Reading<Vec<ConnectionView>> {
    let alarmed = memory.world.brokers.of(side).seen().is_some_and(|broker| !broker.alarms.is_empty());
    let moving = is_moving(scene, memory);
    let link = memory.link(side);
    let live = match link.ask(|client| async move { client.live_connections().await }).await {
        Ok(live) => live,
        Err(error) => return Reading::Failed(error.report()),
    };
    let live: Vec<_> = live
        .into_iter()
        .filter(|connection| !connection.user.as_deref().is_some_and(|user| is_hidden(scene, user)))
        .collect();
    link.roles.note(&live, Instant::now());
    let (unknown, at_rest) = if moving { (UNKNOWN, SWITCHING) } else { (AT_REST, AT_REST) };
    let wanted = !live.is_empty() && link.roles.wants_statistics(Instant::now(), unknown, at_rest);
    // An alarm at rest: statistics would cost what the broker lacks. In a switch they decide.
    if wanted && (!alarmed || moving) {
        learn(link).await;
    }
    let views = live.into_iter().map(|connection| ConnectionView {
        role: link.roles.role(&connection.name),
        client: link.roles.client(&connection.name),
        protocol: link.roles.protocol(&connection.name).unwrap_or_default(),
        user: connection.user.unwrap_or_default(),
        name: connection.name,
    });
    Reading::Seen(views.collect())
}

/// Reads the statistics. Where they cannot be read those who are unknown stay unknown.
async fn learn(link: &mut BrokerLink) {
    if link.queues.listed(QUEUES).is_none()
        && let Ok(list) = link.ask(|client| async move { client.queues_totals().await }).await
    {
        link.queues.keep(list);
    }
    let asked = link.ask(|client| async move {
        let (connections, channels, consumers) =
            futures::join!(client.connections(), client.channels(), client.consumers());
        Ok((connections?, channels?, consumers?))
    });
    match asked.await {
        Ok((connections, channels, consumers)) => {
            let statistics = Statistics {
                connections: &connections,
                channels: &channels,
                consumers: &consumers,
                private: &link.queues.private(),
                auto_delete: &link.queues.auto_delete(),
            };
            link.roles.learn(&statistics, Instant::now());
        }
        Err(error) => tracing::debug!(error = error.report(), "no statistics of connections"),
    }
}
