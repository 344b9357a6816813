//! Makes the engines and books of a process from its settings.

use std::time::{Duration, Instant};

use crate::consume::Consume;
use crate::consumer_book::ConsumerBook;
use crate::document::QueueId;
use crate::engine::Engine;
use crate::hub::{Clock, Hub, Shared};
use crate::publish::Publish;
use crate::publisher_book::PublisherBook;
use crate::schedule::Schedule;
use crate::sessions::Sessions;
use crate::settings::{Connect, ConsumeArgs, PublishArgs, Role};

/// The books and what writes them.
pub struct Crew {
    /// The books.
    pub hub: Hub,
    /// One engine per connection.
    pub engines: Vec<Engine>,
}

impl Crew {
    /// Makes it, or says what is wrong with the settings.
    pub fn new(role: &Role) -> Result<Self, String> {
        match role {
            Role::Publish { connect, publish } => Self::make(connect, Some(publish), None),
            Role::Consume { connect, consume } => Self::make(connect, None, Some(consume)),
            Role::Work { connect, publish, consume } => Self::make(connect, Some(publish), Some(consume)),
        }
    }

    fn make(
        connect: &Connect,
        publish: Option<&PublishArgs>,
        consume: Option<&ConsumeArgs>,
    ) -> Result<Self, String> {
        if connect.id.is_empty() || connect.id.contains(char::is_whitespace) {
            return Err("the id must not be empty or contain spaces".to_owned());
        }
        let target = connect.target()?;
        let clock = Clock::start();
        let sessions = Shared::<Sessions>::default();
        let consumer = consume.map(|consume| consumer_book(connect, consume));
        let mut publishers = Vec::new();
        let mut engines = Vec::new();
        for number in 1..=connect.connections {
            let publish = publish.map(|args| publisher(connect, args, number, clock)).transpose()?;
            publishers.extend(publish.iter().map(|publish| publish.book.clone()));
            let consume = consumer.as_ref().zip(consume).map(|(book, args)| Consume {
                book: book.clone(),
                clock,
                queue: args.queue.as_str().into(),
                tag: format!("{}-{number}", connect.id).into(),
                prefetch: args.prefetch,
                work: Duration::from_micros(args.work_micros),
                reject_every: args.reject_every,
            });
            engines.push(Engine {
                number,
                name: format!("{}-{number}", connect.id),
                target: target.clone(),
                reconnect: connect.reconnect(),
                clock,
                sessions: sessions.clone(),
                publish,
                consume,
            });
        }
        let consumers = consumer.into_iter().collect();
        let (client, connections) = (connect.id.clone(), connect.connections);
        Ok(Self { hub: Hub { client, connections, clock, publishers, consumers, sessions }, engines })
    }
}

fn consumer_book(connect: &Connect, args: &ConsumeArgs) -> Shared<ConsumerBook> {
    let queue = QueueId::new(&connect.vhost, &args.queue);
    Shared::new(ConsumerBook::new(queue, connect.connections, args.dead_letters.clone()))
}

fn publisher(connect: &Connect, args: &PublishArgs, number: usize, clock: Clock) -> Result<Publish, String> {
    // A restarted client counts from 1 again: the time of its start keeps the two apart.
    let id = format!("{}-{number}@{:x}", connect.id, clock.started_at());
    let share = u32::try_from(connect.connections).map_err(|_| "too many connections".to_owned())?;
    Ok(Publish {
        book: Shared::new(PublisherBook::new(id, connect.vhost.clone(), args.reaches.clone())),
        clock,
        exchange: args.exchange.as_str().into(),
        routing_key: args.routing_key.as_str().into(),
        window: args.window,
        size: args.size,
        schedule: Schedule::new(args.rate / f64::from(share), Instant::now()),
    })
}
