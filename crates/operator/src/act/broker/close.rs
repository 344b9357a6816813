//! Closes client connections by name.

use super::{AT_ONCE, failed};
use crate::body::{Memory, Scene};
use crate::error::ActError;
use decide::side::Side;
use futures::StreamExt;
use jiff::Timestamp;
use rabbit::management::{Client, Closed};

/// Asks the broker to close these connections. Closed is what a later listing does not show: one too young for
/// statistics answers 404 and stays, and the next pass asks again. A cut leaves some open.
pub async fn close(
    scene: &Scene<'_>,
    memory: &mut Memory,
    side: Side,
    connections: &[String],
) -> Result<(), ActError> {
    let reason = reason(scene, side);
    let link = memory.links.of(side);
    let calls: Vec<_> = connections
        .iter()
        .map(|name| {
            let (name, reason) = (name.clone(), reason.clone());
            async move {
                link.ask(|client: Client| {
                    let (name, reason) = (name.clone(), reason.clone());
                    async move { client.close_connection(&name, &reason).await }
                })
                .await
            }
        })
        .collect();
    let outcomes: Vec<rabbit::Result<Closed>> =
        futures::stream::iter(calls).buffer_unordered(AT_ONCE).collect().await;
    let asked = outcomes.iter().filter(|outcome| matches!(outcome, Ok(Closed::Asked))).count();
    if asked > 0 {
        let progress = &mut memory.world.progress;
        progress.closed = progress.closed.saturating_add(u64::try_from(asked).unwrap_or(u64::MAX));
        progress.last_close_at = Some(Timestamp::now());
    }
    for outcome in outcomes {
        outcome.map_err(failed("close connections", side))?;
    }
    Ok(())
}

/// What the closed client reads.
fn reason(scene: &Scene<'_>, side: Side) -> String {
    let (namespace, name) = (&scene.plan.namespace, &scene.plan.name);
    format!("moved to {} by RabbitMQMigration {namespace}/{name}: connect again", side.other())
}
