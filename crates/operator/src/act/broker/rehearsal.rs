//! Rehearses the fence on blue with a user of our own.

use super::{epoch, failed};
use crate::body::{Memory, Scene};
use crate::broker_link::{BrokerLink, everything, password};
use crate::error::ActError;
use decide::fact::Fact;
use decide::side::Side;
use decide::world::RehearsalView;
use rabbit::amqp::Session;
use rabbit::management::Password;
use rabbit::{Cause, Credentials, Kind};
use std::time::Duration;

/// The reply code of a login that a limit refuses. 403 would be a wrong password: no proof.
const NOT_ALLOWED: u16 = 530;
/// Limit of one login.
const LOGIN: Duration = Duration::from_secs(3);
/// Logins before the user must be known on every member.
const ATTEMPTS: usize = 5;
/// Between them.
const PAUSE: Duration = Duration::from_millis(200);

/// Makes a user, sees it log in, limits it to 0 connections and sees it refused. Works as the administrator.
/// The user is deleted whatever happens; a cut leaves it, and cleaning finds it by its name.
pub async fn rehearse_fence(scene: &Scene<'_>, memory: &mut Memory) -> Result<(), ActError> {
    let user = scene.plan.names.rehearsal_user();
    let link = memory.link(Side::Blue);
    let rehearsed = rehearse(link, &user).await;
    let removed = epoch::delete(link, &user).await;
    let rehearsed = rehearsed.map_err(failed("rehearse the fence", Side::Blue))?;
    removed.map_err(failed("delete the rehearsal's user", Side::Blue))?;
    tracing::info!(refused = rehearsed.refused, detail = rehearsed.detail, "fence rehearsed");
    memory.rehearsal = Some(rehearsed);
    memory.read_at.remove(&Fact::Rehearsal);
    Ok(())
}

async fn rehearse(link: &BrokerLink, user: &str) -> rabbit::Result<RehearsalView> {
    let creds = Credentials::new(user, password()?);
    let vhost = make(link, &creds).await?;
    let not_refused = |detail: String| Ok(RehearsalView { refused: false, detail });
    match log_in_patiently(link, &vhost, &creds).await {
        Ok(session) => session.close().await,
        Err(error) if error.kind() == Kind::Unreachable => return Err(error),
        Err(error) => return not_refused(format!("without a limit: {}", error.report())),
    }
    let limited = link.ask_admin(|client| {
        let user = user.to_owned();
        async move { client.set_user_max_connections(&user, 0).await }
    });
    match limited.await {
        Ok(()) => {}
        Err(error) if error.kind() == Kind::Refused => return not_refused(error.report()),
        Err(error) => return Err(error),
    }
    match log_in_until_refused(link, &vhost, &creds).await {
        Ok(()) => not_refused("a user with limit 0 logged in".to_owned()),
        Err(error) => match error.cause() {
            Cause::Amqp { code: NOT_ALLOWED, text } => {
                Ok(RehearsalView { refused: true, detail: format!("{NOT_ALLOWED}: {text}") })
            }
            Cause::Unreachable(_) | Cause::Timeout(_) => Err(error),
            _ => not_refused(error.report()),
        },
    }
}

/// Makes the user with access to the default vhost, or to the first one where that is gone.
async fn make(link: &BrokerLink, creds: &Credentials) -> rabbit::Result<String> {
    link.ask_admin(|client| {
        let creds = creds.clone();
        async move {
            let mut vhosts: Vec<String> =
                client.vhosts().await?.into_iter().map(|vhost| vhost.name).collect();
            vhosts.sort_by_key(|name| name != "/");
            let vhost = vhosts.into_iter().next().unwrap_or_else(|| "/".to_owned());
            client.put_user(&creds.username, &Password::Clear(creds.password), &[]).await?;
            client.clear_user_max_connections(&creds.username).await?;
            client.put_permissions(&everything(&creds.username, &vhost)).await?;
            Ok(vhost)
        }
    })
    .await
}

/// A new user may reach the other members a moment later: 403 until then.
async fn log_in_patiently(link: &BrokerLink, vhost: &str, creds: &Credentials) -> rabbit::Result<Session> {
    let mut outcome = log_in(link, vhost, creds).await;
    for _ in 1..ATTEMPTS {
        if outcome.is_ok() {
            break;
        }
        link.rotate();
        tokio::time::sleep(PAUSE).await;
        outcome = log_in(link, vhost, creds).await;
    }
    outcome
}

/// Logs in until it is refused: so may the limit. `Ok` where it never was.
async fn log_in_until_refused(link: &BrokerLink, vhost: &str, creds: &Credentials) -> rabbit::Result<()> {
    for _ in 0..ATTEMPTS {
        log_in(link, vhost, creds).await?.close().await;
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

async fn log_in(link: &BrokerLink, vhost: &str, creds: &Credentials) -> rabbit::Result<Session> {
    let address = link.amqp_addresses().into_iter().next().unwrap_or_default();
    Session::connect(&address, vhost, creds, &creds.username, LOGIN).await
}
