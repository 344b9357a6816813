//! The user of our epoch: the broker itself refuses a former leader, whose user is gone.

use super::failed;
use crate::body::{Memory, Scene};
use crate::broker_link::{BrokerLink, everything, password};
use crate::error::ActError;
use decide::fact::Fact;
use decide::side::Side;
use rabbit::Credentials;
use rabbit::management::Password;

/// Makes our epoch's user with a password that is nowhere but in memory, deletes those of earlier epochs and
/// proves the login. Works as the administrator of the Secret. A cut leaves a user that the next attempt
/// overwrites.
pub async fn ensure_epoch_user(scene: &Scene<'_>, memory: &mut Memory, side: Side) -> Result<(), ActError> {
    let lost = || Err(ActError::LeaseLost { effect: "EnsureEpochUser" });
    if !scene.body.epoch.is_held() {
        return lost();
    }
    let prefix = scene.plan.names.epoch_prefix();
    let name = format!("{prefix}{}", scene.body.epoch.tag());
    let link = memory.link(side);
    let others = others(link, &prefix, &name).await.map_err(failed("list users", side))?;
    // A leader of a later epoch was here: our lease is over, whatever we believe.
    if others.iter().any(|other| is_later(other, &name)) {
        return lost();
    }
    let creds = credentials(link, &name).map_err(failed("make a password", side))?;
    make(link, &creds).await.map_err(failed("make our user", side))?;
    if !scene.body.epoch.is_held() {
        return lost();
    }
    for other in others {
        delete(link, &other).await.map_err(failed("delete an earlier user", side))?;
    }
    prove(link, &creds).await.map_err(failed("log in as our user", side))?;
    link.establish_epoch(creds);
    for fact in [Fact::Epoch(side), Fact::Users(side), Fact::Leftovers(side)] {
        memory.read_at.remove(&fact);
    }
    Ok(())
}

/// Our own user where its password is known, else the same name with a new one.
fn credentials(link: &BrokerLink, name: &str) -> rabbit::Result<Credentials> {
    match link.epoch() {
        Some(creds) if creds.username == name => Ok(creds.clone()),
        Some(_) | None => Ok(Credentials::new(name, password()?)),
    }
}

/// This migration's operators' users but `ours`.
async fn others(link: &BrokerLink, prefix: &str, ours: &str) -> rabbit::Result<Vec<String>> {
    let users = link.ask_admin(|client| async move { client.users().await }).await?;
    let names = users.into_iter().map(|user| user.name);
    Ok(names.filter(|name| name.starts_with(prefix) && name != ours).collect())
}

/// Whether a user is of a later term of the same Lease: `<prefix><lease>.<transitions>`.
fn is_later(other: &str, ours: &str) -> bool {
    let (Some((their_lease, theirs)), Some((our_lease, ours))) =
        (other.rsplit_once('.'), ours.rsplit_once('.'))
    else {
        return false;
    };
    match (theirs.parse::<u64>(), ours.parse::<u64>()) {
        (Ok(theirs), Ok(ours)) => their_lease == our_lease && theirs > ours,
        (Ok(_) | Err(_), _) => false,
    }
}

/// Makes the user, an administrator with all permissions in all vhosts there are.
async fn make(link: &BrokerLink, creds: &Credentials) -> rabbit::Result<()> {
    link.ask_admin(|client| {
        let creds = creds.clone();
        async move {
            let password = Password::Clear(creds.password);
            client.put_user(&creds.username, &password, &["administrator"]).await?;
            for vhost in client.vhosts().await? {
                client.put_permissions(&everything(&creds.username, &vhost.name)).await?;
            }
            Ok(())
        }
    })
    .await
}

/// Deletes one of our users, as the administrator.
pub(super) async fn delete(link: &BrokerLink, user: &str) -> rabbit::Result<()> {
    link.ask_admin(|client| {
        let user = user.to_owned();
        async move { client.delete_user(&user).await }
    })
    .await
}

async fn prove(link: &BrokerLink, creds: &Credentials) -> rabbit::Result<()> {
    link.client_with(creds)?.whoami().await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_later_term_of_the_same_lease_is_later() {
        let ours = "rmqm.0a1b2c3d.operator.ffff0000.9";
        assert!(is_later("rmqm.0a1b2c3d.operator.ffff0000.10", ours));
        assert!(!is_later("rmqm.0a1b2c3d.operator.ffff0000.8", ours));
        assert!(!is_later("rmqm.0a1b2c3d.operator.eeee0000.10", ours), "a Lease that was made anew");
        assert!(!is_later("rmqm.0a1b2c3d.operator.odd", ours));
    }
}
