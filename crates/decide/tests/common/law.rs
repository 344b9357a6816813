//! The laws. Each names itself in what it says when it is broken.

use api::Phase;
use decide::effect::{Effect, Pointing};
use decide::names::Names;
use decide::phases::successors;
use decide::side::Side;
use decide::step::Step;
use decide::toy::{Body, Boundary, Fate, GateMood, Millis, Pass, QUEUES, Toy, stamp};

/// How long the route must have been seen before anybody is fenced.
const ROUTE_MILLIS: Millis = 1000;

/// Within which time the fence follows a Service that somebody else took, once nothing else goes wrong.
const FOLLOW_MILLIS: Millis = 5000;

/// Within which time a missing binding on green stops the pacing: the counter is read every second.
const UNROUTABLE_MILLIS: Millis = 2000;
/// The same where the alarm is on already: bindings are compared every three seconds then.
const ALARMED_MILLIS: Millis = 4500;

/// Judges one migration, pass by pass.
pub struct Judge {
    calm: bool,
    /// When something went wrong last.
    disturbed: Millis,
    /// Forced repairs in this heading, what was forgotten before it, and when it began.
    repairs: (u64, u64, Millis),
    /// Whether a switch ran into its time-out: what is carried then comes late.
    late: bool,
    refusals: usize,
    stored: Phase,
    /// In which phase instance consumers were closed already.
    consumers_closed: Option<Phase>,
}

impl Judge {
    /// A judge of a calm migration is stricter.
    pub const fn new(calm: bool) -> Self {
        Self {
            calm,
            disturbed: 0,
            repairs: (0, 0, 0),
            late: false,
            refusals: 0,
            stored: Phase::Preflight,
            consumers_closed: None,
        }
    }

    /// Notes what holds before a pass.
    pub fn before<B: Boundary>(&mut self, body: &Body<B>) {
        self.stored = body.phase();
    }

    /// Judges what a pass did.
    pub fn after<B: Boundary>(&mut self, body: &Body<B>, pass: &Pass) -> Result<(), String> {
        let waited = pass
            .status
            .switching
            .as_ref()
            .and_then(|s| s.pointed_at.as_ref())
            .map_or(0, |pointed| stamp(pass.at).as_second() - pointed.0.as_second());
        let patience = i64::from(body.plan.cutover.timeout_seconds);
        self.late |=
            pass.phase == Phase::RollingBack || (pass.phase == Phase::Switching && waited + 1 >= patience);
        self.moves(body, pass)?;
        says(pass)?;
        for (effect, fate) in &pass.effects {
            if *fate != Fate::Before {
                self.acts(body, pass, effect)?;
            }
        }
        self.closes(body, pass)?;
        if !body.faults.are_none() {
            self.disturbed = body.toy.now;
        }
        self.refuses(&body.toy)?;
        self.follows(&body.toy)?;
        self.repairs(body, pass)?;
        if body.toy.truth.removed_serving_green {
            return Err("(h) green was removed though a Service had led to it".to_owned());
        }
        if let Some(held) = body.toy.truth.scaled_with.filter(|held| *held > 0) {
            return Err(format!("(a) blue was scaled to zero with {held} messages"));
        }
        Ok(())
    }

    /// (d) Legal transitions; (b), (g) what must hold at some of them.
    fn moves<B: Boundary>(&mut self, body: &Body<B>, pass: &Pass) -> Result<(), String> {
        let Step::Go(next) = &pass.step else { return Ok(()) };
        self.consumers_closed = None;
        if !successors(pass.phase).contains(next) {
            return Err(format!("(d) from {} to {next}", pass.phase));
        }
        if *next == Phase::Switching {
            if body.toy.settings.gate != GateMood::Good {
                return Err(format!("(g) switching though the gate is {:?}", body.toy.settings.gate));
            }
            if pass.phase.is_before_switch() {
                compared(&body.toy)?;
            }
            if pass.status.gate.as_ref().is_none_or(|gate| gate.verdict != "Pass") {
                return Err("(g) switching without a pass of the gate".to_owned());
            }
        }
        let left = match (pass.phase, next) {
            (Phase::Switching, Phase::Soaking) => Side::Blue,
            (Phase::RollingBack, Phase::RolledBack) => Side::Green,
            _ => return Ok(()),
        };
        let (held, open) = (body.toy.held(left), body.toy.brokers.of(left).connections.len());
        if held > 0 || open > 0 {
            return Err(format!(
                "(b) {} ends with {held} messages and {open} connections on {left}",
                pass.phase
            ));
        }
        Ok(())
    }

    /// What must hold of an effect.
    fn acts<B: Boundary>(&mut self, body: &Body<B>, pass: &Pass, effect: &Effect) -> Result<(), String> {
        let (toy, phase) = (&body.toy, pass.phase);
        let heading = match phase {
            Phase::Switching => Some(Side::Blue),
            Phase::RollingBack => Some(Side::Green),
            _ => None,
        };
        match effect {
            Effect::Fence { side, users } => {
                self.may_leave(heading, *side, effect)?;
                recorded(toy, *side, users)?;
                routed(toy, side.other())
            }
            Effect::Point(_) => {
                self.may_leave(heading, heading.unwrap_or(Side::Blue), effect)?;
                if toy.record.is_none() {
                    return Err("(d) Services pointed without a record".to_owned());
                }
                Ok(())
            }
            Effect::Close { side, .. } => {
                self.may_leave(heading, *side, effect)?;
                let dropping = toy.truth.dropping_since.filter(|_| *side == Side::Blue);
                let millis = dropping.map_or(0, |at| pass.at - at.max(self.disturbed));
                if millis > if toy.settings.replies { ALARMED_MILLIS } else { UNROUTABLE_MILLIS } {
                    return Err(format!("(k) clients moved while green drops messages since {millis} ms"));
                }
                Ok(())
            }
            Effect::Carry { from, .. } => self.may_leave(heading, *from, effect),
            Effect::EnableFeatureFlags(Side::Blue) | Effect::RebalanceLeaders(Side::Blue) => {
                Err(format!("(h) {} on blue", effect.name()))
            }
            Effect::ScaleBlueToZero if phase != Phase::Retiring => Err(format!("(h) blue scaled in {phase}")),
            _ => Ok(()),
        }
    }

    /// (d), (h) Only the switch, stored as such, fences, points, closes and carries, and only the side it leaves.
    fn may_leave(&self, heading: Option<Side>, side: Side, effect: &Effect) -> Result<(), String> {
        if heading != Some(side) || !self.stored.is_switch() {
            return Err(format!("(h) {} on {side} while {} is stored", effect.name(), self.stored));
        }
        Ok(())
    }

    /// (b) Before the time-out the last consumers go only when their queues are empty and no publisher is left.
    fn closes<B: Boundary>(&mut self, body: &Body<B>, pass: &Pass) -> Result<(), String> {
        let Some(closing) = pass.closing.filter(|closing| closing.consumers > 0) else { return Ok(()) };
        let since = pass.status.phase_since.as_ref().map_or(0, |since| since.0.as_second());
        let overdue = stamp(pass.at).as_second() - since > i64::from(body.plan.cutover.timeout_seconds);
        let first = self.consumers_closed.replace(pass.phase) != Some(pass.phase);
        if first && !overdue && (closing.ready > 0 || closing.publishers > 0) {
            return Err(format!("(b) consumers closed too early: {closing:?}"));
        }
        Ok(())
    }

    /// (c) Nobody is refused on the side that his Service leads to; in a calm migration nobody at all.
    fn refuses(&mut self, toy: &Toy) -> Result<(), String> {
        for refusal in toy.truth.refusals.iter().skip(self.refusals) {
            let known = toy.brokers.of(refusal.side).users.contains_key(&toy.clients[refusal.client].user);
            let service = toy.clients[refusal.client].service;
            let taken = toy.taken_at(service, refusal.at).map(|at| refusal.at - at.max(self.disturbed));
            let contested = taken.is_some_and(|millis| millis <= FOLLOW_MILLIS || toy.settings.hold);
            if refusal.selected == Some(refusal.side) && known && !contested {
                return Err(format!("(c) refused where his Service leads: {refusal:?}"));
            }
            if self.calm && !refusal.straight && known {
                return Err(format!("(c) refused in a calm migration: {refusal:?}"));
            }
        }
        self.refusals = toy.truth.refusals.len();
        Ok(())
    }

    /// (c) The fence follows the route, whoever changed it.
    fn follows(&self, toy: &Toy) -> Result<(), String> {
        for service in 0..toy.services.len() {
            let taken = toy.taken_at(service, toy.now).filter(|_| !toy.settings.hold);
            let millis = taken.map_or(0, |at| toy.now - at.max(self.disturbed));
            let Some(side) = toy.selected(service).filter(|_| millis > FOLLOW_MILLIS) else { continue };
            let fenced = |(name, limit): (&String, &Option<i64>)| *limit == Some(0) && name != "gone";
            if toy.brokers.of(side).users.iter().any(fenced) {
                return Err(format!("(c) {side} is fenced {millis} ms after its Service was taken there"));
            }
        }
        Ok(())
    }

    /// (j) One forced repair per heading, and two for each time that the operator lost its memory.
    fn repairs<B: Boundary>(&mut self, body: &Body<B>, pass: &Pass) -> Result<(), String> {
        let enters = match pass.step {
            Step::Go(Phase::Switching) => pass.phase.is_before_switch(),
            Step::Go(Phase::RollingBack) => true,
            _ => false,
        };
        if enters {
            self.repairs = (0, body.forgotten, pass.at);
        }
        let (_, before, since) = self.repairs;
        let forced = |(effect, fate): &(Effect, Fate)| match effect {
            Effect::Point(all) if *fate != Fate::Before => {
                all.iter().any(|p| p.force && repairs(body, p, since))
            }
            _ => false,
        };
        if pass.effects.iter().any(forced) {
            self.repairs.0 += 1;
        }
        let repairs = self.repairs.0;
        // Who lost his memory begins the heading anew: its first write and its repair.
        if repairs > 1 + 2 * (body.forgotten - before) {
            return Err(format!("(j) {repairs} forced repairs in {}", pass.phase));
        }
        Ok(())
    }

    /// What must hold at the end.
    pub fn at_end<B: Boundary>(&mut self, body: &Body<B>, pass: &Pass) -> Result<(), String> {
        let toy = &body.toy;
        let lost = toy.lost();
        if !lost.is_empty() {
            let first = &toy.truth.messages[lost[0]];
            return Err(format!("(a) {} confirmed messages are lost, first {first:?}", lost.len()));
        }
        let twice = toy.unexplained();
        if !twice.is_empty() {
            return Err(format!("(a) {} messages came twice without a reason", twice.len()));
        }
        if self.calm && !self.late && toy.truth.reordered > 0 {
            return Err(format!("(a) {} messages out of order in a calm migration", toy.truth.reordered));
        }
        let serving = toy.selected(0).ok_or("(c) the Service selects nobody")?;
        if (0..toy.services.len()).any(|index| toy.selected(index) != Some(serving)) {
            return Err("(c) the Services lead to different sides".to_owned());
        }
        let stranded = toy.stranded(serving.other());
        if !stranded.is_empty() {
            return Err(format!("(a) {} messages stranded on {}", stranded.len(), serving.other()));
        }
        let wanted = match pass.phase {
            Phase::Completed => Some(Side::Green),
            Phase::RolledBack => Some(Side::Blue),
            _ => None,
        };
        if wanted.is_some_and(|wanted| wanted != serving) {
            return Err(format!("(a) {} and {serving} serves", pass.phase));
        }
        if pass.phase.is_terminal() || body.plan.orders.deleted {
            leftovers(toy)?;
        }
        Ok(())
    }
}

/// (e) Every wait has a reason and says something, in status too.
fn says(pass: &Pass) -> Result<(), String> {
    let (Step::Wait(wait) | Step::Stop(wait)) = &pass.step else { return Ok(()) };
    let told = pass.status.wait.as_ref().is_some_and(|told| {
        told.reason == wait.reason.as_str() && !told.detail.is_empty() && told.since.is_some()
    });
    if wait.detail.trim().is_empty() || !told {
        return Err(format!("(e) {} waits for {} and says nothing", pass.phase, wait.reason.as_str()));
    }
    Ok(())
}

/// (d) Whoever is fenced is on record with the limit that he had.
fn recorded(toy: &Toy, side: Side, users: &[String]) -> Result<(), String> {
    let Some(record) = &toy.record else { return Err("(d) fenced without a record".to_owned()) };
    match users.iter().find(|user| record.limit(side, user).is_none()) {
        Some(user) => Err(format!("(d) {user} fenced on {side} and not on record")),
        None => Ok(()),
    }
}

/// (l) What blue had when the record was taken green has when the switch begins.
fn compared(toy: &Toy) -> Result<(), String> {
    let taken = toy.record.as_ref().and_then(|record| record.taken_at.parse().ok());
    let made = toy.truth.user_made.filter(|(_, side)| *side == Side::Blue).map(|(at, _)| stamp(at));
    let before = made.zip(taken).is_some_and(|(made, taken)| made <= taken);
    if before && !toy.brokers.green.users.contains_key("v-token") {
        return Err("(l) switching though a user of blue is not on green".to_owned());
    }
    Ok(())
}

/// Whether this write took a Service from somebody who had taken it in this heading.
fn repairs<B: Boundary>(body: &Body<B>, pointing: &Pointing, since: Millis) -> bool {
    let index = body.plan.services.iter().position(|name| *name == pointing.service);
    let Some(history) = index.and_then(|index| body.toy.services.get(index)) else { return false };
    let before = history.iter().rev().nth(1);
    let of_others = |at: Millis| body.toy.truth.taken.iter().any(|t| Some(t.service) == index && t.at == at);
    before.is_some_and(|(at, _)| *at >= since && of_others(*at))
}

/// (c) A fence never precedes the route.
fn routed(toy: &Toy, to: Side) -> Result<(), String> {
    for (service, history) in toy.services.iter().enumerate() {
        let Some((at, side)) = history.last() else { continue };
        // Nobody can know of what happens at this very moment.
        if toy.taken_at(service, toy.now).is_some_and(|at| toy.now - at <= FOLLOW_MILLIS) {
            continue;
        }
        if *side != Some(to) || toy.now - at < ROUTE_MILLIS {
            return Err(format!(
                "(c) fenced {} ms after the last change of a Service that leads to {side:?}",
                toy.now - at
            ));
        }
    }
    Ok(())
}

/// (c) Nothing of ours is left; (i) blue is as it was.
fn leftovers(toy: &Toy) -> Result<(), String> {
    if toy.record.is_some() {
        return Err("(c) the record is left".to_owned());
    }
    if !toy.process.canary.is_empty() || toy.process.probe_since.is_some() {
        return Err("(c) the canary or the probe still runs".to_owned());
    }
    for side in Side::BOTH {
        let broker = toy.brokers.of(side);
        if !broker.exists || broker.replicas == 0 {
            continue;
        }
        if !broker.ours.is_empty() || !broker.epochs.is_empty() {
            return Err(format!("(c) left on {side}: {:?}, epochs {:?}", broker.ours, broker.epochs));
        }
        let original = [("admin", None), ("billing", Some(50)), ("gone", Some(0)), ("shop", None)];
        for (user, limit) in &broker.users {
            let before = original.iter().find(|(name, _)| name == user).and_then(|(_, limit)| *limit);
            if *limit != before {
                return Err(format!("(c) {user} has limit {limit:?} on {side}, had {before:?}"));
            }
        }
        let ours = |name: &String| Names::is_ours(name);
        if broker.users.keys().any(ours) || (side == Side::Blue && broker.users.len() < original.len()) {
            return Err(format!("(i) users of {side}: {:?}", broker.users));
        }
        let queues = broker.queues.iter().filter(|queue| queue.exists).count();
        if side == Side::Blue && queues != QUEUES.len() - if toy.settings.returns { 1 } else { 2 } {
            return Err(format!("(i) blue has {queues} queues"));
        }
    }
    Ok(())
}
