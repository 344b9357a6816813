//! The probe and its evidence, and the canary's ledger: what our own measuring saw.

mod notebook;
mod windows;

use crate::body::{Memory, Scene};
use ::api::RabbitMQMigrationStatus;
use decide::gate::{Evidence, PairedWindow, Settings};
use decide::gate_plan::{gate_settings, rules};
use decide::plan::Plan;
use decide::side::{Pair, Side};
use decide::world::{LedgerView, ProbeView, Reading};
use probe::{Handle, LoadTest, State};
use rabbit::Secret;
use std::fmt;
use std::time::{Duration, Instant};
use tokio::sync::OwnedSemaphorePermit;

pub use notebook::forget;

/// How often the evidence is stored: what a restart costs. Where windows are short, after so many.
const STORE: Duration = Duration::from_secs(30);
const STORE_WINDOWS: u32 = 6;

/// The probe of one migration: what runs, what it found, and whether it may.
#[derive(Default)]
pub struct ProbeState {
    /// The A/B run.
    pub run: Option<Run>,
    /// The load test, while it runs.
    pub load: Option<LoadTest>,
    /// What the load test found: whether green held, and a line.
    pub load_test: Option<(bool, String)>,
    /// Which sides shall be probed, once the load test is over and it is our turn.
    pub wanted: Vec<Side>,
    /// Password of the probe's user on both sides.
    pub password: Option<Secret>,
    /// Our place among the migrations that may probe at once.
    pub slot: Option<OwnedSemaphorePermit>,
    /// Why nothing runs.
    pub note: String,
    /// Stopped on purpose: the next start begins anew.
    pub stopped: bool,
    /// For which plan the evidence counts; `None` until it was looked for in what is stored.
    pub key: Option<String>,
    /// Everything that was judged.
    pub evidence: Evidence,
    newest: Option<PairedWindow>,
    stored: Option<(Instant, Option<u64>)>,
}

impl fmt::Debug for ProbeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProbeState").field("runs", &self.run.is_some()).finish_non_exhaustive()
    }
}

/// A run and what it was started for.
pub struct Run {
    /// The way to its thread.
    pub handle: Handle,
    /// Which sides.
    pub sides: Vec<Side>,
    /// Addresses per side: others than now mean that pods were replaced.
    pub addresses: Pair<Vec<String>>,
    /// For which plan.
    pub key: String,
    /// Added to its windows' numbers, so that they follow those of earlier runs.
    pub base: u64,
    /// The first window that was not taken yet.
    pub next: u64,
}

impl Run {
    /// Why the run is of no more use, if so.
    pub fn useless(&self, addresses: &Pair<Vec<String>>, key: &str) -> Option<String> {
        match self.handle.state() {
            State::Failed(why) => return Some(why),
            State::Finished => return Some("the run ended".to_owned()),
            State::Connecting | State::WarmingUp | State::Measuring { .. } | State::Paused => {}
        }
        if self.key != key {
            return Some("the load or the objectives changed".to_owned());
        }
        let moved = self.sides.iter().find(|side| self.addresses.of(**side) != addresses.of(**side))?;
        Some(format!("pods of {moved} were replaced"))
    }
}

/// Takes the new windows into the evidence. A side near an alarm makes the probe rest. A run that is of no more
/// use is shown as none, so that it is started again.
pub async fn probe(scene: &Scene<'_>, memory: &mut Memory) -> Reading<ProbeView> {
    let (addresses, key) = (addresses(memory), evidence_key(scene));
    if memory.probe.key.is_none() && !memory.probe.stopped {
        notebook::load(scene, &mut memory.probe, &key).await;
    }
    let strain = memory.links.blue.strain.clone();
    let settings = gate_settings(scene.plan);
    let state = &mut memory.probe;
    state.take_windows(scene, &settings);
    state.take_load_test(scene);
    let mut view = state.view(&settings);
    if state.run.is_none() && (state.load.is_some() || state.waits_for_slot(scene)) {
        // The sides are taken care of: nobody need start them now.
        view.sides.clone_from(&state.wanted);
    }
    if let Some(run) = &state.run {
        if let Some(why) = run.useless(&addresses, &key) {
            view.state = why;
        } else {
            view.sides.clone_from(&run.sides);
            view.state = state_of(run, strain.as_deref());
        }
    }
    let pause = Duration::from_secs(settings.seconds(STORE_WINDOWS)).min(STORE);
    if state.is_to_be_stored(&key, pause) && scene.body.epoch.is_held() {
        notebook::store(scene, state, &key).await;
    }
    Reading::Seen(view)
}

/// What the canary counted. One that this process did not start does not run: it lives in this process.
pub fn ledger(memory: &mut Memory) -> Reading<LedgerView> {
    Reading::Seen(memory.canary.as_mut().map(crate::act::canary::CanaryState::view).unwrap_or_default())
}

/// AMQP addresses of both sides as Kubernetes tells them now, in a fixed order.
pub fn addresses(memory: &Memory) -> Pair<Vec<String>> {
    let of = |side: Side| {
        let ips = memory.links.of(side).pods().iter().filter_map(|pod| pod.ip.clone());
        let mut ips: Vec<String> = ips.collect();
        ips.sort();
        ips
    };
    Pair { blue: of(Side::Blue), green: of(Side::Green) }
}

/// What evidence depends on: another gate, another green or another attempt begins anew.
pub fn evidence_key(scene: &Scene<'_>) -> String {
    key_of(scene.plan, scene.status)
}

fn key_of(plan: &Plan, status: &RabbitMQMigrationStatus) -> String {
    let retry = status.handled_commands.iter().rfind(|handled| handled.annotation == ::api::RETRY);
    let retry = retry.map(|handled| &handled.value);
    let parts =
        serde_json::json!({ "gate": plan.gate, "blue": plan.blue, "green": plan.green, "retry": retry });
    decide::plan::digest(&[&parts.to_string(), &plan.template_digest().unwrap_or_default()])
}

/// What status says of the load test.
fn stored_load_test(scene: &Scene<'_>) -> Option<String> {
    scene.status.gate.as_ref()?.load_test.clone()
}

/// Rests or goes on, and says where the run stands.
fn state_of(run: &Run, strain: Option<&str>) -> String {
    let rests = strain.filter(|_| run.sides.contains(&Side::Blue));
    match rests {
        Some(_) => run.handle.pause(),
        None => run.handle.resume(),
    }
    match (run.handle.state(), rests) {
        (_, Some(why)) => format!("rests: {why}"),
        (State::Connecting, None) => "connecting".to_owned(),
        (State::WarmingUp, None) => "warming up".to_owned(),
        (State::Measuring { settled: true }, None) => "measuring".to_owned(),
        (State::Measuring { settled: false }, None) => "measuring; latencies did not settle".to_owned(),
        (State::Paused, None) => "resting".to_owned(),
        (State::Finished, None) => "ended".to_owned(),
        (State::Failed(why), None) => why,
    }
}

impl ProbeState {
    /// Begins anew: evidence of another plan, or of a run that was given up, counts for nothing.
    pub fn begin_anew(&mut self, scene: &Scene<'_>, key: &str) {
        if self.stopped && stored_load_test(scene).is_none() {
            self.load_test = None;
        }
        self.evidence = Evidence::default();
        self.newest = None;
        self.key = Some(key.to_owned());
        self.stopped = false;
    }

    /// Whether there is something new for the next process. What was given up is not kept: it was judged, and
    /// the next attempt must not begin with it.
    fn is_to_be_stored(&self, key: &str, pause: Duration) -> bool {
        let newest = self.evidence.newest;
        let is_due =
            self.stored.as_ref().is_none_or(|(at, stored)| at.elapsed() >= pause && *stored != newest);
        is_due && newest.is_some() && !self.stopped && self.key.as_deref() == Some(key)
    }

    /// Whether other migrations have all places.
    fn waits_for_slot(&self, scene: &Scene<'_>) -> bool {
        self.slot.is_none() && !self.stopped && scene.body.probe_slots.available_permits() == 0
    }

    fn take_windows(&mut self, scene: &Scene<'_>, settings: &Settings) {
        let Some(run) = &mut self.run else { return };
        let rules = rules(scene.plan);
        for window in run.handle.windows_since(run.next) {
            run.next = window.index.saturating_add(1);
            let window = windows::paired(&window, run.base);
            self.evidence = std::mem::take(&mut self.evidence).push(&window, &rules, settings);
            self.newest = Some(window);
        }
    }

    /// Takes the load test's result once it is over, or what status kept of an earlier process's.
    fn take_load_test(&mut self, scene: &Scene<'_>) {
        if let Some(load) = &self.load {
            if let Some(summary) = load.result() {
                self.load_test = Some(windows::load_test(&summary, scene.plan.gate.load_test.as_ref()));
                self.load = None;
            } else if let State::Failed(why) = load.state() {
                self.note = format!("load test: {why}");
                self.load = None;
            }
        }
        if self.load_test.is_none() && self.load.is_none() && !self.stopped {
            self.load_test = stored_load_test(scene).map(|line| (windows::held(&line), line));
        }
    }

    fn view(&self, settings: &Settings) -> ProbeView {
        let state = match (&self.load, self.note.as_str()) {
            (Some(load), _) => match load.state() {
                State::Connecting => "load test: connecting".to_owned(),
                State::WarmingUp => "load test: warming up".to_owned(),
                _ => "load test: measuring".to_owned(),
            },
            (None, "") => "not running".to_owned(),
            (None, note) => note.to_owned(),
        };
        let windows = self.evidence.valid.saturating_add(self.evidence.invalid);
        let merged = |side| self.run.as_ref().and_then(|run| windows::latency(&run.handle, side));
        ProbeView {
            sides: Vec::new(),
            state,
            measured_seconds: settings.seconds(windows),
            evidence: self.evidence.clone(),
            newest: self.newest.clone(),
            latencies: Side::BOTH.into_iter().filter_map(merged).collect(),
            load_test: self.load_test.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::act::green::example_plan;
    use ::api::status::HandledCommand;

    #[test]
    fn another_attempt_begins_with_no_evidence() {
        let plan = example_plan();
        let status = |retries: &[&str]| {
            let handled = |value: &&str| HandledCommand {
                annotation: ::api::RETRY.to_owned(),
                value: (*value).to_owned(),
                at: None,
            };
            RabbitMQMigrationStatus {
                handled_commands: retries.iter().map(handled).collect(),
                ..RabbitMQMigrationStatus::default()
            }
        };
        assert_eq!(key_of(&plan, &status(&[])), key_of(&plan, &status(&[])));
        assert_ne!(key_of(&plan, &status(&[])), key_of(&plan, &status(&["1"])));
        assert_ne!(key_of(&plan, &status(&["1"])), key_of(&plan, &status(&["1", "2"])));
    }

    #[test]
    fn what_was_given_up_is_not_stored_again() {
        let mut state = ProbeState { key: Some("k".to_owned()), ..ProbeState::default() };
        assert!(!state.is_to_be_stored("k", STORE), "there is nothing yet");
        state.evidence.newest = Some(3);
        assert!(state.is_to_be_stored("k", STORE));
        assert!(!state.is_to_be_stored("another", STORE));
        state.stored = Some((Instant::now(), Some(2)));
        assert!(!state.is_to_be_stored("k", STORE), "it was just stored");
        assert!(state.is_to_be_stored("k", Duration::ZERO));
        state.stored = Some((Instant::now(), Some(3)));
        assert!(!state.is_to_be_stored("k", Duration::ZERO), "nothing is new");
        state.stored = None;
        state.stopped = true;
        assert!(!state.is_to_be_stored("k", STORE));
    }
}
