//! Verdict to conditions and columns: phase and conditions come out of one function and cannot disagree.

use crate::context::Context;
use crate::plan::Plan;
use crate::side::Side;
use crate::step::{Reason, Step, Verdict, Wait};
use api::conditions as types;
use api::status::{Columns, PhaseRecord, WaitStatus};
use api::{Condition, Phase, RabbitMQMigrationStatus, Time};
use jiff::Timestamp;
use std::time::Duration;

/// The three values of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Nobody knows.
    Unknown,
}

impl Truth {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    /// From what is known.
    pub const fn of(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// Sets one condition; its transition time changes only with its status.
pub fn set(
    draft: &mut RabbitMQMigrationStatus,
    context: &Context<'_>,
    type_: &str,
    truth: Truth,
    reason: &str,
    message: &str,
) {
    let since = |old: Option<&Condition>| {
        old.filter(|c| c.status == truth.as_str())
            .map_or(Time(context.now), |c| c.last_transition_time.clone())
    };
    let old = draft.conditions.iter_mut().find(|c| c.type_ == type_);
    let condition = Condition {
        last_transition_time: since(old.as_deref()),
        message: message.to_owned(),
        observed_generation: Some(context.plan.generation),
        reason: reason.to_owned(),
        status: truth.as_str().to_owned(),
        type_: type_.to_owned(),
    };
    match old {
        Some(slot) => *slot = condition,
        None => draft.conditions.push(condition),
    }
}

/// Completes the status with what follows from the step, and says when to look again.
pub fn conclude(context: &Context<'_>, mut draft: RabbitMQMigrationStatus, step: Step) -> Verdict {
    draft.observed_generation = context.plan.generation;
    for type_ in types::ALL {
        if !draft.conditions.iter().any(|c| c.type_ == type_) {
            set(&mut draft, context, type_, Truth::Unknown, "NotYetKnown", "");
        }
    }
    if let Step::Go(phase) = step {
        enter(context, &mut draft, phase);
    }
    note_wait(context, &mut draft, &step);
    summarize(context, &mut draft, &step);
    draft.columns = Some(columns(context, &draft));
    let again_in = again_in(&draft, &step);
    Verdict { step, status: draft, again_in }
}

/// The status of a migration whose effect failed: what was attempted and why it failed, for people.
pub fn note_failure(
    plan: &Plan,
    mut status: RabbitMQMigrationStatus,
    why: &str,
    now: Timestamp,
) -> RabbitMQMigrationStatus {
    let world = crate::world::World::default();
    let context = Context { plan, status: &RabbitMQMigrationStatus::default(), world: &world, now };
    let detail = format!("{why}; trying again");
    for (type_, truth) in [(types::READY, Truth::False), (types::RECONCILING, Truth::True)] {
        set(&mut status, &context, type_, truth, "EffectFailed", &detail);
    }
    let since = status.wait.take().filter(|old| old.reason == "EffectFailed").and_then(|old| old.since);
    status.wait =
        Some(WaitStatus { reason: "EffectFailed".to_owned(), detail, since: since.or(Some(Time(now))) });
    status
}

/// The status of a migration that cannot even be planned.
pub fn stopped(
    migration: &api::RabbitMQMigration,
    reason: Reason,
    detail: &str,
    now: Timestamp,
) -> RabbitMQMigrationStatus {
    let mut status = migration.status.clone().unwrap_or_default();
    let generation = migration.metadata.generation.unwrap_or_default();
    status.observed_generation = generation;
    status.protocol = api::status::PROTOCOL.max(status.protocol);
    let truths = [(types::READY, "False"), (types::RECONCILING, "False"), (types::STALLED, "True")];
    for (type_, truth) in truths {
        status.conditions.retain(|c| c.type_ != type_);
        status.conditions.push(Condition {
            last_transition_time: Time(now),
            message: detail.to_owned(),
            observed_generation: Some(generation),
            reason: reason.as_str().to_owned(),
            status: truth.to_owned(),
            type_: type_.to_owned(),
        });
    }
    status
}

/// Stores the new phase and closes the old one's entry in the history.
fn enter(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus, phase: Phase) {
    if draft.history.is_empty() {
        let since = draft.phase_since.clone().unwrap_or(Time(context.now));
        draft.history.push(PhaseRecord { phase: context.phase(), since, millis: None });
    }
    if let Some(last) = draft.history.last_mut() {
        last.millis = Some(context.now.as_millisecond() - last.since.0.as_millisecond());
    }
    draft.history.push(PhaseRecord { phase, since: Time(context.now), millis: None });
    if draft.history.len() > api::bounds::HISTORY {
        draft.history.remove(0);
    }
    draft.phase = Some(phase);
    draft.phase_since = Some(Time(context.now));
}

fn note_wait(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus, step: &Step) {
    draft.wait = match step {
        Step::Wait(wait) | Step::Stop(wait) => {
            let reason = wait.reason.as_str().to_owned();
            let since = draft.wait.take().filter(|old| old.reason == reason).and_then(|old| old.since);
            let detail = wait.detail.clone();
            Some(WaitStatus { reason, detail, since: since.or(Some(Time(context.now))) })
        }
        Step::Do(_) => draft.wait.take(),
        Step::Go(_) => None,
    };
}

/// Ready, Reconciling, Stalled, Paused and AwaitingApproval follow from phase and step alone.
fn summarize(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus, step: &Step) {
    let phase = draft.phase.unwrap_or_default();
    let (reason, detail) = match step {
        Step::Wait(w) | Step::Stop(w) => (w.reason, w.detail.clone()),
        Step::Do(effects) => {
            let names: Vec<&str> = effects.iter().map(crate::effect::Effect::name).collect();
            (Reason::Working, format!("{phase}: {}", names.join(", ")))
        }
        Step::Go(next) => (Reason::Working, format!("entering {next}")),
    };
    let stalled = matches!(step, Step::Stop(_)) && !is_good_end(phase, reason);
    let ready = is_good_end(phase, reason);
    let paused = reason == Reason::Paused;
    let awaiting = reason == Reason::AwaitingApproval;
    let word = reason.as_str();
    set(draft, context, types::READY, Truth::of(ready), word, &detail);
    set(draft, context, types::RECONCILING, Truth::of(!ready && !stalled), word, &detail);
    let serving = draft.serving_side.clone().unwrap_or_else(|| "Unknown".to_owned()).to_lowercase();
    let stalled_detail = if stalled { format!("{serving} is serving: {detail}") } else { String::new() };
    set(draft, context, types::STALLED, Truth::of(stalled), word, &stalled_detail);
    set(draft, context, types::PAUSED, Truth::of(paused), word, if paused { &detail } else { "" });
    set(
        draft,
        context,
        types::AWAITING_APPROVAL,
        Truth::of(awaiting),
        word,
        if awaiting { &detail } else { "" },
    );
}

/// True where the migration stands where the spec wants it.
const fn is_good_end(phase: Phase, reason: Reason) -> bool {
    matches!(
        (phase, reason),
        (Phase::Completed, Reason::Completed)
            | (Phase::RolledBack, Reason::RolledBackAsAsked)
            | (_, Reason::Checked)
    )
}

fn columns(context: &Context<'_>, draft: &RabbitMQMigrationStatus) -> Columns {
    let old = draft.columns.clone().unwrap_or_default();
    let broker = |side: Side, old: &str| {
        context.world.brokers.of(side).seen().map_or_else(
            || old.to_owned(),
            |b| format!("{} x{}", b.version().unwrap_or("?"), b.members.len()),
        )
    };
    let latency = |side: Side| {
        let found = draft.gate.iter().flat_map(|g| &g.latencies).find(|l| l.side == side.as_str());
        found.filter(|l| l.p99_micros >= 0).map(|l| millis(l.p99_micros)).unwrap_or_default()
    };
    let gate = draft.gate.as_ref().map_or_else(String::new, |gate| {
        let enforced = gate.rules.iter().filter(|r| r.enforced);
        format!("{}/{}", enforced.clone().filter(|r| r.passes).count(), enforced.count())
    });
    let backlog = context.world.queues.blue.seen().and_then(|queues| {
        queues.iter().map(|q| q.messages).sum::<Option<u64>>().map(|total| total.to_string())
    });
    Columns {
        gate,
        blue: broker(Side::Blue, &old.blue),
        green: broker(Side::Green, &old.green),
        p99_blue: latency(Side::Blue),
        p99_green: latency(Side::Green),
        backlog: backlog.unwrap_or(old.backlog),
        lost: draft.ledger.as_ref().map(|l| l.lost.to_string()).unwrap_or_default(),
    }
}

/// Microseconds as a person reads them: `12.3ms`.
pub fn millis(micros: i64) -> String {
    format!("{}.{}ms", micros / 1000, micros % 1000 / 100)
}

/// When to look again: at once after acting, quickly while traffic moves, seldom at rest.
fn again_in(draft: &RabbitMQMigrationStatus, step: &Step) -> Duration {
    let phase = draft.phase.unwrap_or_default();
    match step {
        Step::Do(_) | Step::Go(_) => Duration::ZERO,
        Step::Stop(_) if phase.is_terminal() => Duration::from_mins(5),
        Step::Stop(_) if phase.is_switch() => Duration::from_secs(2),
        Step::Stop(_) => Duration::from_secs(10),
        Step::Wait(Wait { reason: Reason::ProvingEmpty | Reason::Soaking, .. }) => Duration::from_secs(1),
        Step::Wait(Wait { reason: Reason::CannotSee, .. }) if phase.is_switch() => Duration::from_millis(500),
        Step::Wait(_) if phase.is_switch() => Duration::from_millis(30),
        Step::Wait(Wait { reason: Reason::ComparingDefinitions, .. }) => Duration::from_millis(30),
        Step::Wait(Wait { reason: Reason::GreenStarting, .. }) => Duration::from_secs(1),
        Step::Wait(_) => Duration::from_secs(2),
    }
}
