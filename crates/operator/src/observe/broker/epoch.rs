//! Users: ours and theirs, and what of ours is left.

use super::{is_hidden, reading};
use crate::body::{Memory, Scene};
use crate::broker_link::BrokerLink;
use decide::side::Side;
use decide::world::{EpochView, Reading, RehearsalView, UserView};
use rabbit::Kind;
use rabbit::management::{Limits, User};

/// Whether our epoch's user exists and takes our password, and how many others of this migration are left: one
/// of our own name whose password is not known is as old as they are.
pub async fn epoch(scene: &Scene<'_>, memory: &mut Memory, side: Side) -> Reading<EpochView> {
    let link = memory.link(side);
    let prefix = scene.plan.names.epoch_prefix();
    let ours = format!("{prefix}{}", scene.body.epoch.tag());
    let seen = match as_epoch(link, &ours).await {
        Ok(Some(users)) => Ok((users, true)),
        Ok(None) => list_as_admin(link).await.map(|users| (users, false)),
        Err(error) => Err(error),
    };
    reading(seen.map(|(users, current)| {
        EpochView {
            current,
            older: users
                .iter()
                .filter(|user| user.name.starts_with(&prefix) && !(current && user.name == ours))
                .count(),
        }
    }))
}

/// The users as our epoch's user sees them; `None` where it is not established or is refused.
async fn as_epoch(link: &BrokerLink, ours: &str) -> rabbit::Result<Option<Vec<User>>> {
    if link.epoch_user() != Some(ours) {
        return Ok(None);
    }
    match link.ask(|client| async move { client.users().await }).await {
        Ok(users) => Ok(Some(users)),
        Err(error) if error.kind() == Kind::Unauthorized => Ok(None),
        Err(error) => Err(error),
    }
}

async fn list_as_admin(link: &BrokerLink) -> rabbit::Result<Vec<User>> {
    link.ask_admin(|client| async move { client.users().await }).await
}

/// All users of applications and of this migration's canary, with their limits of connections.
pub async fn users(scene: &Scene<'_>, memory: &mut Memory, side: Side) -> Reading<Vec<UserView>> {
    let link = memory.link(side);
    let asked = link.ask(|client| async move {
        let (users, limits) = futures::join!(client.users(), client.user_limits());
        Ok((users?, limits?))
    });
    reading(asked.await.map(|(users, limits)| {
        let shown = users.into_iter().filter(|user| !is_hidden(scene, &user.name));
        shown.map(|user| view(user.name, &limits)).collect()
    }))
}

fn view(name: String, limits: &[Limits]) -> UserView {
    let limit = limits.iter().find(|limits| limits.name == name);
    UserView { max_connections: limit.and_then(Limits::max_connections), name }
}

/// What the rehearsal of the fence showed, if it was done since we started.
pub fn rehearsal(memory: &Memory) -> Reading<RehearsalView> {
    memory.rehearsal.clone().map_or(Reading::Unasked, Reading::Seen)
}

/// Vhosts and users of this migration that are left on a side, but for the user of our epoch. Limits of ours
/// go with them; limits of applications' users are the fence, which `Unfence` takes down.
pub async fn leftovers(scene: &Scene<'_>, memory: &mut Memory, side: Side) -> Reading<Vec<String>> {
    let link = memory.link(side);
    let prefix = scene.plan.names.prefix();
    let ours = format!("{}{}", scene.plan.names.epoch_prefix(), scene.body.epoch.tag());
    let asked = link.ask(|client| async move {
        let (vhosts, users) = futures::join!(client.vhosts(), client.users());
        Ok((vhosts?, users?))
    });
    reading(asked.await.map(|(vhosts, users)| {
        let vhosts = vhosts.into_iter().map(|vhost| vhost.name);
        let vhosts = vhosts.filter(|name| name.starts_with(&prefix)).map(|name| format!("vhost {name}"));
        let users = users.into_iter().map(|user| user.name);
        let users = users.filter(|name| name.starts_with(&prefix) && *name != ours);
        vhosts.chain(users.map(|name| format!("user {name}"))).collect()
    }))
}
