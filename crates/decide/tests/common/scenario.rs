//! A migration drawn from a seed: its world, its faults and when they rage, and what people order.

use api::Phase;
use decide::toy::{Chance, Faults, Foreign, Millis, Order, Settings};

/// Phases in which people interfere.
const PHASES: [Phase; 9] = [
    Phase::Preflight,
    Phase::ProvisioningGreen,
    Phase::SyncingTopology,
    Phase::Probing,
    Phase::AwaitingApproval,
    Phase::Switching,
    Phase::Soaking,
    Phase::Retiring,
    Phase::RollingBack,
];

/// An order, some passes after a phase began.
#[derive(Clone, Copy, Debug)]
pub struct Timed {
    /// The phase.
    pub phase: Phase,
    /// Passes in it.
    pub after: u64,
    /// What is ordered.
    pub order: Order,
}

/// A migration.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The world.
    pub settings: Settings,
    /// What goes wrong.
    pub faults: Faults,
    /// In which phase only; in all where `None`.
    pub focus: Option<Phase>,
    /// Until which pass.
    pub until: u64,
    /// What people order.
    pub orders: Vec<Timed>,
    /// The leader of the main queue on blue falls silent: after so many passes of the switch, for so long.
    pub silence: Option<(u64, Millis)>,
    /// After so many passes of the switch somebody takes a binding away from green.
    pub unbind: Option<u64>,
    /// Who else takes Services back.
    pub foreign: Foreign,
    /// Whether people settle a contest by going back.
    pub yields: bool,
}

impl Scenario {
    /// The migration of a seed. One in five is calm: nothing goes wrong and nobody interferes.
    pub fn drawn(seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let settings = Settings::drawn(seed);
        if seed.is_multiple_of(5) {
            return Self::calm(settings);
        }
        let focus = if chance.one_in(2) { chance.pick(&PHASES).copied() } else { None };
        let faults = Faults::drawn(&mut chance);
        let until = 40 + chance.below(500);
        let orders = if chance.one_in(3) { Vec::new() } else { orders(&mut chance) };
        let silence = chance.one_in(3).then(|| (chance.below(60), chance.between(500, 15_000)));
        let mut all = Self {
            settings,
            faults,
            focus,
            until,
            orders,
            silence,
            unbind: None,
            foreign: Foreign::default(),
            yields: false,
        };
        if chance.one_in(3) {
            all.contest(&mut chance);
        } else if chance.one_in(4) {
            all.unbind = Some(chance.below(60));
            if chance.one_in(3) {
                (all.until, all.faults) = (0, Faults::default());
            }
        }
        all
    }

    /// Somebody else takes Services back, once or again and again; in a third of these nothing else goes wrong.
    fn contest(&mut self, chance: &mut Chance) {
        let left = if chance.one_in(3) { 1 } else { chance.below(5) + 2 };
        let one_in = if chance.one_in(2) { 15 } else { 150 };
        self.foreign = Foreign { left, one_in };
        self.yields = chance.one_in(4);
        self.settings.hold = chance.one_in(6);
        if chance.one_in(3) {
            (self.until, self.faults) = (0, Faults::default());
        }
    }

    /// A migration in which nothing goes wrong and nobody interferes.
    pub fn calm(mut settings: Settings) -> Self {
        settings.zone_lag = settings.zone_lag.map(|lag| lag.min(700));
        settings.queue_statistics = true;
        settings.burst = settings.burst.min(20);
        Self {
            settings,
            faults: Faults::default(),
            focus: None,
            until: 0,
            orders: Vec::new(),
            silence: None,
            unbind: None,
            foreign: Foreign::default(),
            yields: false,
        }
    }

    /// True where nothing goes wrong and nobody interferes.
    pub fn is_calm(&self) -> bool {
        self.until == 0 && self.orders.is_empty() && self.foreign.left == 0 && self.unbind.is_none()
    }

    /// Whether faults rage now.
    pub fn rages(&self, phase: Phase, passes: u64) -> bool {
        passes < self.until && self.focus.is_none_or(|focus| focus == phase)
    }
}

fn orders(chance: &mut Chance) -> Vec<Timed> {
    let phase = chance.pick(&PHASES).copied().unwrap_or_default();
    let after = if phase.is_switch() { chance.below(120) } else { chance.below(12) };
    let orders = [Order::Abort, Order::Abort, Order::Delete, Order::RollBack, Order::Pause];
    let order = chance.pick(&orders).copied().unwrap_or(Order::Abort);
    let mut all = vec![Timed { phase, after, order }];
    match order {
        Order::Pause => all.push(Timed { phase, after: after + 5, order: Order::Resume }),
        Order::Abort if chance.one_in(2) => {
            all.push(Timed { phase: Phase::RolledBack, after: chance.below(3), order: Order::Retry });
        }
        Order::Abort | Order::Approve | Order::Delete | Order::RollBack | Order::Retry | Order::Resume => {}
    }
    all
}
