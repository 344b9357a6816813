//! A vhost and a user of our own on a broker: for the probe, and for the canary.

use crate::broker_link::{BrokerLink, everything};
use rabbit::Credentials;
use rabbit::management::{Client, MAX_CONNECTIONS, Password, VhostSpec};

/// Name of the limit of queues in a vhost.
const MAX_QUEUES: &str = "max-queues";

/// How much a vhost of ours may hold at most: a fault of ours must not hurt the broker.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Connections.
    pub connections: i64,
    /// Queues.
    pub queues: i64,
}

/// Makes the vhost with its limits, and the user with this password and all permissions there. Idempotent; a
/// cut leaves a part, found by its name.
pub async fn make_place(
    link: &BrokerLink,
    vhost: &str,
    creds: &Credentials,
    room: Room,
) -> rabbit::Result<()> {
    link.ask(|client| {
        let (vhost, creds) = (vhost.to_owned(), creds.clone());
        async move { make(&client, &vhost, creds, room).await }
    })
    .await
}

async fn make(client: &Client, vhost: &str, creds: Credentials, room: Room) -> rabbit::Result<()> {
    let description = Some("made by rabbitmq-migration-operator, removed by it".to_owned());
    client.put_vhost(vhost, &VhostSpec { description, ..VhostSpec::default() }).await?;
    // Whoever began to make it before us may have been cut off.
    if let Some(made) = client.vhost(vhost).await? {
        client.start_vhost(&made).await?;
    }
    client.set_vhost_limit(vhost, MAX_CONNECTIONS, room.connections).await?;
    client.set_vhost_limit(vhost, MAX_QUEUES, room.queues).await?;
    client.put_user(&creds.username, &Password::Clear(creds.password), &[]).await?;
    client.put_permissions(&everything(&creds.username, vhost)).await
}
