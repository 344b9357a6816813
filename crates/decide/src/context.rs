//! What one decision is made from.

use crate::plan::Plan;
use crate::side::Side;
use crate::step::{Reason, Step};
use crate::world::{Reading, World};
use api::spec::Outcome;
use api::{Phase, RabbitMQMigrationStatus};
use jiff::Timestamp;
use std::collections::BTreeSet;

/// The plan, the stored status, what was seen, and the time.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The stored status.
    pub status: &'a RabbitMQMigrationStatus,
    /// What was seen in this pass.
    pub world: &'a World,
    /// Now.
    pub now: Timestamp,
}

impl Context<'_> {
    /// The phase.
    pub fn phase(&self) -> Phase {
        self.status.phase.unwrap_or_default()
    }

    /// Seconds since the phase began.
    pub fn phase_seconds(&self) -> i64 {
        self.status.phase_since.as_ref().map_or(0, |since| self.now.as_second() - since.0.as_second())
    }

    /// The names by which a side's cluster answers, where all its pods are one; else why not.
    pub fn cluster_names(&self, side: Side) -> Result<BTreeSet<&str>, String> {
        let pods = seen(self.world.pods.of(side), "pods")?.len();
        seen(self.world.brokers.of(side), "broker")?.one_cluster(pods)
    }

    /// `3.10.8 -> 4.0.5`. What cannot be read now stands as it was read last, so that one failed read does not
    /// change the plan's digest; what was never read is `?`.
    pub fn versions(&self) -> String {
        format!("{} -> {}", self.version(Side::Blue), self.version(Side::Green))
    }

    fn version(&self, side: Side) -> &str {
        let seen = self.world.brokers.of(side).seen().and_then(|broker| broker.version());
        seen.or_else(|| self.stored_version(side)).unwrap_or("?")
    }

    fn stored_version(&self, side: Side) -> Option<&str> {
        let (blue, green) = self.status.plan.as_ref()?.versions.split_once(" -> ")?;
        Some(match side {
            Side::Blue => blue,
            Side::Green => green,
        })
    }

    /// True where a side's broker never told its version: nothing can have been made on it.
    pub fn never_answered(&self, side: Side) -> bool {
        self.version(side) == "?"
    }

    /// True where an order of this kind was not handled yet.
    pub fn is_new_order(&self, annotation: &str, value: Option<&String>) -> bool {
        is_new_order(self.status, annotation, value)
    }
}

/// Characters of an order's value that are remembered: the rest tells nobody apart.
pub const ORDER_LENGTH: usize = 128;

/// True where an order of this kind was not handled yet.
pub fn is_new_order(status: &RabbitMQMigrationStatus, annotation: &str, value: Option<&String>) -> bool {
    value.is_some_and(|value| {
        let value: String = value.chars().take(ORDER_LENGTH).collect();
        !status.handled_commands.iter().any(|c| c.annotation == annotation && c.value == value)
    })
}

/// True where going back is asked for, by the spec or by an abort that was not carried out yet.
pub fn is_asked_back(plan: &Plan, status: &RabbitMQMigrationStatus) -> bool {
    plan.outcome == Outcome::RolledBack || is_new_order(status, api::ABORT, plan.orders.abort.as_ref())
}

/// The answer, or a sentence that names `what` and says why there is none.
pub fn seen<'a, T>(reading: &'a Reading<T>, what: &str) -> Result<&'a T, String> {
    reading.seen().ok_or_else(|| format!("{what}: {}", reading.why_not()))
}

/// Waits because something could not be read.
pub fn cannot_see(why: impl Into<String>) -> Step {
    Step::wait(Reason::CannotSee, why)
}
