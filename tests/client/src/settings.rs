//! Flags and environment of the command, read once.

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::link::Target;

/// An honest AMQP client with a ledger of every message.
#[derive(Parser)]
#[command(name = "client", version, about)]
pub struct Settings {
    /// What to be.
    #[command(subcommand)]
    pub role: Role,
}

/// What to be.
#[derive(Subcommand)]
pub enum Role {
    /// Publishes at a fixed rate, with confirms; sends again whatever was unconfirmed.
    Publish {
        /// How to connect.
        #[command(flatten)]
        connect: Connect,
        /// What to publish.
        #[command(flatten)]
        publish: PublishArgs,
    },
    /// Consumes one queue and acks after the work.
    Consume {
        /// How to connect.
        #[command(flatten)]
        connect: Connect,
        /// What to consume.
        #[command(flatten)]
        consume: ConsumeArgs,
    },
    /// Both on one connection, as Spring AMQP does.
    Work {
        /// How to connect.
        #[command(flatten)]
        connect: Connect,
        /// What to publish.
        #[command(flatten)]
        publish: PublishArgs,
        /// What to consume.
        #[command(flatten)]
        consume: ConsumeArgs,
    },
}

/// How to connect.
#[derive(Args)]
pub struct Connect {
    /// Host and port; the name is resolved anew for each connection.
    #[arg(long, env = "AMQP_ADDRESS", default_value = "rabbitmq:5672")]
    pub uri: String,
    /// Vhost.
    #[arg(long, env = "AMQP_VHOST", default_value = "/")]
    pub vhost: String,
    /// User.
    #[arg(long, env = "AMQP_USER")]
    pub user: String,
    /// Password.
    #[arg(long, env = "AMQP_PASSWORD", hide_env_values = true)]
    pub password: String,
    /// The client's id: in message bodies, connection names and ledgers. No spaces.
    #[arg(long, env = "CLIENT_ID")]
    pub id: String,
    /// How many connections, each a publisher or consumer of its own; they share the rate.
    #[arg(long, env = "CLIENT_CONNECTIONS", default_value_t = 1, value_parser = at_least_one)]
    pub connections: usize,
    /// The pause before each attempt to connect again; Java's clients wait 5000.
    #[arg(long, env = "CLIENT_RECONNECT_MILLIS", default_value_t = 50)]
    pub reconnect_millis: u64,
    /// Heartbeat in seconds.
    #[arg(long, env = "CLIENT_HEARTBEAT", default_value_t = 10)]
    pub heartbeat: u16,
    /// Where `/ledger` and `/stats` are served.
    #[arg(long, env = "CLIENT_LISTEN", default_value = "0.0.0.0:8080")]
    pub listen: SocketAddr,
}

/// What to publish.
#[derive(Args)]
pub struct PublishArgs {
    /// Exchange; empty for the default one.
    #[arg(long, env = "PUBLISH_EXCHANGE", default_value = "")]
    pub exchange: String,
    /// Routing key.
    #[arg(long, env = "PUBLISH_ROUTING_KEY")]
    pub routing_key: String,
    /// A queue that each message has to reach, for the checker; may be repeated.
    #[arg(long = "reaches", env = "PUBLISH_REACHES", value_delimiter = ',', required = true)]
    pub reaches: Vec<String>,
    /// Messages a second, of all connections together.
    #[arg(long, env = "PUBLISH_RATE", default_value_t = 100.0, value_parser = positive)]
    pub rate: f64,
    /// How many messages may be unconfirmed, per connection.
    #[arg(long, env = "PUBLISH_WINDOW", default_value_t = 20, value_parser = at_least_one)]
    pub window: usize,
    /// Size of a message in bytes.
    #[arg(long, env = "PUBLISH_SIZE", default_value_t = 3000)]
    pub size: usize,
}

/// What to consume.
#[derive(Args)]
pub struct ConsumeArgs {
    /// Queue.
    #[arg(long, env = "CONSUME_QUEUE")]
    pub queue: String,
    /// How many deliveries may be unacked, per connection.
    #[arg(long, env = "CONSUME_PREFETCH", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..))]
    pub prefetch: u16,
    /// How long the work on a message takes; one message at a time.
    #[arg(long, env = "CONSUME_WORK_MICROS", default_value_t = 0)]
    pub work_micros: u64,
    /// Refuses for good every message whose number can be divided by this.
    #[arg(long, env = "CONSUME_REJECT_EVERY", value_parser = clap::value_parser!(u64).range(1..))]
    pub reject_every: Option<u64>,
    /// The queue where refused messages have to arrive, for the checker.
    #[arg(long, env = "CONSUME_DEAD_LETTERS")]
    pub dead_letters: Option<String>,
}

impl Connect {
    /// Where to connect, or what is wrong with the address.
    pub fn target(&self) -> Result<Target, String> {
        let address = self.uri.trim_start_matches("amqp://");
        let (host, port) = address.rsplit_once(':').ok_or_else(|| format!("{address:?} is not HOST:PORT"))?;
        Ok(Target {
            host: host.to_owned(),
            port: port.parse().map_err(|_| format!("{port:?} is not a port"))?,
            vhost: self.vhost.clone(),
            user: self.user.clone(),
            password: self.password.clone(),
            heartbeat: self.heartbeat,
        })
    }

    /// The pause before each attempt to connect again.
    pub fn reconnect(&self) -> Duration {
        Duration::from_millis(self.reconnect_millis)
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
    }
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number),
        Ok(_) => Err("must be above 0".to_owned()),
        Err(error) => Err(format!("{error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Settings, clap::Error> {
        Settings::try_parse_from(words.split_whitespace())
    }

    #[test]
    fn reads_a_publisher() {
        let text = "client publish --user u --password p --id o --exchange e --routing-key k --reaches a,b";
        let Role::Publish { connect, publish } = parse(text).unwrap().role else { panic!("not a publisher") };
        assert_eq!((publish.reaches, publish.window, publish.size), (vec!["a".into(), "b".into()], 20, 3000));
        let target = connect.target().unwrap();
        assert_eq!((target.host.as_str(), target.port), ("rabbitmq", 5672));
    }

    #[test]
    fn refuses_nonsense() {
        let publish = "client publish --user u --password p --id o --routing-key k --reaches q";
        let consume = "client consume --user u --password p --id o --queue q";
        for text in [
            format!("{publish} --rate 0"),
            format!("{publish} --window 0"),
            format!("{consume} --prefetch 0"),
            format!("{consume} --reject-every 0"),
            "client publish --user u --password p --id o --routing-key k".to_owned(),
        ] {
            assert!(parse(&text).is_err(), "{text}");
        }
    }
}
