//! Depths by passive declare, and emptiness by `basic.get`: every shared queue, over AMQP.

use crate::body::{Memory, Scene};
use crate::broker_link::BrokerLink;
use decide::effect::QueueRef;
use decide::side::Side;
use decide::world::{Emptiness, QueueDepth, Reading};
use futures::StreamExt;
use rabbit::Kind;
use rabbit::amqp::{Depth, Probe, Session};
use rabbit::management::Queue;
use std::collections::BTreeMap;
use std::time::Duration;

/// How old the list of queues may be.
const LIST: Duration = Duration::from_secs(5);
/// How long one declare may take. It takes 0.5 ms, or for ever.
const DECLARE: Duration = Duration::from_millis(500);
/// How long one get may take: where a single active consumer forbids it, a consumer of ours waits 0.2 s.
const GET: Duration = Duration::from_secs(1);
/// Queues asked at once on one session.
const PARALLEL: usize = 8;

/// What one queue said.
enum Answer<T> {
    Told(T),
    /// There is no such queue.
    Gone,
    Silent,
}

/// Counts every shared queue by passive declare; what does not answer is not counted, never 0.
pub async fn depths(scene: &Scene<'_>, memory: &mut Memory, side: Side) -> Reading<Vec<QueueDepth>> {
    let link = memory.link(side);
    let queues = match shared_queues(scene, link).await {
        Ok(queues) => queues,
        Err(why) => return Reading::Failed(why),
    };
    let mut depths = Vec::new();
    for (vhost, names) in queues {
        let answers =
            sweep(link, &vhost, &names, |session, name| async move { depth(&session, &name).await });
        for (queue, answer) in names.iter().zip(answers.await) {
            let counted = match answer {
                // One that comes and goes went: the next list will tell.
                Answer::Gone if !queue.durable => continue,
                Answer::Told(Depth { ready, consumers }) => Some((u64::from(ready), u64::from(consumers))),
                Answer::Gone | Answer::Silent => None,
            };
            depths.push(QueueDepth { queue: queue.name_in(&vhost), counted });
        }
    }
    Reading::Seen(depths)
}

/// Asks every shared queue by `basic.get`, which its leader has to answer. A message that comes is given back.
pub async fn emptiness(
    scene: &Scene<'_>,
    memory: &mut Memory,
    side: Side,
) -> Reading<Vec<(QueueRef, Emptiness)>> {
    let link = memory.link(side);
    let queues = match shared_queues(scene, link).await {
        Ok(queues) => queues,
        Err(why) => return Reading::Failed(why),
    };
    let mut seen = Vec::new();
    for (vhost, names) in queues {
        let answers = sweep(link, &vhost, &names, |session, name| async move { get(&session, &name).await });
        for (queue, answer) in names.iter().zip(answers.await) {
            let emptiness = match answer {
                Answer::Gone if !queue.durable => continue,
                Answer::Told(emptiness) => emptiness,
                Answer::Gone | Answer::Silent => Emptiness::NoAnswer,
            };
            seen.push((queue.name_in(&vhost), emptiness));
        }
    }
    Reading::Seen(seen)
}

/// A queue to be asked.
struct Asked {
    name: String,
    durable: bool,
}

impl Asked {
    fn name_in(&self, vhost: &str) -> QueueRef {
        QueueRef { vhost: vhost.to_owned(), name: self.name.clone() }
    }
}

/// The queues that hold messages of more than one connection, by vhost. Streams keep what was read and are
/// never empty; they are reported elsewhere.
async fn shared_queues(
    scene: &Scene<'_>,
    link: &mut BrokerLink,
) -> Result<BTreeMap<String, Vec<Asked>>, String> {
    let list = match link.queues.listed(LIST) {
        Some(list) => list,
        None => match link.ask(|client| async move { client.queues_totals().await }).await {
            Ok(list) => link.queues.keep(list),
            Err(error) => return Err(error.report()),
        },
    };
    let probe = scene.plan.names.probe_vhost();
    let mut queues: BTreeMap<String, Vec<Asked>> = BTreeMap::new();
    for queue in list.iter().filter(|queue| queue.vhost != probe && is_shared(queue)) {
        let durable = queue.durable != Some(false) && queue.auto_delete != Some(true);
        queues.entry(queue.vhost.clone()).or_default().push(Asked { name: queue.name.clone(), durable });
    }
    Ok(queues)
}

fn is_shared(queue: &Queue) -> bool {
    queue.exclusive != Some(true) && queue.queue_type.as_deref() != Some("stream")
}

/// Asks all queues of one vhost. Without a session all are silent; one that answers nothing is dropped, since
/// its node may be frozen, and the next pod gets its turn.
async fn sweep<T, Fut>(
    link: &mut BrokerLink,
    vhost: &str,
    queues: &[Asked],
    ask: impl Fn(Session, String) -> Fut,
) -> Vec<Answer<T>>
where
    Fut: Future<Output = Answer<T>>,
{
    let session = match link.session(vhost).await {
        Ok(session) => session,
        Err(error) => {
            tracing::debug!(vhost, error = error.report(), "no session");
            return queues.iter().map(|_| Answer::Silent).collect();
        }
    };
    // The futures are made first: a stream over borrowed closures would not be `Send`.
    let asked: Vec<_> = queues.iter().map(|queue| ask(session.clone(), queue.name.clone())).collect();
    let answers: Vec<Answer<T>> = futures::stream::iter(asked).buffered(PARALLEL).collect().await;
    if answers.iter().any(|answer| matches!(answer, Answer::Gone)) {
        link.queues.forget();
    }
    if !answers.is_empty() && answers.iter().all(|answer| matches!(answer, Answer::Silent)) {
        link.sessions.drop_vhost(vhost);
        link.rotate();
    }
    link.sessions.drop_if_broken(vhost);
    answers
}

async fn depth(session: &Session, queue: &str) -> Answer<Depth> {
    match tokio::time::timeout(DECLARE, session.depth(queue)).await {
        Ok(Ok(depth)) => Answer::Told(depth),
        Ok(Err(error)) if error.kind() == Kind::NotFound => Answer::Gone,
        Ok(Err(_)) | Err(_) => Answer::Silent,
    }
}

async fn get(session: &Session, queue: &str) -> Answer<Emptiness> {
    match tokio::time::timeout(GET, session.get_probe_empty(queue)).await {
        Ok(Ok(Probe::Empty)) => Answer::Told(Emptiness::Empty),
        Ok(Ok(Probe::Message { .. })) => Answer::Told(Emptiness::Message),
        // Somebody else is served: the queue is not proven empty.
        Ok(Ok(Probe::Taken | Probe::NoAnswer)) => Answer::Told(Emptiness::NoAnswer),
        Ok(Err(error)) if error.kind() == Kind::NotFound => Answer::Gone,
        Ok(Err(_)) | Err(_) => Answer::Silent,
    }
}
