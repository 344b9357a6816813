//! The body around the brain: observes in the order asked, decides, acts, records. Like the operator's, with
//! cuts, blind facts, lost writes and restarts by seed.

use super::{Chance, Closing, Fate, Millis, PERSON, Toy};
use crate::conditions::note_failure;
use crate::effect::Effect;
use crate::fact::{Fact, Want};
use crate::names::MANAGER;
use crate::plan::Plan;
use crate::side::Heading;
use crate::step::{Step, Verdict};
use crate::world::World;
use api::spec::Outcome;
use api::{Phase, RabbitMQMigrationStatus};
use jiff::Timestamp;
use std::collections::HashMap;

/// Who else writes selectors.
const FOREIGN: &str = "argocd-controller";
/// A slice of the sprint: progress is stored this often.
const SLICE_MILLIS: Millis = 5000;
/// Longest pause between passes: an event of a watch wakes the operator up before a longer one is over.
const LONGEST_PAUSE: Millis = 10_000;

/// Where deliberate mistakes are made: between brain and body, never inside the brain.
pub trait Boundary {
    /// Changes what is asked, or its order.
    fn wants(&mut self, wants: Vec<Want>) -> Vec<Want> {
        wants
    }

    /// Changes what was seen of a fact.
    fn seen(&mut self, _fact: Fact, _world: &mut World) {}

    /// Changes what was decided.
    fn verdict(&mut self, verdict: Verdict, _world: &World) -> Verdict {
        verdict
    }

    /// Whether an effect is carried out. One that is not is reported as done.
    fn performs(&mut self, _effect: &Effect) -> bool {
        true
    }
}

/// The boundary without mistakes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Honest;

impl Boundary for Honest {}

/// What goes wrong, and how often: once in so many; 0 is never.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// An effect is cut.
    pub cut: u64,
    /// A fact cannot be read.
    pub blind: u64,
    /// The operator's process is replaced.
    pub restart: u64,
    /// The status cannot be written.
    pub unwritten: u64,
    /// A queue's leader falls silent for some seconds.
    pub silent: u64,
    /// A read takes half a second and more.
    pub slow: u64,
}

impl Faults {
    /// True where nothing goes wrong.
    pub const fn are_none(&self) -> bool {
        let Self { cut, blind, restart, unwritten, silent, slow } = self;
        *cut == 0 && *blind == 0 && *restart == 0 && *unwritten == 0 && *silent == 0 && *slow == 0
    }

    /// A swarm: some faults are frequent, some rare, some absent.
    pub fn drawn(chance: &mut Chance) -> Self {
        let mut rate =
            |often: u64| if chance.one_in(2) { 0 } else { often.saturating_mul(1 << chance.below(4)) };
        Self {
            cut: rate(6),
            blind: rate(60),
            restart: rate(40),
            unwritten: rate(6),
            silent: rate(60),
            slow: rate(200),
        }
    }
}

/// Somebody else who takes Services back to the side that traffic leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Foreign {
    /// How often he still does it.
    pub left: u64,
    /// Once in so many passes.
    pub one_in: u64,
}

/// Something that a person does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Approves the plan.
    Approve,
    /// Aborts.
    Abort,
    /// Deletes the object.
    Delete,
    /// Asks for blue to serve.
    RollBack,
    /// Starts again after an end.
    Retry,
    /// Pauses.
    Pause,
    /// Goes on.
    Resume,
}

/// What one pass did.
#[derive(Clone, Debug)]
pub struct Pass {
    /// When it decided.
    pub at: Millis,
    /// The phase it decided in.
    pub phase: Phase,
    /// What was decided.
    pub step: Step,
    /// What the status says of the wait.
    pub status: RabbitMQMigrationStatus,
    /// Effects that were attempted, with their fates.
    pub effects: Vec<(Effect, Fate)>,
    /// What was true when connections were closed.
    pub closing: Option<Closing>,
}

/// The body.
pub struct Body<B> {
    /// The world.
    pub toy: Toy,
    /// The plan.
    pub plan: Plan,
    /// The status as it is stored.
    pub stored: RabbitMQMigrationStatus,
    /// What was seen last.
    pub world: World,
    /// What goes wrong.
    pub faults: Faults,
    /// Who else writes selectors.
    pub foreign: Foreign,
    /// How often what was not stored yet was forgotten.
    pub forgotten: u64,
    /// Where mistakes are made.
    pub boundary: B,
    /// Passes so far.
    pub passes: u64,
    /// Chance of the faults, apart from the world's.
    pub chance: Chance,
    read_at: HashMap<Fact, Timestamp>,
    working: Option<RabbitMQMigrationStatus>,
    slice_since: Millis,
    failures: u32,
}

impl<B: Boundary> Body<B> {
    /// A body that begins with an object that was just made.
    pub fn new(toy: Toy, plan: Plan, boundary: B) -> Self {
        let chance = Chance::new(toy.settings.seed ^ 0x00B0_D1E5);
        Self {
            toy,
            plan,
            stored: RabbitMQMigrationStatus::default(),
            world: World::default(),
            faults: Faults::default(),
            foreign: Foreign::default(),
            forgotten: 0,
            boundary,
            passes: 0,
            chance,
            read_at: HashMap::new(),
            working: None,
            slice_since: 0,
            failures: 0,
        }
    }

    /// The phase as it is stored.
    pub fn phase(&self) -> Phase {
        self.stored.phase.unwrap_or_default()
    }

    /// One pass, and the pause after it.
    pub fn pass(&mut self) -> Pass {
        self.passes = self.passes.saturating_add(1);
        if self.chance.one_in(self.faults.restart) {
            self.restart();
        }
        if self.chance.one_in(self.faults.silent) {
            self.silence();
        }
        let status = self.working.clone().unwrap_or_else(|| self.stored.clone());
        let phase = status.phase.unwrap_or_default();
        // Before the operator looks, or after it looked and before it acts.
        let early = self.foreign.left > 0 && self.chance.one_in(2);
        if early {
            self.interfere(phase);
        }
        let wants = self.boundary.wants(crate::wants(&self.plan, &status));
        self.observe(&wants, phase);
        let now = self.toy.timestamp();
        let verdict = crate::next(&self.plan, &status, &self.world, now);
        let verdict = self.boundary.verdict(verdict, &self.world);
        if !early && matches!(verdict.step, Step::Do(_) | Step::Wait(_)) {
            self.interfere(phase);
        }
        let mut pass = Pass {
            at: self.toy.now,
            phase,
            step: verdict.step.clone(),
            status: verdict.status.clone(),
            effects: Vec::new(),
            closing: None,
        };
        let pause = self.finish(verdict, &mut pass);
        self.toy.advance(pause.min(LONGEST_PAUSE));
        pass
    }

    /// What a person does. Each order is a new one.
    pub fn order(&mut self, order: Order) {
        let fresh = format!("at-{}", self.toy.now);
        let orders = &mut self.plan.orders;
        match order {
            Order::Approve => orders.approve = self.stored.plan.as_ref().map(|plan| plan.digest.clone()),
            Order::Abort => orders.abort = Some(fresh),
            Order::Delete => orders.deleted = true,
            Order::RollBack => {
                self.plan.outcome = Outcome::RolledBack;
                self.plan.generation = self.plan.generation.saturating_add(1);
            }
            Order::Retry => orders.retry = Some(fresh),
            Order::Pause => orders.pause = true,
            Order::Resume => orders.pause = false,
        }
        // The watch cache shows it: the slice ends before the next step.
        self.record();
    }

    /// The operator's process is replaced: what it held in memory is gone.
    pub fn restart(&mut self) {
        self.toy.restart_operator();
        self.world = World::default();
        self.read_at.clear();
        self.working = None;
        self.failures = 0;
        self.forgotten = self.forgotten.saturating_add(1);
        self.toy.advance(200);
    }

    /// Somebody else takes a Service that was pointed back to the side that traffic leaves.
    fn interfere(&mut self, phase: Phase) {
        let heading = match phase {
            Phase::Switching | Phase::Soaking => Heading::FORWARD,
            Phase::RollingBack => Heading::BACK,
            _ => return,
        };
        // Of a deleted migration that rests nobody is left to mend it.
        let leaving = self.plan.orders.deleted && phase == Phase::Soaking;
        if leaving || self.foreign.left == 0 || !self.chance.one_in(self.foreign.one_in) {
            return;
        }
        let pointed = |index: &usize| {
            let by = self.toy.managers.get(*index).map(String::as_str);
            self.toy.selected(*index) == Some(heading.to) && matches!(by, Some(MANAGER | PERSON))
        };
        if let Some(service) = (0..self.toy.services.len()).find(pointed) {
            self.foreign.left = self.foreign.left.saturating_sub(1);
            self.toy.take(service, heading.from, FOREIGN);
        }
    }

    fn silence(&mut self) {
        let queue = usize::try_from(self.chance.below(3)).unwrap_or(0);
        let millis = self.chance.between(200, 4000);
        let side = if self.chance.one_in(2) { crate::side::Side::Blue } else { crate::side::Side::Green };
        self.toy.silence(side, queue, millis);
    }

    /// Reads what is wanted, in order; time passes between reads. A young reading is kept.
    fn observe(&mut self, wants: &[Want], phase: Phase) {
        for want in wants {
            let now = self.toy.timestamp();
            let age = |at: &Timestamp| now.duration_since(*at).unsigned_abs();
            if self.read_at.get(&want.fact).is_some_and(|at| age(at) < want.max_age) {
                continue;
            }
            let slow = self.chance.one_in(self.faults.slow);
            let pause = if slow { self.chance.between(500, 3000) } else { self.chance.between(1, 8) };
            self.toy.advance(pause);
            if self.chance.one_in(self.faults.blind) {
                self.toy.blind(want.fact, "no answer in time", &mut self.world);
            } else {
                self.toy.observe(&self.plan, want.fact, phase.is_switch(), &mut self.world);
            }
            self.boundary.seen(want.fact, &mut self.world);
            let at = self.toy.timestamp();
            self.read_at.insert(want.fact, at);
            self.world.remember(want.fact, at);
        }
    }

    /// Acts and records as the step says; how long to pause then.
    fn finish(&mut self, verdict: Verdict, pass: &mut Pass) -> Millis {
        let again = Millis::try_from(verdict.again_in.as_millis()).unwrap_or(Millis::MAX);
        let in_switch = verdict.status.phase.is_some_and(Phase::is_switch);
        let failed = match &verdict.step {
            Step::Do(effects) => self.act(effects, pass).err(),
            Step::Go(_) | Step::Wait(_) | Step::Stop(_) => None,
        };
        let Some(why) = failed else {
            self.failures = 0;
            let ends = match verdict.step {
                Step::Go(_) | Step::Stop(_) => true,
                Step::Do(_) | Step::Wait(_) => !in_switch || again > 1000,
            };
            self.working = Some(verdict.status);
            if ends || self.toy.now.saturating_sub(self.slice_since) >= SLICE_MILLIS {
                self.record();
            }
            return again;
        };
        self.failures = self.failures.saturating_add(1).min(8);
        self.read_at.clear();
        self.working = Some(note_failure(&self.plan, verdict.status, &why, self.toy.timestamp()));
        self.record();
        let longest = if in_switch { 2000 } else { 30_000 };
        (250 << self.failures).min(longest)
    }

    /// Carries out the effects in order and stops at the first failure.
    fn act(&mut self, effects: &[Effect], pass: &mut Pass) -> Result<(), String> {
        for effect in effects {
            let pause = self.chance.between(2, 25);
            self.toy.advance(pause);
            let fate = self.fate();
            pass.effects.push((effect.clone(), fate));
            if let Effect::Close { side, connections } = effect {
                pass.closing = Some(self.toy.closing(*side, connections));
            }
            let performed = self.boundary.performs(effect);
            let done = if performed { self.toy.act(&self.plan, effect, fate) } else { Ok(()) };
            self.world.progress = self.toy.process.progress.clone();
            self.forget(effect);
            done?;
        }
        Ok(())
    }

    fn fate(&mut self) -> Fate {
        if !self.chance.one_in(self.faults.cut) {
            return Fate::Done;
        }
        match self.chance.below(3) {
            0 => Fate::Before,
            1 => Fate::Half,
            _ => Fate::After,
        }
    }

    /// What an effect changed is read anew.
    fn forget(&mut self, effect: &Effect) {
        let stale: Vec<Fact> = match effect {
            Effect::EnsureEpochUser(side) | Effect::CleanBroker(side) | Effect::RemoveEpochUsers(side) => {
                vec![Fact::Leftovers(*side), Fact::Users(*side), Fact::Epoch(*side), Fact::Queues(*side)]
            }
            Effect::Fence { side, .. } | Effect::Unfence { side, .. } => vec![Fact::Users(*side)],
            Effect::ImportDefinitions => vec![Fact::Definitions],
            Effect::RehearseFence => vec![Fact::Rehearsal],
            Effect::EnableFeatureFlags(side) => vec![Fact::Broker(*side)],
            Effect::EnsureGreen
            | Effect::RemoveGreen
            | Effect::RebalanceLeaders(_)
            | Effect::StartProbe { .. }
            | Effect::StopProbe
            | Effect::StoreRecord(_)
            | Effect::StartCanary
            | Effect::StopCanary
            | Effect::Point(_)
            | Effect::Close { .. }
            | Effect::Carry { .. }
            | Effect::ScaleBlueToZero
            | Effect::RemoveRecord => Vec::new(),
        };
        for fact in stale {
            self.read_at.remove(&fact);
        }
    }

    /// Stores what is worked with, where the API server takes it; else the stored status is read again.
    fn record(&mut self) {
        self.slice_since = self.toy.now;
        let Some(working) = self.working.take() else { return };
        if self.chance.one_in(self.faults.unwritten) {
            self.forgotten = self.forgotten.saturating_add(1);
            return;
        }
        self.stored = working;
    }
}
