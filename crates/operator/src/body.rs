//! What the body holds while it works: the Kubernetes client, and a memory per migration.

use crate::act::import::Import;
use crate::broker_link::BrokerLink;
use crate::interest::asks_broker;
use crate::observe::probe::ProbeState;
use crate::settings::Settings;
use api::{RabbitMQMigration, RabbitMQMigrationStatus};
use decide::fact::{Fact, Want};
use decide::plan::{Orders, Plan};
use decide::side::{Pair, Side};
use decide::world::{RehearsalView, World};
use jiff::Timestamp;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// What all passes share.
#[derive(Clone)]
pub struct Body {
    /// The Kubernetes client.
    pub client: kube::Client,
    /// Settings, read once in `main`.
    pub settings: Settings,
    /// The epoch: Lease uid and transition count of our leadership.
    pub epoch: crate::lease::Epoch,
    /// How many more migrations may probe: each probe takes a part of a core.
    pub probe_slots: Arc<Semaphore>,
}

impl Body {
    /// What passes of this epoch share.
    pub fn new(client: kube::Client, settings: Settings, epoch: crate::lease::Epoch) -> Self {
        let probe_slots = Arc::new(Semaphore::new(settings.max_probes));
        Self { client, settings, epoch, probe_slots }
    }
}

/// One migration in one pass: what is fixed while the pass runs.
pub struct Scene<'a> {
    /// What all passes share.
    pub body: &'a Body,
    /// The object as it was read at the beginning of the pass.
    pub migration: &'a RabbitMQMigration,
    /// Its plan.
    pub plan: &'a Plan,
    /// Its status.
    pub status: &'a RabbitMQMigrationStatus,
}

/// What is remembered of one migration between passes. Lost at a restart: everything here can be seen again.
#[derive(Default)]
pub struct Memory {
    /// The last readings.
    pub world: World,
    /// When each fact was read last.
    pub read_at: HashMap<Fact, Timestamp>,
    /// Connections to both brokers.
    pub links: Pair<BrokerLink>,
    /// Blue's definitions and what became of their last import.
    pub import: Import,
    /// The probe and its evidence.
    pub probe: ProbeState,
    /// The canary, while it runs.
    pub canary: Option<crate::act::canary::CanaryState>,
    /// What the rehearsal of the fence showed.
    pub rehearsal: Option<RehearsalView>,
    /// Effects that failed in a row: the pause grows with them.
    pub failures: u32,
    /// When status was written last.
    pub recorded_at: Option<Timestamp>,
    /// The rest that the last pass asked for.
    pub rest: Option<Rest>,
}

/// The rest between two passes. What people order ends it; a change in Kubernetes wakes a pass within it, which
/// asks no broker again.
#[derive(Clone, Debug, PartialEq)]
pub struct Rest {
    /// Until then.
    pub until: Timestamp,
    /// After a failed effect: then nothing at all is done before its end, or what flaps would undo the growing
    /// pause.
    pub is_strict: bool,
    /// The spec and the orders that it began under.
    pub orders: (i64, Orders),
}

impl Memory {
    /// The link to a side.
    pub const fn link(&mut self, side: Side) -> &mut BrokerLink {
        self.links.of_mut(side)
    }

    /// Begins the rest that a pass on `plan` asked for.
    pub fn rest(&mut self, plan: &Plan, pause: Duration, now: Timestamp) {
        let until = now.checked_add(pause).unwrap_or(Timestamp::MAX);
        self.rest = Some(Rest { until, is_strict: self.failures > 0, orders: ordered(plan) });
    }

    /// Ends a rest that is over or that an order ends; says how much is left of one in which nothing may be done.
    pub fn still_rests(&mut self, plan: &Plan, now: Timestamp) -> Option<Duration> {
        self.rest = self.rest.take().filter(|rest| now < rest.until && rest.orders == ordered(plan));
        let rest = self.rest.as_ref().filter(|rest| rest.is_strict)?;
        Some(rest.until.duration_since(now).unsigned_abs())
    }

    /// True where the last reading may stand: it is young enough, or a broker would be asked within the rest.
    pub fn is_fresh(&self, want: &Want, now: Timestamp) -> bool {
        let Some(at) = self.read_at.get(&want.fact) else { return false };
        let young = now.duration_since(*at).unsigned_abs() < want.max_age;
        young || (asks_broker(want.fact) && self.rest.as_ref().is_some_and(|rest| now < rest.until))
    }
}

fn ordered(plan: &Plan) -> (i64, Orders) {
    (plan.generation, plan.orders.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use decide::fact::{every, fresh};
    use serde_json::json;

    fn plan(generation: i64, retry: &str) -> Plan {
        let migration: RabbitMQMigration = serde_json::from_value(json!({
            "apiVersion": "rabbitmq-migration.io/v1alpha1", "kind": "RabbitMQMigration",
            "metadata": { "name": "m", "namespace": "n", "uid": "u", "generation": generation,
                "annotations": { api::RETRY: retry } },
            "spec": {
                "blue": { "statefulSetName": "b", "serviceName": "b",
                    "credentialsSecret": { "name": "s", "username": "u" } },
                "green": { "existing": { "statefulSetName": "g", "serviceName": "g",
                    "credentialsSecret": { "name": "s", "username": "u" } } },
                "services": [{ "name": "rabbitmq" }],
            },
        }))
        .unwrap();
        Plan::parse(&migration).unwrap()
    }

    const fn at(second: i64) -> Timestamp {
        Timestamp::constant(second, 0)
    }

    fn resting(failures: u32) -> Memory {
        let mut memory = Memory { failures, ..Memory::default() };
        for fact in [Fact::Broker(Side::Blue), Fact::Users(Side::Blue), Fact::Services] {
            memory.read_at.insert(fact, at(100));
        }
        memory.rest(&plan(1, "a"), Duration::from_secs(20), at(100));
        memory
    }

    #[test]
    fn a_wake_within_the_rest_asks_no_broker_again_but_kubernetes() {
        let mut memory = resting(0);
        assert_eq!(memory.still_rests(&plan(1, "a"), at(105)), None, "a wake is not put off");
        assert!(memory.is_fresh(&every(10, Fact::Broker(Side::Blue)), at(105)));
        assert!(
            memory.is_fresh(&every(1, Fact::Broker(Side::Blue)), at(105)),
            "not due before the rest ends"
        );
        assert!(memory.is_fresh(&fresh(Fact::Users(Side::Blue)), at(105)));
        assert!(!memory.is_fresh(&fresh(Fact::Services), at(105)));
        assert!(!memory.is_fresh(&fresh(Fact::Epoch(Side::Blue)), at(105)), "never read: nothing can stand");
        assert!(!memory.is_fresh(&fresh(Fact::Users(Side::Blue)), at(120)), "the rest is over");
        assert!(memory.is_fresh(&every(30, Fact::Broker(Side::Blue)), at(120)));
    }

    #[test]
    fn nothing_is_done_in_the_rest_after_a_failure() {
        let mut memory = resting(3);
        assert_eq!(memory.still_rests(&plan(1, "a"), at(105)), Some(Duration::from_secs(15)));
        assert_eq!(memory.still_rests(&plan(1, "a"), at(120)), None);
    }

    #[test]
    fn an_order_ends_the_rest() {
        for changed in [plan(1, "b"), plan(2, "a")] {
            let mut memory = resting(3);
            assert_eq!(memory.still_rests(&changed, at(105)), None);
            assert!(
                !memory.is_fresh(&fresh(Fact::Users(Side::Blue)), at(105)),
                "everything is looked at anew"
            );
        }
    }
}
