//! Wakes a migration when something that it reads changes. What may not be watched is polled as before.
//!
//! Watches carry metadata alone and nothing of it is kept, so their memory does not grow with the cluster.

use crate::interest::{Change, Concern, Kind, concerned};
use crate::settings::Timing;
use api::RabbitMQMigration;
use decide::fact::Fact;
use futures::channel::mpsc::{Receiver, Sender};
use futures::{SinkExt, Stream, StreamExt, future, stream};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::{DynamicObject, PostParams};
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch};
use kube::{Api, Client};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Changes on their way. Who is slower than the watches holds them up; nothing is lost.
pub const ROOM: usize = 256;

/// Facts that a change made stale, by the migration's uid, until its next pass.
#[derive(Default)]
pub struct Marks(Mutex<HashMap<String, BTreeSet<Fact>>>);

impl Marks {
    /// Adds to what is stale.
    pub fn add(&self, uid: &str, facts: &BTreeSet<Fact>) {
        self.lock().entry(uid.to_owned()).or_default().extend(facts);
    }

    /// Takes what is stale.
    pub fn take(&self, uid: &str) -> BTreeSet<Fact> {
        self.lock().remove(uid).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, BTreeSet<Fact>>> {
        // Only ever a set of facts: whatever a panic left in it is good enough.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets the first of a storm through at once and gathers the rest: one wake per `gap` and migration. Unlike a
/// debounce it puts nothing off for as long as the storm lasts, and a wake follows every change.
struct Throttle {
    gap: Duration,
    woken: HashMap<ObjectRef<RabbitMQMigration>, Instant>,
    due: HashMap<ObjectRef<RabbitMQMigration>, Instant>,
}

impl Throttle {
    fn new(gap: Duration) -> Self {
        Self { gap, woken: HashMap::new(), due: HashMap::new() }
    }

    /// Plans a wake; one that is still to come covers this change too.
    fn note(&mut self, migration: &ObjectRef<RabbitMQMigration>, now: Instant) {
        let again = self.woken.get(migration).map_or(now, |last| (*last + self.gap).max(now));
        self.due.entry(migration.clone()).or_insert(again);
    }

    /// When the next wake is due.
    fn next(&self) -> Option<Instant> {
        self.due.values().min().copied()
    }

    /// Takes what is due.
    fn take(&mut self, now: Instant) -> Vec<ObjectRef<RabbitMQMigration>> {
        let gap = self.gap;
        self.woken.retain(|_, last| now < *last + gap);
        let due: Vec<_> = self.due.iter().filter(|(_, at)| **at <= now).map(|(who, _)| who.clone()).collect();
        for migration in &due {
            self.due.remove(migration);
            self.woken.insert(migration.clone(), now);
        }
        due
    }
}

/// What is known while changes come in.
struct Waker {
    changes: Receiver<Change>,
    migrations: Store<RabbitMQMigration>,
    marks: Arc<Marks>,
    throttle: Throttle,
}

/// The migrations to wake, as `changes` come in; ends with them.
pub fn wakes(
    changes: Receiver<Change>,
    migrations: Store<RabbitMQMigration>,
    marks: Arc<Marks>,
    gap: Duration,
) -> impl Stream<Item = ObjectRef<RabbitMQMigration>> {
    let waker = Waker { changes, migrations, marks, throttle: Throttle::new(gap) };
    stream::unfold(waker, |mut waker| async move {
        let due = waker.due().await?;
        Some((stream::iter(due), waker))
    })
    .flatten()
}

impl Waker {
    /// The next wakes; none once there are no more changes.
    async fn due(&mut self) -> Option<Vec<ObjectRef<RabbitMQMigration>>> {
        loop {
            let due = self.throttle.take(Instant::now());
            if !due.is_empty() {
                return Some(due);
            }
            let next = self.throttle.next();
            let pause = async {
                match next {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => future::pending().await,
                }
            };
            tokio::select! {
                change = self.changes.next() => self.note(&change?),
                () = pause => {}
            }
        }
    }

    fn note(&mut self, change: &Change) {
        let known = self.migrations.state();
        for Concern { migration, uid, facts } in concerned(known.iter().map(AsRef::as_ref), change) {
            // Marked before the wake: the pass that it causes finds the mark.
            self.marks.add(&uid, &facts);
            self.throttle.note(&migration, Instant::now());
        }
    }
}

/// Watches all kinds, in one namespace or in all, until it is dropped.
pub async fn watch_all(client: Client, namespace: Option<String>, changes: Sender<Change>, timing: Timing) {
    let each = Kind::ALL.into_iter().map(|kind| {
        let namespace = namespace.clone().filter(|_| !kind.is_of_cluster());
        follow(Source { client: client.clone(), namespace, kind }, changes.clone(), timing)
    });
    future::join_all(each).await;
}

/// What is watched, where, and as whom.
struct Source {
    client: Client,
    namespace: Option<String>,
    kind: Kind,
}

/// Watches while that is allowed, and asks again every few minutes while it is not.
async fn follow(source: Source, mut changes: Sender<Change>, timing: Timing) {
    let resource = source.kind.names().2;
    let mut was_refused = false;
    loop {
        match source.refused().await {
            Ok(None) => {
                if was_refused {
                    tracing::info!(resource, "changes are watched from now on");
                }
                was_refused = false;
                source.stream(&mut changes).await;
                if changes.is_closed() {
                    // The queue has ended; whoever waits for what still runs must not be cut short by us.
                    return future::pending().await;
                }
                tracing::warn!(resource, "the watch was refused: changes are noticed by polling");
            }
            Ok(Some(verb)) if !was_refused => {
                was_refused = true;
                tracing::warn!(resource, verb, "no access to watch: changes are noticed by polling");
            }
            Ok(Some(_)) => {}
            Err(error) => {
                let error = crate::error::chain(&error);
                tracing::warn!(resource, error, "whether changes may be watched could not be asked");
            }
        }
        tokio::time::sleep(timing.review).await;
    }
}

impl Source {
    /// The verb that is refused, of the two that a watch needs.
    async fn refused(&self) -> kube::Result<Option<&'static str>> {
        for verb in ["list", "watch"] {
            if !self.may(verb).await? {
                return Ok(Some(verb));
            }
        }
        Ok(None)
    }

    async fn may(&self, verb: &str) -> kube::Result<bool> {
        let (group, _, resource) = self.kind.names();
        let attributes = ResourceAttributes {
            group: Some(group.to_owned()),
            resource: Some(resource.to_owned()),
            verb: Some(verb.to_owned()),
            namespace: self.namespace.clone(),
            ..ResourceAttributes::default()
        };
        let question = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() },
            ..SelfSubjectAccessReview::default()
        };
        let api: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        let answer = api.create(&PostParams::default(), &question).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }

    /// Hands on every change until access is refused. The first list is what everybody has seen already; a
    /// later one may hold what was missed.
    async fn stream(&self, changes: &mut Sender<Change>) {
        let resource = self.kind.resource();
        let api: Api<PartialObjectMeta<DynamicObject>> = match &self.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        let mut events = std::pin::pin!(watch(api, watcher::Config::default()).default_backoff());
        let mut was_listed = false;
        while let Some(event) = events.next().await {
            let object = match event {
                Ok(Event::Apply(object) | Event::Delete(object)) => object,
                Ok(Event::InitApply(object)) if was_listed => object,
                Ok(Event::Init | Event::InitApply(_)) => continue,
                Ok(Event::InitDone) => {
                    was_listed = true;
                    continue;
                }
                Err(error) if is_refusal(&error) => return,
                Err(error) => {
                    let error = crate::error::chain(&error);
                    tracing::warn!(resource = resource.plural, error, "the watch broke and is begun again");
                    continue;
                }
            };
            if changes.send(Change::new(self.kind, &object.metadata)).await.is_err() {
                return;
            }
        }
    }
}

fn is_refusal(error: &watcher::Error) -> bool {
    let code = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status.code,
        _ => return false,
    };
    code == 403
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAP: Duration = Duration::from_secs(1);

    /// A hundred changes a second for ten seconds, looked at after each.
    #[test]
    fn a_storm_costs_one_wake_per_gap_and_its_last_change_is_seen() {
        let mut throttle = Throttle::new(GAP);
        let (one, other) = (ObjectRef::new("a").within("n"), ObjectRef::new("b").within("n"));
        let start = Instant::now();
        let mut wakes = Vec::new();
        let mut last = start;
        for n in 0..1000 {
            last = start + Duration::from_millis(10) * n;
            throttle.note(&one, last);
            wakes.extend(throttle.take(last).into_iter().map(|_| last));
        }
        assert_eq!(wakes.first(), Some(&start), "the first change wakes at once");
        assert_eq!(wakes.len(), 10);
        assert!(wakes.windows(2).all(|pair| pair[1] - pair[0] >= GAP));
        let rest = throttle.next().unwrap();
        assert!(rest >= last, "a wake follows the last change");
        throttle.note(&other, last);
        assert_eq!(throttle.take(last), [other], "others have their own measure");
        assert_eq!(throttle.take(rest), [one]);
        assert_eq!(throttle.next(), None);
    }

    /// All changes come before anybody looks: the wake that was planned first covers them, and the next change
    /// has one of its own.
    #[test]
    fn a_change_after_a_wake_has_a_wake_of_its_own() {
        let mut throttle = Throttle::new(GAP);
        let one = ObjectRef::new("a").within("n");
        let start = Instant::now();
        for _ in 0..100 {
            throttle.note(&one, start);
        }
        assert_eq!(throttle.take(start).len(), 1);
        throttle.note(&one, start);
        assert_eq!(throttle.next(), Some(start + GAP));
    }

    #[test]
    fn after_a_rest_a_change_wakes_at_once_and_nothing_is_kept() {
        let mut throttle = Throttle::new(GAP);
        let start = Instant::now();
        for n in 0..100 {
            throttle.note(&ObjectRef::new(&format!("m{n}")), start);
        }
        assert_eq!(throttle.take(start).len(), 100);
        let (later, again) = (start + GAP * 3, ObjectRef::new("m1"));
        throttle.note(&again, later);
        assert_eq!(throttle.take(later), [again]);
        assert_eq!((throttle.woken.len(), throttle.due.len()), (1, 0));
    }

    #[test]
    fn marks_gather_until_they_are_taken() {
        let marks = Marks::default();
        marks.add("u", &[Fact::Nodes].into());
        marks.add("u", &[Fact::Volumes].into());
        assert_eq!(marks.take("u"), [Fact::Nodes, Fact::Volumes].into());
        assert!(marks.take("u").is_empty());
    }
}
