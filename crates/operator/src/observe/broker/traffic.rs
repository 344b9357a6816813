//! Publishes received and dropped, live, summed over all nodes.

use crate::body::{Memory, Scene};
use crate::broker_link::BrokerLink;
use decide::side::Side;
use decide::world::{PodView, Reading, TrafficView};

/// Sums the counters of every node. One node that does not answer makes the sum unknown.
pub async fn traffic(_scene: &Scene<'_>, memory: &mut Memory, side: Side) -> Reading<TrafficView> {
    let link = memory.link(side);
    if link.pods().is_empty() {
        return Reading::Failed(format!("no pod of {side} is known"));
    }
    let scrapes = link.pods().iter().map(|pod| scrape(link, pod));
    match futures::future::try_join_all(scrapes).await {
        Ok(nodes) => Reading::Seen(nodes.into_iter().fold(TrafficView::default(), sum)),
        Err(why) => Reading::Failed(why),
    }
}

async fn scrape(link: &BrokerLink, pod: &PodView) -> Result<TrafficView, String> {
    let scraper = link.scraper(pod).map_err(|error| error.report())?;
    let counters = scraper.global_counters().await.map_err(|error| error.report())?;
    match (counters.received, counters.unroutable_dropped) {
        (Some(received), Some(unroutable)) => Ok(TrafficView { received, unroutable }),
        (None, _) | (_, None) => Err(format!("{} does not export its global counters", pod.name)),
    }
}

fn sum(sum: TrafficView, node: TrafficView) -> TrafficView {
    TrafficView {
        received: sum.received.saturating_add(node.received),
        unroutable: sum.unroutable.saturating_add(node.unroutable),
    }
}
