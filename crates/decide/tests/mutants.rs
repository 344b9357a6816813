//! Would the laws notice? Deliberate mistakes, each made between brain and body, and each to be killed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use api::Phase;
use common::migrate;
use common::scenario::Scenario;
use decide::effect::{Effect, Pointing};
use decide::fact::Fact;
use decide::record::SwitchRecord;
use decide::roles::Role;
use decide::side::Side;
use decide::step::{Reason, Step, Verdict};
use decide::toy::{Boundary, Honest};
use decide::world::{Emptiness, QueueTotals, Reading, World};

/// Migrations within which each mistake must be noticed.
const SEEDS: u64 = 1500;

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    /// A queue that does not answer, or says 0 and 0, counts as empty with a consumer.
    UnknownDepthIsZero,
    /// Blue is fenced before the Services are pointed.
    FenceBeforeRoute,
    /// Blue is fenced as soon as the write returns.
    RouteNotReadBack,
    /// Consumers are closed when a listing says zero.
    SampledZeroCloses,
    /// Publishers are not seen among the connections.
    PublishersOverlooked,
    /// Who has no statistics yet counts as a consumer.
    UnknownRoleIsConsumer,
    /// The import is skipped and nobody compares.
    ImportSkipped,
    /// The record is not stored.
    RecordNotStored,
    /// Every queue counts as empty and nobody waits for totals.
    EmptinessAssumed,
    /// Nothing is carried.
    CarryDropped,
    /// Blue's fence is forgotten when cleaning.
    UnfenceForgotten,
    /// Services go back while blue is still fenced.
    BackBehindFence,
    /// The canary is left.
    CanaryLeft,
    /// Our own users are left.
    EpochLeft,
    /// No verdict counts as a pass.
    NoVerdictPasses,
    /// Blue is left open: the fence is not put up.
    FenceDropped,
    /// A wait says nothing.
    SilentWait,
    /// When connections cannot be read everybody counts as gone.
    FailedConnectionsAreNone,
    /// The fence stays where somebody else took a Service.
    ContestKeepsFence,
    /// A Service that was taken is taken back for ever.
    RepairsForEver,
    /// Green is taken to have all bindings.
    BindingsAssumed,
    /// Definitions are not compared again before the switch.
    ComparisonSkipped,
}

const ALL: [(Mistake, &str); 22] = [
    (Mistake::UnknownDepthIsZero, "(b)"),
    (Mistake::FenceBeforeRoute, "(c)"),
    (Mistake::RouteNotReadBack, "(c)"),
    (Mistake::SampledZeroCloses, "(b)"),
    (Mistake::PublishersOverlooked, "(b)"),
    (Mistake::UnknownRoleIsConsumer, "(b)"),
    (Mistake::ImportSkipped, "(f)"),
    (Mistake::RecordNotStored, "(d)"),
    (Mistake::EmptinessAssumed, "(b)"),
    (Mistake::CarryDropped, "(f)"),
    (Mistake::UnfenceForgotten, "(c)"),
    (Mistake::BackBehindFence, "(c)"),
    (Mistake::CanaryLeft, "(c)"),
    (Mistake::EpochLeft, "(c)"),
    (Mistake::NoVerdictPasses, "(g)"),
    (Mistake::FenceDropped, "(f)"),
    (Mistake::SilentWait, "(e)"),
    (Mistake::FailedConnectionsAreNone, "(b)"),
    (Mistake::ContestKeepsFence, "(c)"),
    (Mistake::RepairsForEver, "(j)"),
    (Mistake::BindingsAssumed, "(k)"),
    (Mistake::ComparisonSkipped, "(l)"),
];

/// The boundary at which a mistake is made.
struct Mutant {
    mistake: Mistake,
    phase: Phase,
    record: Option<SwitchRecord>,
}

impl Boundary for Mutant {
    fn seen(&mut self, fact: Fact, world: &mut World) {
        let cleaning = matches!(self.phase, Phase::Retiring | Phase::RolledBack);
        match (self.mistake, fact) {
            (Mistake::UnknownDepthIsZero, Fact::Depths(side)) => assume_empty(world, side),
            (Mistake::PublishersOverlooked, Fact::Connections(side)) => {
                change(world.connections.of_mut(side), |list| {
                    list.retain(|c| c.role != Role::Publisher && c.role != Role::Idle);
                });
            }
            (Mistake::UnknownRoleIsConsumer, Fact::Connections(side)) => {
                change(world.connections.of_mut(side), |list| {
                    for unknown in list.iter_mut().filter(|c| c.role == Role::Unknown) {
                        unknown.role = Role::Consumer;
                    }
                });
            }
            (Mistake::FailedConnectionsAreNone, Fact::Connections(side)) => {
                let connections = world.connections.of_mut(side);
                if matches!(connections, Reading::Failed(_)) {
                    *connections = Reading::Seen(Vec::new());
                }
            }
            (Mistake::ImportSkipped, Fact::Definitions) => {
                change(&mut world.definitions, |d| d.differences.clear());
            }
            (Mistake::RecordNotStored, Fact::Record) => world.record = Reading::Seen(self.record.clone()),
            (Mistake::EmptinessAssumed, Fact::Emptiness(side)) => {
                change(world.emptiness.of_mut(side), |list| {
                    for (_, answer) in list {
                        *answer = Emptiness::Empty;
                    }
                });
            }
            (Mistake::BindingsAssumed, Fact::Bindings(Side::Green)) => {
                world.bindings.green = world.bindings.blue.clone();
            }
            (Mistake::UnfenceForgotten, Fact::Users(side)) if cleaning => open(world, side),
            (Mistake::BackBehindFence, Fact::Users(Side::Blue)) if self.phase == Phase::RollingBack => {
                open(world, Side::Blue);
            }
            (Mistake::CanaryLeft, Fact::Ledger) if cleaning => change(&mut world.ledger, |l| {
                l.running = false;
            }),
            (Mistake::EpochLeft, Fact::Epoch(side)) if cleaning => {
                change(world.epochs.of_mut(side), |epoch| {
                    (epoch.current, epoch.older) = (false, 0);
                });
            }
            (Mistake::FenceDropped, Fact::Users(Side::Blue)) if self.phase == Phase::Switching => {
                limit(world, Side::Blue, Some(0));
            }
            _ => {}
        }
    }

    fn verdict(&mut self, mut verdict: Verdict, world: &World) -> Verdict {
        self.phase = verdict.status.phase.unwrap_or_default();
        let switching = self.phase == Phase::Switching;
        let waits = match &verdict.step {
            Step::Wait(wait) | Step::Stop(wait) => Some(wait.reason),
            Step::Do(_) | Step::Go(_) => None,
        };
        let points = matches!(&verdict.step, Step::Do(effects) if matches!(effects[..], [Effect::Point(_)]));
        match (self.mistake, waits) {
            (Mistake::FenceBeforeRoute, _) if switching && points => verdict.step = fence(world),
            (Mistake::RouteNotReadBack, Some(Reason::RouteNotSeen)) if switching => {
                verdict.step = fence(world);
            }
            (Mistake::SampledZeroCloses, Some(Reason::Draining)) if switching && listed_zero(world) => {
                verdict.step = close_all(world);
            }
            (Mistake::EmptinessAssumed, Some(Reason::ProvingEmpty)) if switching => {
                verdict.step = Step::Go(Phase::Soaking);
                verdict.status.phase = Some(Phase::Soaking);
            }
            (Mistake::NoVerdictPasses, Some(Reason::Probing | Reason::GateDeadline))
            | (Mistake::ComparisonSkipped, Some(Reason::ComparingDefinitions)) => {
                verdict.step = Step::Go(Phase::Switching);
                verdict.status.phase = Some(Phase::Switching);
            }
            (Mistake::RepairsForEver, Some(Reason::RoutingContested)) if switching => {
                verdict.step = take_back(world);
            }
            (Mistake::SilentWait, Some(Reason::Soaking)) => {
                verdict.step = Step::wait(Reason::Soaking, "");
            }
            _ => {}
        }
        verdict
    }

    fn performs(&mut self, effect: &Effect) -> bool {
        if let Effect::StoreRecord(record) = effect {
            self.record = Some((**record).clone());
        }
        let opens_blue = matches!(effect, Effect::Unfence { side: Side::Blue, .. });
        if self.mistake == Mistake::ContestKeepsFence && opens_blue && self.phase == Phase::Switching {
            return false;
        }
        !matches!(
            (self.mistake, effect),
            (Mistake::ImportSkipped, Effect::ImportDefinitions)
                | (Mistake::RecordNotStored, Effect::StoreRecord(_))
                | (Mistake::CarryDropped, Effect::Carry { .. })
        )
    }
}

fn change<T>(reading: &mut Reading<T>, with: impl FnOnce(&mut T)) {
    if let Reading::Seen(value) = reading {
        with(value);
    }
}

fn open(world: &mut World, side: Side) {
    limit(world, side, None);
}

fn limit(world: &mut World, side: Side, limit: Option<i64>) {
    change(world.users.of_mut(side), |users| {
        for user in users {
            user.max_connections = limit;
        }
    });
}

fn assume_empty(world: &mut World, side: Side) {
    change(world.depths.of_mut(side), |depths| {
        for depth in depths.iter_mut().filter(|d| matches!(d.counted, None | Some((0, 0)))) {
            depth.counted = Some((0, 1));
        }
    });
}

fn fence(world: &World) -> Step {
    let users = world.users.blue.seen().into_iter().flatten();
    let users: Vec<String> = users.filter(|u| u.max_connections != Some(0)).map(|u| u.name.clone()).collect();
    Step::act(Effect::Fence { side: Side::Blue, users })
}

fn take_back(world: &World) -> Step {
    let record = world.record.seen().cloned().flatten().unwrap_or_default();
    let pointings = record.services.into_iter().map(|service| Pointing {
        service: service.name,
        uid: service.uid,
        selector: service.green_selector,
        force: true,
    });
    Step::Do(vec![Effect::Point(pointings.collect())])
}

fn listed_zero(world: &World) -> bool {
    let dead = |q: &QueueTotals| q.queue.as_ref().is_some_and(|queue| queue.name == "dead");
    world.queues.blue.seen().is_some_and(|queues| queues.iter().all(|q| q.ready == Some(0) || dead(q)))
}

fn close_all(world: &World) -> Step {
    let connections = world.connections.blue.seen().into_iter().flatten().map(|c| c.name.clone()).collect();
    Step::act(Effect::Close { side: Side::Blue, connections })
}

/// The first law that a mistake breaks, and after how many migrations.
fn killed(mistake: Mistake) -> Option<(u64, String)> {
    (0..SEEDS).find_map(|seed| {
        let mutant = Mutant { mistake, phase: Phase::Preflight, record: None };
        migrate(&Scenario::drawn(seed), mutant).err().map(|law| (seed, law))
    })
}

#[test]
fn every_mistake_is_noticed() {
    let results: Vec<_> = std::thread::scope(|scope| {
        let run = |part: &[(Mistake, &'static str)]| -> Vec<_> {
            part.iter().map(|(mistake, law)| (*mistake, *law, killed(*mistake))).collect()
        };
        let handles: Vec<_> =
            ALL.chunks(ALL.len().div_ceil(2)).map(|part| scope.spawn(move || run(part))).collect();
        handles.into_iter().flat_map(|handle| handle.join().unwrap()).collect()
    });
    let mut alive = Vec::new();
    for (mistake, expected, killer) in results {
        match killer {
            Some((seed, law)) => {
                let by = if law.starts_with(expected) { "" } else { " (by another law than expected)" };
                println!("{mistake:?} killed by seed {seed}{by}: {law}");
            }
            None => alive.push(mistake),
        }
    }
    assert!(alive.is_empty(), "these mistakes were not noticed within {SEEDS} migrations: {alive:?}");
}

#[test]
fn without_a_mistake_the_same_migrations_keep_the_laws() {
    for seed in 0..20 {
        assert_eq!(migrate(&Scenario::drawn(seed), Honest).err(), None, "seed {seed}");
    }
}
