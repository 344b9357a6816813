//! One test's corner of a real broker: a vhost and a user of its own.

use std::env;
use std::time::{Duration, Instant};

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use rabbit::amqp::Session;
use rabbit::management::{Client, Password, Permissions, VhostSpec};
use rabbit::{Credentials, Timeouts};
use serde_json::json;

pub(crate) const LIMIT: Duration = Duration::from_secs(5);

/// A broker and what the test may use on it.
pub(crate) struct World {
    pub(crate) admin: Client,
    pub(crate) amqp: String,
    pub(crate) vhost: String,
    pub(crate) user: Credentials,
}

impl World {
    /// Sets up vhost and user `contract-<name>`, or says why the test is skipped.
    pub(crate) async fn enter(name: &str) -> Option<Self> {
        let (Ok(url), Ok(amqp)) = (env::var("RABBIT_CONTRACT_URL"), env::var("RABBIT_CONTRACT_AMQP")) else {
            println!("skipped {name}: RABBIT_CONTRACT_URL and RABBIT_CONTRACT_AMQP name no broker");
            return None;
        };
        let value = |key| env::var(key).unwrap_or_else(|_| "guest".to_owned());
        let creds = Credentials::new(value("RABBIT_CONTRACT_USER"), value("RABBIT_CONTRACT_PASSWORD"));
        let admin = Client::new(&url, creds, Timeouts::default()).unwrap();
        // A slash and a percent sign: names that must survive every path.
        let vhost = format!("contract/{name}%2F");
        let user = Credentials::new(format!("contract-{name}"), "contract@pass:/w%rd");
        let world = Self { admin, amqp, vhost, user };
        world.leave().await;
        world.admin.put_vhost(&world.vhost, &VhostSpec::default()).await.unwrap();
        let password = Password::Clear(world.user.password.clone());
        world.admin.put_user(&world.user.username, &password, &["management"]).await.unwrap();
        for user in [world.user.username.clone(), world.admin.username().to_owned()] {
            world.admin.put_permissions(&world.all(&user)).await.unwrap();
        }
        Some(world)
    }

    /// Removes what the test made.
    pub(crate) async fn leave(&self) {
        self.admin.delete_vhost(&self.vhost).await.unwrap();
        self.admin.delete_user(&self.user.username).await.unwrap();
    }

    fn all(&self, user: &str) -> Permissions {
        let all = || ".*".to_owned();
        Permissions {
            user: user.to_owned(),
            vhost: self.vhost.clone(),
            configure: all(),
            write: all(),
            read: all(),
        }
    }

    pub(crate) async fn session(&self) -> rabbit::Result<Session> {
        Session::connect(&self.amqp, &self.vhost, &self.user, "contract", LIMIT).await
    }

    pub(crate) async fn queue(&self, name: &str, kind: &str) {
        let body = json!({ "durable": true, "arguments": { "x-queue-type": kind } });
        self.admin.put_queue(&self.vhost, name, &body).await.unwrap();
    }

    /// A plain lapin channel, for what an application would do.
    pub(crate) async fn application(&self) -> (Connection, Channel) {
        let hex = |byte| format!("%{byte:02X}");
        let encode = |text: &str| text.bytes().map(hex).collect::<Vec<_>>().concat();
        let uri = format!(
            "amqp://{}:{}@{}/{}",
            encode(&self.user.username),
            encode(self.user.password.expose()),
            self.amqp,
            encode(&self.vhost)
        );
        let connection = Connection::connect(&uri, ConnectionProperties::default()).await.unwrap();
        let channel = connection.create_channel().await.unwrap();
        channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
        (connection, channel)
    }

    /// Names of the user's open connections, live.
    pub(crate) async fn open_connections(&self) -> Vec<String> {
        let mine = |user: &Option<String>| user.as_deref() == Some(&self.user.username);
        let all = self.admin.live_connections().await.unwrap();
        all.into_iter().filter(|c| mine(&c.user)).map(|c| c.name).collect()
    }
}

/// Publishes `count` confirmed messages numbered from 0.
pub(crate) async fn publish(channel: &Channel, queue: &str, count: u32) {
    for number in 0..count {
        let properties =
            BasicProperties::default().with_delivery_mode(2).with_message_id(number.to_string().into());
        let options = BasicPublishOptions::default();
        let publish = channel.basic_publish("".into(), queue.into(), options, b"contract", properties);
        assert!(publish.await.unwrap().await.unwrap().is_ack());
    }
}

/// Waits until `check` holds; the time it took.
pub(crate) async fn until(what: &str, limit: Duration, mut check: impl AsyncFnMut() -> bool) -> Duration {
    let start = Instant::now();
    while !check().await {
        assert!(start.elapsed() < limit, "{what}: not within {limit:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    start.elapsed()
}
