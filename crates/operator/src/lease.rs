//! Leader election by a Lease, and the epoch that names one leadership.
//!
//! A lease alone fences nobody (DESIGN.md, invariant 13): it says who may act, the brokers and the API server
//! refuse a former leader by epoch user and resourceVersion.

use crate::settings::Settings;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Name of the Lease.
pub const LEASE: &str = "rabbitmq-migration-operator";
/// How long others must see no renewal before they take over. client-go's default.
const DURATION: Duration = Duration::from_secs(15);
/// How long after the last renewal was *sent* we still act. Less than `DURATION`, whatever the clocks say:
/// others begin to count when they see the renewal, which is later.
const DEADLINE: Duration = Duration::from_secs(10);
/// How often we renew: two renewals may fail before the deadline.
const RENEW: Duration = Duration::from_secs(5);
/// How long between two looks at a Lease that another holds, or after a failure.
const RETRY: Duration = Duration::from_secs(2);
/// How long one call may take.
const CALL: Duration = Duration::from_secs(3);

/// One leadership: who holds it, and whether it still holds.
#[derive(Clone, Debug)]
pub struct Epoch {
    uid: String,
    transitions: i32,
    holder: String,
    state: Arc<watch::Sender<Term>>,
}

/// Until when the term holds.
#[derive(Clone, Copy, Debug)]
enum Term {
    /// Until then, unless it is renewed.
    Held(Instant),
    /// Lost or given up; it never comes back.
    Over,
}

impl Epoch {
    fn new(uid: String, transitions: i32, holder: String, sent: Instant) -> Self {
        let (state, _) = watch::channel(Term::Held(sent + DEADLINE));
        Self { uid, transitions, holder, state: Arc::new(state) }
    }

    /// Whether we may still act.
    pub fn is_held(&self) -> bool {
        match *self.state.borrow() {
            Term::Held(until) => Instant::now() < until,
            Term::Over => false,
        }
    }

    /// A short text that no other epoch of this Lease has: `<first eight digits of its uid>.<transitions>`.
    pub fn tag(&self) -> String {
        let uid8: String = self.uid.chars().filter(char::is_ascii_hexdigit).take(8).collect();
        format!("{uid8}.{}", self.transitions)
    }

    /// Moves the deadline of a term that still holds. What is over stays over: who asked `is_held` meanwhile
    /// has drawn his conclusions.
    fn prolong(&self, to: Instant) {
        self.state.send_if_modified(|term| match term {
            Term::Held(until) if Instant::now() < *until => {
                *until = to;
                true
            }
            Term::Held(_) | Term::Over => false,
        });
    }

    /// Resolves once the epoch holds no longer.
    pub async fn lost(&self) {
        let mut state = self.state.subscribe();
        loop {
            let term = *state.borrow_and_update();
            let Term::Held(until) = term else { return };
            if Instant::now() >= until {
                return;
            }
            // A renewal moves the deadline; whatever comes first is looked at again.
            let _ = tokio::time::timeout_at(until, state.changed()).await;
        }
    }

    /// Gives the Lease back, so that a successor need not wait. Call after the last effect. Cut: the
    /// successor waits for `DURATION`.
    pub async fn release(&self, client: Client, settings: &Settings) {
        let was_held = self.is_held();
        self.state.send_replace(Term::Over);
        if !was_held {
            return;
        }
        let api = Api::namespaced(client, &settings.operator_namespace);
        let given_back = async {
            let mut lease = get(&api).await?;
            if self.is_ours(&lease) {
                spec(&mut lease).holder_identity = None;
                replace(&api, &lease).await?;
            }
            Ok::<_, kube::Error>(())
        };
        if let Err(error) = given_back.await {
            tracing::warn!(error = told(&error), "the lease could not be released: the successor waits 15 s");
        }
    }

    /// Whether `lease` is this epoch's.
    fn is_ours(&self, lease: &Lease) -> bool {
        let spec = lease.spec.clone().unwrap_or_default();
        lease.metadata.uid.as_deref() == Some(&self.uid)
            && spec.holder_identity.as_deref() == Some(&self.holder)
            && spec.lease_transitions == Some(self.transitions)
    }
}

/// Waits until we are the leader and keeps renewing in the background. Never fails: what goes wrong is logged
/// and tried again, since an operator that cannot lead has nothing else to do.
pub async fn acquire(client: Client, settings: &Settings) -> Epoch {
    let api: Api<Lease> = Api::namespaced(client, &settings.operator_namespace);
    let holder = format!("{}_{}", settings.pod_name, incarnation());
    let mut seen = Seen::default();
    loop {
        match attempt(&api, &holder, &mut seen).await {
            Ok(Some(epoch)) => {
                tracing::info!(epoch = %epoch.tag(), "leading");
                tokio::spawn(keep(api, epoch.clone()));
                return epoch;
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(error = told(&error), "acquire lease"),
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// A Lease of another holder as we saw it last, and since when it has not changed.
#[derive(Default)]
struct Seen {
    version: Option<String>,
    since: Option<Instant>,
}

impl Seen {
    /// True once the Lease has stood unchanged for `wait`, by our own clock.
    fn is_stale(&mut self, version: Option<&str>, wait: Duration, now: Instant) -> bool {
        if self.since.is_none() || self.version.as_deref() != version {
            self.version = version.map(str::to_owned);
            self.since = Some(now);
        }
        self.since.is_some_and(|since| now.duration_since(since) >= wait)
    }
}

/// Takes the Lease if it is free.
async fn attempt(api: &Api<Lease>, holder: &str, seen: &mut Seen) -> kube::Result<Option<Epoch>> {
    let sent = Instant::now();
    let taken = match get(api).await {
        Ok(mut lease) if is_free(&lease, seen, sent) => {
            let transitions = spec(&mut lease).lease_transitions.unwrap_or_default();
            fill(&mut lease, holder, transitions.saturating_add(1));
            replace(api, &lease).await
        }
        Ok(_) => return Ok(None),
        Err(kube::Error::Api(status)) if status.code == 404 => create(api, holder).await,
        Err(error) => return Err(error),
    };
    match taken {
        Ok(lease) => Ok(Some(epoch_of(&lease, holder, sent))),
        // Somebody else was quicker.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_free(lease: &Lease, seen: &mut Seen, now: Instant) -> bool {
    let spec = lease.spec.clone().unwrap_or_default();
    if spec.holder_identity.as_deref().unwrap_or_default().is_empty() {
        return true;
    }
    let wait = spec
        .lease_duration_seconds
        .and_then(|seconds| u64::try_from(seconds).ok())
        .map_or(DURATION, Duration::from_secs);
    seen.is_stale(lease.metadata.resource_version.as_deref(), wait, now)
}

fn epoch_of(lease: &Lease, holder: &str, sent: Instant) -> Epoch {
    let transitions = lease.spec.as_ref().and_then(|spec| spec.lease_transitions).unwrap_or_default();
    Epoch::new(lease.metadata.uid.clone().unwrap_or_default(), transitions, holder.to_owned(), sent)
}

/// Renews until the epoch is over.
async fn keep(api: Api<Lease>, epoch: Epoch) {
    let mut pause = RENEW;
    loop {
        tokio::time::sleep(pause).await;
        if !epoch.is_held() {
            epoch.state.send_replace(Term::Over);
            return;
        }
        let sent = Instant::now();
        match renew(&api, &epoch).await {
            Ok(true) => {
                epoch.prolong(sent + DEADLINE);
                pause = RENEW;
            }
            Ok(false) => {
                tracing::error!("another holds the lease");
                epoch.state.send_replace(Term::Over);
                return;
            }
            Err(error) => {
                tracing::warn!(error = told(&error), "renew lease");
                pause = RETRY;
            }
        }
    }
}

/// Renews once; false where the Lease is not ours any more.
async fn renew(api: &Api<Lease>, epoch: &Epoch) -> kube::Result<bool> {
    let mut lease = match get(api).await {
        Ok(lease) => lease,
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(false),
        Err(error) => return Err(error),
    };
    if !epoch.is_ours(&lease) {
        return Ok(false);
    }
    spec(&mut lease).renew_time = Some(MicroTime(Timestamp::now()));
    replace(api, &lease).await.map(|_| true)
}

fn spec(lease: &mut Lease) -> &mut LeaseSpec {
    lease.spec.get_or_insert_with(LeaseSpec::default)
}

fn fill(lease: &mut Lease, holder: &str, transitions: i32) {
    let now = MicroTime(Timestamp::now());
    let spec = spec(lease);
    spec.holder_identity = Some(holder.to_owned());
    spec.lease_duration_seconds = i32::try_from(DURATION.as_secs()).ok();
    spec.acquire_time = Some(now.clone());
    spec.renew_time = Some(now);
    spec.lease_transitions = Some(transitions);
}

async fn create(api: &Api<Lease>, holder: &str) -> kube::Result<Lease> {
    let mut lease =
        Lease { metadata: ObjectMeta { name: Some(LEASE.to_owned()), ..ObjectMeta::default() }, spec: None };
    fill(&mut lease, holder, 1);
    in_time(api.create(&PostParams::default(), &lease)).await
}

async fn get(api: &Api<Lease>) -> kube::Result<Lease> {
    in_time(api.get(LEASE)).await
}

/// Writes `lease` if nobody wrote it since it was read: the object carries its resourceVersion.
async fn replace(api: &Api<Lease>, lease: &Lease) -> kube::Result<Lease> {
    in_time(api.replace(LEASE, &PostParams::default(), lease)).await
}

async fn in_time<T>(call: impl Future<Output = kube::Result<T>>) -> kube::Result<T> {
    match tokio::time::timeout(CALL, call).await {
        Ok(answer) => answer,
        Err(elapsed) => Err(kube::Error::Service(elapsed.into())),
    }
}

/// What went wrong, in the API server's own words where it answered.
fn told(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

/// Tells two lives of one pod name apart. Chance, not security: a clash costs one wait of `DURATION`.
fn incarnation() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(holder: Option<&str>, version: &str) -> Lease {
        let mut lease = Lease::default();
        lease.metadata.resource_version = Some(version.to_owned());
        spec(&mut lease).holder_identity = holder.map(str::to_owned);
        lease
    }

    #[tokio::test]
    async fn an_epoch_is_lost_when_it_is_not_renewed() {
        let sent = Instant::now() + Duration::from_millis(30) - DEADLINE;
        let epoch = Epoch::new("ab-cd".to_owned(), 3, "me".to_owned(), sent);
        assert!(epoch.is_held());
        assert_eq!(epoch.tag(), "abcd.3");
        epoch.lost().await;
        assert!(!epoch.is_held());
        epoch.prolong(Instant::now() + DEADLINE);
        assert!(!epoch.is_held(), "what is over stays over");
    }

    #[test]
    fn a_lease_is_free_when_nobody_renews_it() {
        let mut seen = Seen::default();
        let start = Instant::now();
        assert!(is_free(&lease(None, "1"), &mut seen, start));
        assert!(is_free(&lease(Some(""), "1"), &mut seen, start));
        assert!(!is_free(&lease(Some("other"), "1"), &mut seen, start));
        let later = start + DURATION;
        assert!(!is_free(&lease(Some("other"), "2"), &mut seen, later), "renewed meanwhile");
        assert!(is_free(&lease(Some("other"), "2"), &mut seen, later + DURATION));
    }

    #[test]
    fn two_lives_differ() {
        assert_ne!(incarnation(), incarnation());
    }
}
