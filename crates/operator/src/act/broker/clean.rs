//! Removes what is ours from a broker, found by name: cleaning needs no memory.

use super::{epoch, failed};
use crate::body::{Memory, Scene};
use crate::broker_link::BrokerLink;
use crate::error::ActError;
use decide::fact::Fact;
use decide::side::Side;

/// Deletes this migration's vhosts and users, but for the user of our epoch. A cut leaves some: the next pass
/// finds them.
pub async fn clean(scene: &Scene<'_>, memory: &mut Memory, side: Side) -> Result<(), ActError> {
    // A probe that failed is not seen as running, and would go on trying.
    crate::act::probe::give_up(scene, memory).await?;
    let prefix = scene.plan.names.prefix();
    let ours = format!("{}{}", scene.plan.names.epoch_prefix(), scene.body.epoch.tag());
    let link = memory.link(side);
    let (vhosts, users) = list(link, &prefix).await.map_err(failed("list what is ours", side))?;
    for vhost in vhosts {
        link.sessions.drop_vhost(&vhost);
        delete_vhost(link, &vhost).await.map_err(failed("delete a vhost of ours", side))?;
    }
    for user in users.into_iter().filter(|user| *user != ours) {
        delete_user(link, &user).await.map_err(failed("delete a user of ours", side))?;
    }
    forget_readings(memory, side);
    Ok(())
}

/// Deletes all operators' users of this migration, as the administrator: the last thing done on a side. From
/// then on we are nobody there.
pub async fn remove_epoch_users(scene: &Scene<'_>, memory: &mut Memory, side: Side) -> Result<(), ActError> {
    let prefix = scene.plan.names.epoch_prefix();
    let link = memory.link(side);
    link.forget_epoch();
    let users = link.ask_admin(|client| async move { client.users().await });
    let users = users.await.map_err(failed("list users", side))?;
    for user in users.into_iter().filter(|user| user.name.starts_with(&prefix)) {
        epoch::delete(link, &user.name).await.map_err(failed("delete our user", side))?;
    }
    forget_readings(memory, side);
    Ok(())
}

/// Our vhosts and users on a broker.
async fn list(link: &BrokerLink, prefix: &str) -> rabbit::Result<(Vec<String>, Vec<String>)> {
    let asked = link.ask(|client| async move {
        let (vhosts, users) = futures::join!(client.vhosts(), client.users());
        Ok((vhosts?, users?))
    });
    let (vhosts, users) = asked.await?;
    let vhosts = vhosts.into_iter().map(|vhost| vhost.name).filter(|name| name.starts_with(prefix));
    let users = users.into_iter().map(|user| user.name).filter(|name| name.starts_with(prefix));
    Ok((vhosts.collect(), users.collect()))
}

/// Deletes a vhost of ours with all it holds.
pub async fn delete_vhost(link: &BrokerLink, vhost: &str) -> rabbit::Result<()> {
    link.ask(|client| {
        let vhost = vhost.to_owned();
        async move { client.delete_vhost(&vhost).await }
    })
    .await
}

/// Deletes a user of ours; its connections are closed.
pub async fn delete_user(link: &BrokerLink, user: &str) -> rabbit::Result<()> {
    link.ask(|client| {
        let user = user.to_owned();
        async move { client.delete_user(&user).await }
    })
    .await
}

fn forget_readings(memory: &mut Memory, side: Side) {
    for fact in [Fact::Leftovers(side), Fact::Users(side), Fact::Epoch(side), Fact::Queues(side)] {
        memory.read_at.remove(&fact);
    }
}
