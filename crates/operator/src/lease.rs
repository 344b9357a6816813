//! Leader election by a Lease, and the epoch that names one leadership.
//!
//! A lease alone fences nobody (DESIGN.md, invariant 13): it says who may act, the brokers and the API server
//! refuse a former leader by epoch user and resourceVersion.

use crate::settings::{Settings, Timing};
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
/// How long one call may take.
const CALL: Duration = Duration::from_secs(3);
/// Writes that are tried when the Lease is given back: our own renewal may come between.
const GIVE_BACK: usize = 3;

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
    fn new(uid: String, transitions: i32, holder: String, until: Instant) -> Self {
        let (state, _) = watch::channel(Term::Held(until));
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
    /// successor waits until it expires.
    pub async fn release(&self, client: Client, settings: &Settings) {
        let was_held = self.is_held();
        self.state.send_replace(Term::Over);
        if !was_held {
            return;
        }
        let api = Api::namespaced(client, &settings.operator_namespace);
        let mut left = GIVE_BACK;
        loop {
            left -= 1;
            match self.give_back(&api).await {
                Ok(()) => return,
                Err(error) if is_conflict(&error) && left > 0 => {}
                Err(error) => {
                    let error = told(&error);
                    tracing::warn!(
                        error,
                        "the lease was not given back: the successor waits until it expires"
                    );
                    return;
                }
            }
        }
    }

    async fn give_back(&self, api: &Api<Lease>) -> kube::Result<()> {
        let mut lease = get(api).await?;
        if self.is_ours(&lease) {
            spec(&mut lease).holder_identity = None;
            replace(api, &lease).await?;
        }
        Ok(())
    }

    /// Looks whether the Lease is still ours; one that is not ends the epoch. For when a write was refused:
    /// whoever wrote between may lead now.
    pub async fn confirm(&self, client: Client, settings: &Settings) {
        let api = Api::namespaced(client, &settings.operator_namespace);
        let is_ours = match get(&api).await {
            Ok(lease) => self.is_ours(&lease),
            Err(kube::Error::Api(status)) if status.code == 404 => false,
            Err(error) => {
                // The deadline decides.
                tracing::warn!(error = told(&error), "whether the lease is still ours cannot be read");
                return;
            }
        };
        if !is_ours {
            tracing::error!("another holds the lease");
            self.state.send_replace(Term::Over);
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
pub async fn acquire(client: Client, settings: &Settings, timing: Timing) -> Epoch {
    let api: Api<Lease> = Api::namespaced(client, &settings.operator_namespace);
    let holder = format!("{}_{}", settings.pod_name, incarnation());
    let mut seen = Seen::default();
    loop {
        match attempt(&api, &holder, &mut seen, timing).await {
            Ok(Some(epoch)) => {
                tracing::info!(epoch = %epoch.tag(), "leading");
                tokio::spawn(keep(api, epoch.clone(), timing));
                return epoch;
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(error = told(&error), "acquire lease"),
        }
        tokio::time::sleep(timing.retry).await;
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
async fn attempt(
    api: &Api<Lease>,
    holder: &str,
    seen: &mut Seen,
    timing: Timing,
) -> kube::Result<Option<Epoch>> {
    let sent = Instant::now();
    let taken = match get(api).await {
        Ok(mut lease) if is_free(&lease, seen, sent, timing) => {
            let transitions = spec(&mut lease).lease_transitions.unwrap_or_default();
            fill(&mut lease, holder, transitions.saturating_add(1), timing);
            replace(api, &lease).await
        }
        Ok(_) => return Ok(None),
        Err(kube::Error::Api(status)) if status.code == 404 => create(api, holder, timing).await,
        Err(error) => return Err(error),
    };
    match taken {
        Ok(lease) => Ok(Some(epoch_of(&lease, holder, sent + timing.deadline))),
        // Somebody else was quicker.
        Err(error) if is_conflict(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_free(lease: &Lease, seen: &mut Seen, now: Instant, timing: Timing) -> bool {
    let spec = lease.spec.clone().unwrap_or_default();
    if spec.holder_identity.as_deref().unwrap_or_default().is_empty() {
        return true;
    }
    let wait = spec
        .lease_duration_seconds
        .and_then(|seconds| u64::try_from(seconds).ok())
        .map_or(timing.lease, Duration::from_secs);
    seen.is_stale(lease.metadata.resource_version.as_deref(), wait, now)
}

fn epoch_of(lease: &Lease, holder: &str, until: Instant) -> Epoch {
    let transitions = lease.spec.as_ref().and_then(|spec| spec.lease_transitions).unwrap_or_default();
    Epoch::new(lease.metadata.uid.clone().unwrap_or_default(), transitions, holder.to_owned(), until)
}

/// Renews until the epoch is over.
async fn keep(api: Api<Lease>, epoch: Epoch, timing: Timing) {
    let mut pause = timing.renew;
    loop {
        tokio::time::sleep(pause).await;
        if !epoch.is_held() {
            epoch.state.send_replace(Term::Over);
            return;
        }
        let sent = Instant::now();
        match renew(&api, &epoch).await {
            Ok(true) => {
                epoch.prolong(sent + timing.deadline);
                pause = timing.renew;
            }
            Ok(false) => {
                tracing::error!("another holds the lease");
                epoch.state.send_replace(Term::Over);
                return;
            }
            Err(error) => {
                tracing::warn!(error = told(&error), "renew lease");
                pause = timing.retry;
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
    match replace(api, &lease).await {
        Ok(_) => Ok(true),
        // A successor wrote it, or an earlier renewal of ours that was thought lost.
        Err(error) if is_conflict(&error) && !epoch.is_ours(&get(api).await?) => Ok(false),
        Err(error) => Err(error),
    }
}

fn spec(lease: &mut Lease) -> &mut LeaseSpec {
    lease.spec.get_or_insert_with(LeaseSpec::default)
}

fn fill(lease: &mut Lease, holder: &str, transitions: i32, timing: Timing) {
    let now = MicroTime(Timestamp::now());
    let spec = spec(lease);
    spec.holder_identity = Some(holder.to_owned());
    spec.lease_duration_seconds = i32::try_from(timing.lease.as_secs()).ok();
    spec.acquire_time = Some(now.clone());
    spec.renew_time = Some(now);
    spec.lease_transitions = Some(transitions);
}

async fn create(api: &Api<Lease>, holder: &str, timing: Timing) -> kube::Result<Lease> {
    let mut lease =
        Lease { metadata: ObjectMeta { name: Some(LEASE.to_owned()), ..ObjectMeta::default() }, spec: None };
    fill(&mut lease, holder, 1, timing);
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

fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

/// Tells two lives of one pod name apart. Chance, not security: a clash costs one wait for the Lease to expire.
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
        let until = Instant::now() + Duration::from_millis(30);
        let epoch = Epoch::new("ab-cd".to_owned(), 3, "me".to_owned(), until);
        assert!(epoch.is_held());
        assert_eq!(epoch.tag(), "abcd.3");
        epoch.lost().await;
        assert!(!epoch.is_held());
        epoch.prolong(Instant::now() + Duration::from_secs(10));
        assert!(!epoch.is_held(), "what is over stays over");
    }

    #[test]
    fn a_lease_is_free_when_nobody_renews_it() {
        let mut seen = Seen::default();
        let start = Instant::now();
        let timing = Timing::default();
        let is_free = |lease: &Lease, seen: &mut Seen, now| super::is_free(lease, seen, now, timing);
        assert!(is_free(&lease(None, "1"), &mut seen, start));
        assert!(is_free(&lease(Some(""), "1"), &mut seen, start));
        assert!(!is_free(&lease(Some("other"), "1"), &mut seen, start));
        let later = start + timing.lease;
        assert!(!is_free(&lease(Some("other"), "2"), &mut seen, later), "renewed meanwhile");
        assert!(is_free(&lease(Some("other"), "2"), &mut seen, later + timing.lease));
    }

    #[test]
    fn two_lives_differ() {
        assert_ne!(incarnation(), incarnation());
    }
}
