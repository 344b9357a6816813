//! What the brain sees: one reading per fact, and a little history.

use crate::effect::QueueRef;
use crate::fact::Fact;
use crate::gate::PairedWindow;
use crate::placement::{NodeView, ReplicaView, StorageClassView, VolumeView};
use crate::record::SwitchRecord;
use crate::roles::Role;
use crate::side::{Pair, Side};
use api::Phase;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// An answer. Unknown is a value of its own, never zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Reading<T> {
    /// Nobody asked.
    #[default]
    Unasked,
    /// Asked, and no answer: what was attempted and why it failed.
    Failed(String),
    /// The answer.
    Seen(T),
}

impl<T> Reading<T> {
    /// The answer, where there is one.
    pub const fn seen(&self) -> Option<&T> {
        match self {
            Self::Seen(value) => Some(value),
            Self::Unasked | Self::Failed(_) => None,
        }
    }

    /// Why there is no answer.
    pub fn why_not(&self) -> &str {
        match self {
            Self::Unasked => "not asked yet",
            Self::Failed(why) => why,
            Self::Seen(_) => "",
        }
    }
}

/// The last readings of one fact with their times, newest last. A failed read empties it: unknown again.
#[derive(Clone, Debug, PartialEq)]
pub struct Series<T> {
    samples: Vec<(Timestamp, T)>,
    /// For each sample whether it equals the one before.
    same: Vec<bool>,
}

impl<T> Default for Series<T> {
    fn default() -> Self {
        Self { samples: Vec::new(), same: Vec::new() }
    }
}

/// Samples kept per series: memory is bounded, whatever the pace.
const SERIES_LENGTH: usize = 64;
/// Newest samples that are never thinned out: rules count at most three in a row.
const SERIES_NEWEST: usize = 8;
/// How far back a series looks: four times the longest window that any rule asks for.
const SERIES_SECONDS: i64 = 60;

impl<T: Clone + PartialEq> Series<T> {
    /// Adds a reading taken at `at`; a failed one empties the series, an unasked one changes nothing.
    pub fn push(&mut self, at: Timestamp, reading: &Reading<T>) {
        match reading {
            Reading::Unasked => {}
            Reading::Failed(_) => *self = Self::default(),
            Reading::Seen(value) => {
                let expired = |(old, _): &&(Timestamp, T)| at.as_second() - old.as_second() > SERIES_SECONDS;
                let expired = self.samples.iter().take_while(expired).count();
                self.samples.drain(..expired);
                self.same.drain(..expired);
                if self.samples.len() >= SERIES_LENGTH {
                    let superfluous = self.superfluous();
                    self.samples.remove(superfluous);
                    self.same.remove(superfluous);
                }
                self.same.push(self.samples.last().is_some_and(|(_, last)| last == value));
                self.samples.push((at, value.clone()));
            }
        }
    }

    /// The sample whose loss says least: one that equals both neighbors, where these are closest together; else
    /// the oldest. So the sprint's pace does not shorten the time that a series covers.
    fn superfluous(&self) -> usize {
        let millis = |index: usize| self.samples.get(index).map(|(at, _)| at.as_millisecond());
        let same = |index: usize| self.same.get(index).copied().unwrap_or(false);
        let last = self.samples.len().saturating_sub(SERIES_NEWEST);
        let between = (1..last).filter(|index| same(*index) && same(index + 1));
        let gap =
            |index: &usize| millis(index + 1).zip(millis(index - 1)).map(|(after, before)| after - before);
        between.min_by_key(|index| gap(index)).unwrap_or(0)
    }

    /// The samples, newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = &(Timestamp, T)> {
        self.samples.iter().rev()
    }

    /// How many of the newest samples in a row satisfy `good`.
    pub fn streak(&self, good: impl Fn(&T) -> bool) -> usize {
        self.newest_first().take_while(|(_, value)| good(value)).count()
    }

    /// Milliseconds for which every sample satisfied `good`, up to the newest; `None` where the newest does not.
    pub fn held_millis(&self, good: impl Fn(&T) -> bool) -> Option<i64> {
        let mut run = self.newest_first().take_while(|(_, value)| good(value));
        let newest = run.next()?.0;
        let oldest = run.last().map_or(newest, |(at, _)| *at);
        Some(newest.as_millisecond() - oldest.as_millisecond())
    }
}

/// A StatefulSet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatefulSetView {
    /// Whether it exists.
    pub exists: bool,
    /// The uid of the migration that made it, from our label.
    pub made_by: Option<String>,
    /// Digest of the template it was made from, from our annotation.
    pub template_digest: Option<String>,
    /// Wanted replicas.
    pub replicas: i64,
    /// Ready replicas.
    pub ready: i64,
    /// Labels of its pod template.
    pub pod_labels: BTreeMap<String, String>,
    /// Whether the data directory is on a claim; `None` where the volumes do not tell.
    pub persistent: Option<bool>,
    /// Image of the broker container.
    pub image: String,
    /// Names of the ports that its containers declare, with their numbers.
    pub ports: BTreeMap<String, i32>,
    /// Probe and hook commands that would log in as a user: `liveness: rabbitmqctl ...`.
    pub probe_commands: Vec<String>,
}

/// A pod of a broker.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodView {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its address, once it has one.
    pub ip: Option<String>,
    /// The Kubernetes node it runs on.
    pub node: Option<String>,
    /// Whether it is ready.
    pub ready: bool,
    /// Why it waits: image pull, crash loop, unschedulable.
    pub trouble: Option<String>,
}

/// Another migration of the same namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherMigration {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// Its phase.
    pub phase: Phase,
    /// The reason in its `status.wait`.
    pub waits_for: Option<String>,
    /// Whether its mode is Check: it changes nothing.
    pub checks_only: bool,
    /// Names of its blue's and green's StatefulSets.
    pub stateful_sets: BTreeSet<String>,
    /// Names of the Services that it moves.
    pub services: BTreeSet<String>,
}

/// A moved Service.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceView {
    /// Its name.
    pub name: String,
    /// Its uid, empty where it does not exist.
    pub uid: String,
    /// Its selector.
    pub selector: BTreeMap<String, String>,
    /// Target ports: name or number as text.
    pub target_ports: Vec<String>,
    /// Who owns `spec.selector` according to managedFields.
    pub manager: Option<String>,
    /// A controller that owns the Service, `RabbitmqCluster/x`.
    pub owner: Option<String>,
}

/// A Service that leads to blue's pods.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntranceView {
    /// Its name.
    pub name: String,
    /// Whether it is headless.
    pub headless: bool,
}

/// Where a moved Service leads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RouteView {
    /// The Service.
    pub service: String,
    /// Ready endpoints per port name that are pods of blue, of green, of neither.
    pub ports: Vec<PortRoute>,
    /// The cluster name that answered the handshake through the Service; `None` where nobody did.
    pub answered_by: Option<String>,
}

/// Ready endpoints of one port.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PortRoute {
    /// The port's name.
    pub port: String,
    /// Ready pods of blue behind it.
    pub blue: usize,
    /// Ready pods of green behind it.
    pub green: usize,
    /// Ready others behind it.
    pub others: usize,
}

/// A rabbit node as one pod tells it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BrokerView {
    /// The cluster name that each pod told, by pod.
    pub cluster_names: BTreeMap<String, String>,
    /// The members that each pod lists, by pod.
    pub members: BTreeMap<String, BTreeSet<String>>,
    /// Members that each pod sees running, by pod.
    pub running: BTreeMap<String, BTreeSet<String>>,
    /// Pods that did not answer, with the reason.
    pub silent: BTreeMap<String, String>,
    /// RabbitMQ versions seen.
    pub versions: BTreeSet<String>,
    /// Erlang versions seen.
    pub erlang: BTreeSet<String>,
    /// Alarms that are on: `memory on rabbit@x`.
    pub alarms: Vec<String>,
    /// Stable feature flags that are off.
    pub flags_off: Vec<String>,
    /// Whether flag `user_limits` is on; `None` where flags could not be read.
    pub user_limits: Option<bool>,
    /// Plugins that are enabled on some member.
    pub plugins: BTreeSet<String>,
}

impl BrokerView {
    /// The names by which the one cluster of all `pods` answers; `Err` says why it is not one.
    ///
    /// Until somebody sets a cluster name each member tells its own node name, so that a cluster may have as
    /// many names as members.
    pub fn one_cluster(&self, pods: usize) -> Result<BTreeSet<&str>, String> {
        if let Some((pod, why)) = self.silent.iter().next() {
            return Err(format!("{pod} does not answer: {why}"));
        }
        if self.members.len() < pods {
            return Err(format!("{} of {pods} pods answered", self.members.len()));
        }
        let lists: BTreeSet<_> = self.members.values().collect();
        if lists.len() > 1 {
            let told: Vec<String> =
                self.members.iter().map(|(pod, list)| format!("{pod} lists {}", list.len())).collect();
            return Err(format!("pods belong to {} different clusters ({})", lists.len(), told.join(", ")));
        }
        if let Some((pod, running)) = self.running.iter().find(|(pod, r)| self.members.get(*pod) != Some(r)) {
            return Err(format!("{pod} sees only {} members running", running.len()));
        }
        let names: BTreeSet<&str> = self.cluster_names.values().map(String::as_str).collect();
        let are_nodes = lists.first().is_some_and(|members| names.iter().all(|name| members.contains(*name)));
        match names.len() {
            0 => Err("no pod tells a cluster name".to_owned()),
            1 => Ok(names),
            _ if are_nodes => Ok(names),
            n => Err(format!("pods tell {n} cluster names")),
        }
    }

    /// The version, where all members have the same.
    pub fn version(&self) -> Option<&str> {
        if self.versions.len() == 1 { self.versions.first().map(String::as_str) } else { None }
    }
}

/// Whether our epoch's user stands alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EpochView {
    /// The user of this epoch exists and its password is ours.
    pub current: bool,
    /// Other operator's users that still exist: older ones, and one of this epoch whose password is not ours.
    pub older: usize,
}

/// A broker user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserView {
    /// Its name.
    pub name: String,
    /// Its limit of connections; `None` is no limit.
    pub max_connections: Option<i64>,
}

/// What the rehearsal of the fence showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RehearsalView {
    /// Whether the login was refused as it must be.
    pub refused: bool,
    /// What the broker said.
    pub detail: String,
}

/// A client connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionView {
    /// Its name on the broker.
    pub name: String,
    /// Its user.
    pub user: String,
    /// What the client calls itself.
    pub client: Option<String>,
    /// The protocol, for example `AMQP 0-9-1`.
    pub protocol: String,
    /// What it does, from statistics.
    pub role: Role,
}

/// One queue in a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueTotals {
    /// The queue.
    pub queue: Option<QueueRef>,
    /// Its type.
    pub kind: String,
    /// Whether it is exclusive to a connection.
    pub exclusive: bool,
    /// Messages ready.
    pub ready: Option<u64>,
    /// Messages unacked.
    pub unacked: Option<u64>,
    /// All messages.
    pub messages: Option<u64>,
    /// Consumers; from statistics, so perhaps absent.
    pub consumers: Option<u64>,
    /// Acks per second; from statistics, so perhaps absent.
    pub acks_per_second: Option<u64>,
    /// Its state, `running` when all is well.
    pub state: Option<String>,
}

/// One queue by passive declare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueDepth {
    /// The queue.
    pub queue: QueueRef,
    /// Messages ready, and consumers; `None` where the broker did not answer.
    pub counted: Option<(u64, u64)>,
}

/// What `basic.get` said of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emptiness {
    /// Its leader answered: empty.
    Empty,
    /// It returned a message, which was put back.
    Message,
    /// No answer: unknown.
    NoAnswer,
}

/// Live counters of a side, summed over its nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficView {
    /// Publishes received.
    pub received: u64,
    /// Publishes dropped as unroutable.
    pub unroutable: u64,
}

/// A binding. All of it is its identity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BindingView {
    /// The vhost.
    pub vhost: String,
    /// The exchange.
    pub source: String,
    /// `queue` or `exchange`.
    pub kind: String,
    /// The queue or exchange that it leads to.
    pub destination: String,
    /// The routing key.
    pub key: String,
    /// Its arguments as text, keys in order; empty where it has none.
    pub arguments: String,
}

impl std::fmt::Display for BindingView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { vhost, source, kind, destination, key, arguments } = self;
        write!(f, "{source:?} -> {kind} {destination:?} key {key:?} in vhost {vhost}")?;
        if arguments.is_empty() { Ok(()) } else { write!(f, " {arguments}") }
    }
}

/// The definitions of both sides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DefinitionsView {
    /// Digest of blue's definitions after the rewrites.
    pub digest: String,
    /// Counts, as a person reads them.
    pub counts: String,
    /// What the rewrites changed; each line names rule and object.
    pub rewrites: Vec<String>,
    /// Rewrites that need a person's consent.
    pub needs_consent: Vec<String>,
    /// What green would refuse as it is: no consent helps, blue or the spec must change.
    pub blocked: Vec<String>,
    /// What green lacks or has differently.
    pub differences: Vec<String>,
    /// When this comparison began.
    pub compared_at: Option<Timestamp>,
    /// Why the last import failed.
    pub import_error: Option<String>,
    /// The digest that was imported last by this operator process, up to the first reading in which green agrees.
    pub imported: Option<String>,
}

/// The probe.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProbeView {
    /// Sides that it probes; empty where it does not run.
    pub sides: Vec<Side>,
    /// Connecting, warming up, measuring, or why not.
    pub state: String,
    /// Seconds since judging began.
    pub measured_seconds: u64,
    /// The evidence of all windows so far.
    pub evidence: crate::gate::Evidence,
    /// The newest window.
    pub newest: Option<PairedWindow>,
    /// Latencies per side over all valid windows, in microseconds: p50, p95, p99; planned and lost.
    pub latencies: Vec<(Side, [Option<u64>; 3], u64, u64)>,
    /// The result of the load test, once there is one: whether it held, and a line.
    pub load_test: Option<(bool, String)>,
}

/// The canary's counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerView {
    /// Whether it runs.
    pub running: bool,
    /// Messages published.
    pub attempted: u64,
    /// Confirmed.
    pub confirmed: u64,
    /// First deliveries.
    pub delivered: u64,
    /// Confirmed and not delivered, long enough ago that they should have been.
    pub lost: u64,
    /// Delivered twice, explained.
    pub duplicated_explained: u64,
    /// Delivered twice, unexplained.
    pub duplicated_unexplained: u64,
    /// Out of order.
    pub reordered: u64,
    /// Confirmed after the last store before a restart.
    pub unaccounted: u64,
    /// Longest time between two confirms, in milliseconds.
    pub publish_gap_millis: u64,
    /// Times that it was refused by a fence.
    pub refused: u64,
}

/// What the body counted while acting. Not a reading: it is our own deed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// When each Service was pointed last, by name.
    pub pointed: BTreeMap<String, Timestamp>,
    /// When the last close was sent.
    pub last_close_at: Option<Timestamp>,
    /// Connections closed.
    pub closed: u64,
    /// Messages carried.
    pub carried: u64,
}

/// Everything that is seen in one pass.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// See [`Fact::Permissions`]: what is missing.
    pub permissions: Reading<Vec<String>>,
    /// See [`Fact::Credentials`].
    pub credentials: Pair<Reading<()>>,
    /// See [`Fact::StatefulSet`].
    pub stateful_sets: Pair<Reading<StatefulSetView>>,
    /// See [`Fact::Pods`].
    pub pods: Pair<Reading<Vec<PodView>>>,
    /// See [`Fact::Others`].
    pub others: Reading<Vec<OtherMigration>>,
    /// See [`Fact::Services`].
    pub services: Reading<Vec<ServiceView>>,
    /// See [`Fact::Entrances`].
    pub entrances: Reading<Vec<EntranceView>>,
    /// See [`Fact::StorageClass`]; `None` where it does not exist.
    pub storage_class: Reading<Option<StorageClassView>>,
    /// See [`Fact::Nodes`].
    pub nodes: Reading<Vec<NodeView>>,
    /// See [`Fact::Volumes`]: replicas and their volumes.
    pub volumes: Reading<(Vec<ReplicaView>, Vec<VolumeView>)>,
    /// See [`Fact::Record`]; `None` where there is none.
    pub record: Reading<Option<SwitchRecord>>,
    /// See [`Fact::Broker`].
    pub brokers: Pair<Reading<BrokerView>>,
    /// See [`Fact::Epoch`].
    pub epochs: Pair<Reading<EpochView>>,
    /// See [`Fact::Users`].
    pub users: Pair<Reading<Vec<UserView>>>,
    /// See [`Fact::Rehearsal`].
    pub rehearsal: Reading<RehearsalView>,
    /// See [`Fact::Definitions`].
    pub definitions: Reading<DefinitionsView>,
    /// See [`Fact::Routes`].
    pub routes: Reading<Vec<RouteView>>,
    /// See [`Fact::Connections`]: clients only, ours are not listed.
    pub connections: Pair<Reading<Vec<ConnectionView>>>,
    /// See [`Fact::Queues`]: queues of clients only.
    pub queues: Pair<Reading<Vec<QueueTotals>>>,
    /// See [`Fact::Depths`].
    pub depths: Pair<Reading<Vec<QueueDepth>>>,
    /// See [`Fact::Emptiness`].
    pub emptiness: Pair<Reading<Vec<(QueueRef, Emptiness)>>>,
    /// See [`Fact::Traffic`].
    pub traffic: Pair<Reading<TrafficView>>,
    /// See [`Fact::Bindings`].
    pub bindings: Pair<Reading<BTreeSet<BindingView>>>,
    /// See [`Fact::Probe`].
    pub probe: Reading<ProbeView>,
    /// See [`Fact::Ledger`].
    pub ledger: Reading<LedgerView>,
    /// See [`Fact::Leftovers`]: names of what is left.
    pub leftovers: Pair<Reading<Vec<String>>>,
    /// What was seen before.
    pub history: History,
    /// What the body counted.
    pub progress: Progress,
}

/// The last readings of the facts whose past matters.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Of [`Fact::Routes`].
    pub routes: Series<Vec<RouteView>>,
    /// Of [`Fact::Users`].
    pub users: Pair<Series<Vec<UserView>>>,
    /// Of [`Fact::Connections`].
    pub connections: Pair<Series<Vec<ConnectionView>>>,
    /// Of [`Fact::Queues`].
    pub queues: Pair<Series<Vec<QueueTotals>>>,
    /// Of [`Fact::Depths`].
    pub depths: Pair<Series<Vec<QueueDepth>>>,
}

impl World {
    /// Adds the reading of `fact`, taken at `at`, to the history where its past matters.
    pub fn remember(&mut self, fact: Fact, at: Timestamp) {
        match fact {
            Fact::Routes => self.history.routes.push(at, &self.routes),
            Fact::Users(side) => self.history.users.of_mut(side).push(at, self.users.of(side)),
            Fact::Connections(side) => {
                self.history.connections.of_mut(side).push(at, self.connections.of(side));
            }
            Fact::Queues(side) => self.history.queues.of_mut(side).push(at, self.queues.of(side)),
            Fact::Depths(side) => self.history.depths.of_mut(side).push(at, self.depths.of(side)),
            Fact::Permissions
            | Fact::Credentials(_)
            | Fact::StatefulSet(_)
            | Fact::Pods(_)
            | Fact::Others
            | Fact::Services
            | Fact::Entrances
            | Fact::StorageClass
            | Fact::Nodes
            | Fact::Volumes
            | Fact::Record
            | Fact::Broker(_)
            | Fact::Epoch(_)
            | Fact::Rehearsal
            | Fact::Definitions
            | Fact::Emptiness(_)
            | Fact::Traffic(_)
            | Fact::Bindings(_)
            | Fact::Probe
            | Fact::Ledger
            | Fact::Leftovers(_) => {}
        }
    }
}
