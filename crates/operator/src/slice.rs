//! A slice: observe, decide and act in memory, for at most five seconds, until something must be stored.
//!
//! During a switch this is the sprint: one API round trip per step would make the pause. A slice ends with
//! what must be recorded; a phase is never changed within one.

use crate::act::act;
use crate::body::{Memory, Scene};
use crate::controller::Shared;
use crate::error::chain;
use crate::metrics::{EffectOutcome, PassOutcome};
use crate::observe::observe;
use crate::reconcile::stored;
use api::RabbitMQMigration;
use decide::plan::Plan;
use decide::step::{Step, Verdict};
use jiff::Timestamp;
use kube::runtime::reflector::ObjectRef;
use std::time::{Duration, Instant};

/// Longest slice: kube-runtime holds an object's events until its reconcile ends, and progress is stored at
/// the end of each.
const LENGTH: Duration = Duration::from_secs(5);
/// A wait longer than this ends a slice: it costs nothing to begin a new one.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// First and longest pause after an effect failed.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(30));
/// Longest pause after a failure while traffic moves: clients may be waiting.
const BACKOFF_IN_SWITCH: Duration = Duration::from_secs(2);

/// Runs one slice.
pub async fn run(
    shared: &Shared,
    migration: &RabbitMQMigration,
    plan: &Plan,
    memory: &mut Memory,
) -> Verdict {
    let begun = Instant::now();
    let mut status = stored(migration);
    loop {
        let scene = Scene { body: &shared.body, migration, plan, status: &status };
        observe(&scene, memory, &decide::wants(plan, &status)).await;
        let mut verdict = decide::next(plan, &status, &memory.world, Timestamp::now());
        count(shared, &verdict.step);
        match &verdict.step {
            Step::Do(effects) => {
                // What is done now must be seen.
                memory.rest = None;
                let done = act(&scene, memory, effects, &shared.metrics).await;
                if let Err(error) = done {
                    return failed(memory, plan, verdict, &chain(&error));
                }
                memory.failures = 0;
            }
            Step::Go(_) | Step::Stop(_) => return verdict,
            Step::Wait(wait) => {
                tracing::debug!(migration = plan.name, reason = ?wait, "waiting");
                memory.failures = 0;
                if verdict.again_in > LONGEST_WAIT || !is_switch(&verdict) {
                    return verdict;
                }
            }
        }
        status = verdict.status.clone();
        if begun.elapsed() >= LENGTH || shared.stop.is_cancelled() || is_outdated(shared, migration) {
            verdict.again_in = Duration::ZERO;
            return verdict;
        }
        tokio::time::sleep(verdict.again_in).await;
    }
}

/// What was attempted goes to status; the pause before the next try grows.
fn failed(memory: &mut Memory, plan: &Plan, verdict: Verdict, why: &str) -> Verdict {
    tracing::warn!(migration = plan.name, error = why, "an effect failed");
    memory.failures = memory.failures.saturating_add(1);
    let longest = if is_switch(&verdict) { BACKOFF_IN_SWITCH } else { BACKOFF.1 };
    let pause = BACKOFF.0.saturating_mul(1 << memory.failures.min(8)).min(longest);
    // What an effect met may have changed what was read: everything is read anew.
    memory.read_at.clear();
    let status = decide::conditions::note_failure(plan, verdict.status, why, Timestamp::now());
    Verdict { step: verdict.step, status, again_in: pause }
}

fn is_switch(verdict: &Verdict) -> bool {
    verdict.status.phase.is_some_and(api::Phase::is_switch)
}

/// True where the watch cache shows a newer spec or an order that this slice does not know.
fn is_outdated(shared: &Shared, migration: &RabbitMQMigration) -> bool {
    shared.cache.get(&ObjectRef::from_obj(migration)).is_some_and(|cached| {
        let (new, old) = (&cached.metadata, &migration.metadata);
        new.generation > old.generation
            || (new.generation == old.generation && new.annotations != old.annotations)
            || new.deletion_timestamp != old.deletion_timestamp
    })
}

fn count(shared: &Shared, step: &Step) {
    let outcome = match step {
        Step::Do(_) => "acted",
        Step::Go(_) => "moved",
        Step::Wait(_) => "waiting",
        Step::Stop(_) => "stopped",
    };
    shared.metrics.passes.get_or_create(&PassOutcome { outcome }).inc();
}

/// Counts what an effect came to.
pub fn count_effect(metrics: &crate::metrics::Metrics, effect: &'static str, outcome: &'static str) {
    metrics.effects.get_or_create(&EffectOutcome { effect, outcome }).inc();
}
