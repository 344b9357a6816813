//! The fence: a limit of 0 connections for each user, and the limit that was there before.

use super::{AT_ONCE, failed};
use crate::body::{Memory, Scene};
use crate::broker_link::BrokerLink;
use crate::error::ActError;
use decide::fact::Fact;
use decide::side::Side;
use futures::StreamExt;
use rabbit::management::Client;
use std::collections::BTreeSet;

/// A user and the limit to be set; `None` takes it off.
type Limit = (String, Option<u32>);

/// Refuses new connections of these users. Open ones stay. A cut leaves some fenced: the next pass goes on.
pub async fn fence(
    _scene: &Scene<'_>,
    memory: &mut Memory,
    side: Side,
    users: &[String],
) -> Result<(), ActError> {
    let limits = users.iter().map(|user| (user.clone(), Some(0))).collect();
    set_all(memory, side, limits).await.map_err(failed("fence users", side))
}

/// Gives these users their limits back. A cut leaves some fenced: the next pass goes on.
pub async fn unfence(
    _scene: &Scene<'_>,
    memory: &mut Memory,
    side: Side,
    users: &[(String, Option<i64>)],
) -> Result<(), ActError> {
    // A negative limit means none to the broker.
    let limit = |limit: &Option<i64>| limit.and_then(|limit| u32::try_from(limit).ok());
    let limits = users.iter().map(|(user, before)| (user.clone(), limit(before))).collect();
    set_all(memory, side, limits).await.map_err(failed("unfence users", side))
}

/// Sets all limits, whoever fails: one user must not keep others fenced. A user who is gone by now needs no
/// limit; of the others the first failure is told.
async fn set_all(memory: &mut Memory, side: Side, limits: Vec<Limit>) -> rabbit::Result<()> {
    memory.read_at.remove(&Fact::Users(side));
    let link = memory.link(side);
    let calls: Vec<_> = limits.into_iter().map(|limit| set(link, limit)).collect();
    let failures: Vec<(String, rabbit::Error)> = futures::stream::iter(calls)
        .buffer_unordered(AT_ONCE)
        .filter_map(|outcome| async move { outcome.err() })
        .collect()
        .await;
    if failures.is_empty() {
        return Ok(());
    }
    let there: BTreeSet<String> = link
        .ask(|client| async move { client.users().await })
        .await?
        .into_iter()
        .map(|user| user.name)
        .collect();
    match failures.into_iter().find(|(user, _)| there.contains(user)) {
        Some((_, error)) => Err(error),
        None => Ok(()),
    }
}

async fn set(link: &BrokerLink, limit: Limit) -> Result<(), (String, rabbit::Error)> {
    let (user, value) = &limit;
    let call = |client: Client| {
        let (user, value) = (user.clone(), *value);
        async move {
            match value {
                Some(value) => client.set_user_max_connections(&user, value).await,
                None => client.clear_user_max_connections(&user).await,
            }
        }
    };
    link.ask(call).await.map_err(|error| (user.clone(), error))
}
