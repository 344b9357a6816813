//! What effects do to the world. Each can be cut: before, half-way, or after with the answer lost.

use super::broker::{CANARY, DELAY, DELAY_MILLIS, ORDERS};
use super::observe::{connection_number, labels};
use super::{Broker, Event, Kind, QUEUES, Toy, stamp};
use crate::effect::{Effect, Pointing, QueueRef};
use crate::names::MANAGER;
use crate::plan::Plan;
use crate::side::Side;

/// What becomes of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is done, and answered.
    Done,
    /// It fails before anything is done.
    Before,
    /// It fails half-way.
    Half,
    /// It is done, and the answer is lost.
    After,
}

impl Fate {
    /// How many of `count` things are done.
    const fn of(self, count: usize) -> usize {
        match self {
            Self::Done | Self::After => count,
            Self::Half => count / 2,
            Self::Before => 0,
        }
    }
}

impl Toy {
    /// Carries out an effect as far as its fate lets it.
    pub fn act(&mut self, plan: &Plan, effect: &Effect, fate: Fate) -> Result<(), String> {
        if fate == Fate::Before {
            return Err(format!("{}: no connection", effect.name()));
        }
        self.do_one(plan, effect, fate)?;
        match fate {
            Fate::Done => Ok(()),
            Fate::Before | Fate::Half | Fate::After => Err(format!("{}: no answer in time", effect.name())),
        }
    }

    fn do_one(&mut self, plan: &Plan, effect: &Effect, fate: Fate) -> Result<(), String> {
        match effect {
            Effect::EnsureEpochUser(side) => self.ensure_epoch(*side, fate)?,
            Effect::RehearseFence => self.rehearse(plan, fate),
            Effect::EnsureGreen => self.ensure_green(plan),
            Effect::RemoveGreen => self.remove_green(),
            Effect::EnableFeatureFlags(_) | Effect::RebalanceLeaders(_) => {}
            Effect::ImportDefinitions => self.import(fate)?,
            Effect::StartProbe { .. } => self.start_probe(plan, fate),
            Effect::StopProbe => self.stop_probe(plan, fate),
            Effect::StoreRecord(record) => self.record = Some((**record).clone()),
            Effect::StartCanary => self.start_canary(plan, fate)?,
            Effect::StopCanary => self.stop_canary(),
            Effect::Point(pointings) => self.point(plan, pointings, fate)?,
            Effect::Fence { side, users } => {
                for user in users.iter().take(fate.of(users.len())) {
                    self.limit(*side, user, Some(0));
                }
            }
            Effect::Unfence { side, users } => {
                for (user, limit) in users.iter().take(fate.of(users.len())) {
                    self.limit(*side, user, *limit);
                }
            }
            Effect::Close { side, connections } => self.close(*side, connections, fate),
            Effect::Carry { from, queues } => self.carry(plan, *from, queues, fate)?,
            Effect::CleanBroker(side) => self.clean(plan, *side, fate),
            Effect::RemoveEpochUsers(side) => {
                self.brokers.of_mut(*side).epochs.clear();
                *self.process.established.of_mut(*side) = false;
            }
            Effect::ScaleBlueToZero => self.scale_blue(),
            Effect::RemoveRecord => self.record = None,
        }
        Ok(())
    }

    fn reach(&self, side: Side) -> Result<(), String> {
        let up = self.brokers.of(side).ready(self.now) > 0;
        if up { Ok(()) } else { Err(format!("no pod of {side} answers")) }
    }

    fn ensure_epoch(&mut self, side: Side, fate: Fate) -> Result<(), String> {
        self.reach(side)?;
        let epoch = self.process.epoch;
        let users = &mut self.brokers.of_mut(side).epochs;
        users.insert(epoch);
        if fate != Fate::Half {
            users.retain(|user| *user == epoch);
            *self.process.established.of_mut(side) = fate == Fate::Done;
        }
        Ok(())
    }

    fn rehearse(&mut self, plan: &Plan, fate: Fate) {
        if fate == Fate::Half {
            self.brokers.blue.ours.insert(format!("user {}", plan.names.rehearsal_user()));
        }
        if fate == Fate::Done {
            self.brokers.blue.ours.remove(&format!("user {}", plan.names.rehearsal_user()));
            self.process.rehearsal = Some(true);
        }
    }

    fn ensure_green(&mut self, plan: &Plan) {
        if self.brokers.green.exists {
            self.brokers.green.template = plan.template_digest();
            return;
        }
        let replicas = plan.template().map_or(0, |template| i64::from(template.replicas));
        let start = self.now;
        let ready_at = (0..replicas).map(|n| start.saturating_add(3000).saturating_add(2000 * n)).collect();
        let template = plan.template_digest();
        self.brokers.green = Broker { exists: true, replicas, ready_at, template, ..Broker::absent() };
    }

    fn remove_green(&mut self) {
        let served = self.services.iter().flatten().any(|(_, side)| *side == Some(Side::Green));
        self.truth.removed_serving_green |= served;
        let open: Vec<u64> = self.brokers.green.connections.keys().copied().collect();
        for id in open {
            self.close_connection(Side::Green, id);
        }
        self.brokers.green = Broker::absent();
        self.process.imported = None;
        *self.process.established.of_mut(Side::Green) = false;
    }

    fn import(&mut self, fate: Fate) -> Result<(), String> {
        self.reach(Side::Green)?;
        let blue = self.brokers.blue.users.iter().filter(|(name, _)| !crate::names::Names::is_ours(name));
        let users: Vec<(String, Option<i64>)> = blue.map(|(name, limit)| (name.clone(), *limit)).collect();
        let queues: Vec<bool> = self.brokers.blue.queues.iter().map(|queue| queue.exists).collect();
        for (name, limit) in users.iter().take(fate.of(users.len())) {
            self.brokers.green.users.entry(name.clone()).or_insert(*limit);
        }
        let count = fate.of(QUEUES.len());
        for (index, exists) in
            queues.into_iter().enumerate().take(count).filter(|(index, _)| *index != CANARY)
        {
            if let Some(queue) = self.brokers.green.queues.get_mut(index) {
                queue.exists |= exists;
                queue.bound |= exists;
                if index == ORDERS && queue.bound {
                    self.truth.dropping_since = None;
                }
            }
        }
        self.process.import_error = (fate != Fate::Done).then(|| "no answer in time".to_owned());
        if fate == Fate::Done {
            self.process.imported = Some(self.definitions_digest());
        }
        Ok(())
    }

    fn start_probe(&mut self, plan: &Plan, fate: Fate) {
        for side in Side::BOTH {
            self.brokers.of_mut(side).ours.insert(format!("vhost {}", plan.names.probe_vhost()));
        }
        if fate == Fate::Done && self.process.probe_since.is_none() {
            self.process.probe_since = Some(self.now);
        }
    }

    fn stop_probe(&mut self, plan: &Plan, fate: Fate) {
        self.process.probe_since = None;
        if fate != Fate::Half {
            for side in Side::BOTH {
                self.brokers.of_mut(side).ours.remove(&format!("vhost {}", plan.names.probe_vhost()));
            }
        }
    }

    fn start_canary(&mut self, plan: &Plan, fate: Fate) -> Result<(), String> {
        let user = plan.names.canary_user();
        for side in Side::BOTH {
            self.reach(side)?;
            let broker = self.brokers.of_mut(side);
            broker.ours.insert(format!("vhost {}", plan.names.canary_vhost()));
            broker.ours.insert(format!("user {user}"));
            // A user that is there keeps its limit: it may be fenced.
            broker.users.entry(user.clone()).or_insert(None);
            if let Some(queue) = broker.queues.get_mut(CANARY) {
                queue.exists = true;
                queue.bound = true;
            }
            if fate == Fate::Half {
                return Ok(());
            }
        }
        if fate == Fate::Done && self.process.canary.is_empty() {
            let publisher = self.add_client(Kind::CanaryPublisher, &user);
            let consumer = self.add_client(Kind::CanaryConsumer, &user);
            self.process.canary = vec![publisher, consumer];
        }
        Ok(())
    }

    fn stop_canary(&mut self) {
        for client in std::mem::take(&mut self.process.canary) {
            self.retire_client(client);
        }
    }

    fn point(&mut self, plan: &Plan, pointings: &[Pointing], fate: Fate) -> Result<(), String> {
        let some = if fate == Fate::Half { 1 } else { pointings.len() };
        for pointing in pointings.iter().take(some) {
            let index = plan.services.iter().position(|name| *name == pointing.service);
            let index = index.unwrap_or(usize::MAX);
            let found = self.services.get_mut(index).zip(self.managers.get_mut(index));
            let Some((history, manager)) = found else {
                return Err(format!("Service {} does not exist", pointing.service));
            };
            if *manager != MANAGER && !pointing.force {
                return Err(format!("apply Service: conflict with {manager:?}: .spec.selector"));
            }
            MANAGER.clone_into(manager);
            let selects = |side: &Side| {
                let labels = labels(plan, *side);
                pointing.selector.iter().all(|(key, value)| labels.get(key) == Some(value))
            };
            history.push((self.now, Side::BOTH.into_iter().find(selects)));
            self.process.progress.pointed.insert(pointing.service.clone(), stamp(self.now));
        }
        Ok(())
    }

    fn limit(&mut self, side: Side, user: &str, limit: Option<i64>) {
        if let Some(found) = self.brokers.of_mut(side).users.get_mut(user) {
            *found = limit;
        }
    }

    /// By name: statistics must know the connection.
    fn close(&mut self, side: Side, names: &[String], fate: Fate) {
        for id in names.iter().take(fate.of(names.len())).filter_map(|name| connection_number(name)) {
            let Some(connection) = self.brokers.of(side).connections.get(&id) else { continue };
            let age = self.now.saturating_sub(connection.opened);
            let known = age >= 4000 || (age >= 1000 && self.chance.one_in(2));
            if known {
                self.close_connection(side, id);
                let progress = &mut self.process.progress;
                progress.closed = progress.closed.saturating_add(1);
                progress.last_close_at = Some(stamp(self.now));
            }
        }
    }

    /// At least once and in order: a cut leaves what was on its way on both sides.
    fn carry(&mut self, plan: &Plan, from: Side, queues: &[QueueRef], fate: Fate) -> Result<(), String> {
        self.reach(from)?;
        self.reach(from.other())?;
        for queue in queues {
            let Some(index) = QUEUES.iter().position(|name| *name == queue.name) else { continue };
            if !self.brokers.of(from.other()).queues.get(index).is_some_and(|q| q.exists) {
                return Err(format!("carry messages: queue {} of {} is not there", queue.name, plan.name));
            }
            let held = self.brokers.of(from).queues.get(index).map_or(0, |q| q.ready.len());
            for _ in 0..fate.of(held) {
                self.advance(1);
                self.carry_one(from, index, false);
            }
            if fate == Fate::Half {
                self.carry_one(from, index, true);
                return Ok(());
            }
        }
        Ok(())
    }

    fn carry_one(&mut self, from: Side, queue: usize, cut: bool) {
        let Some(source) = self.brokers.of_mut(from).queues.get_mut(queue) else { return };
        let taken = if cut { source.ready.front().cloned() } else { source.ready.pop_front() };
        let Some(copy) = taken else { return };
        self.truth.carried = self.truth.carried.saturating_add(1);
        self.process.progress.carried = self.process.progress.carried.saturating_add(1);
        if cut && let Some(told) = self.truth.messages.get_mut(copy.message) {
            told.explained = true;
        }
        self.enqueue(from.other(), queue, copy.message);
    }

    fn clean(&mut self, plan: &Plan, side: Side, fate: Fate) {
        let user = plan.names.canary_user();
        let of_user = |toy: &Self, client: usize| toy.clients.get(client).is_some_and(|c| c.user == user);
        let connections = self.brokers.of(side).connections.iter();
        let open: Vec<u64> =
            connections.filter(|(_, c)| of_user(self, c.client)).map(|(id, _)| *id).collect();
        for id in open {
            self.close_connection(side, id);
        }
        let broker = self.brokers.of_mut(side);
        if let Some(queue) = broker.queues.get_mut(CANARY) {
            *queue = super::Queue::default();
        }
        if fate == Fate::Half {
            // Vhosts go before users.
            broker.ours.retain(|name| name.starts_with("user"));
            return;
        }
        broker.users.remove(&user);
        broker.ours.clear();
    }

    fn scale_blue(&mut self) {
        let held = self.held(Side::Blue);
        self.truth.scaled_with.get_or_insert(held);
        let open: Vec<u64> = self.brokers.blue.connections.keys().copied().collect();
        for id in open {
            self.close_connection(Side::Blue, id);
        }
        let blue = &mut self.brokers.blue;
        blue.replicas = 0;
        blue.ready_at.clear();
        // Its disks are ephemeral.
        for queue in &mut blue.queues {
            queue.ready.clear();
        }
    }

    /// A queue's leader falls silent for a while: nothing is delivered, confirmed or counted.
    pub fn silence(&mut self, side: Side, queue: usize, millis: super::Millis) {
        let until = self.now.saturating_add(millis);
        if let Some(found) = self.brokers.of_mut(side).queues.get_mut(queue) {
            found.silent_until = until;
            self.at(until, Event::Wake { side, queue });
        }
    }

    /// The time after which a message in the delay queue is back with the workers.
    pub const fn return_millis() -> super::Millis {
        let _ = DELAY;
        DELAY_MILLIS
    }
}
