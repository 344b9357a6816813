//! What can be seen of the world: each fact as a broker or the API server would tell it, late where they are.

use super::broker::{CANARY, Connection, DELAY, QUEUES};
use super::plan::service_name;
use super::{Kind, Toy, queue_ref};
use crate::fact::Fact;
use crate::names::Names;
use crate::placement::{
    BindingMode, NodeView, Operator, Phase as VolumePhase, ReplicaView, Requirement, Source,
    StorageClassView, Term, VolumeView,
};
use crate::plan::{INSTANCE, Plan};
use crate::roles::{Activity, Role, classify};
use crate::side::Side;
use crate::world::{
    BindingView, BrokerView, ConnectionView, DefinitionsView, Emptiness, EntranceView, EpochView, LedgerView,
    PodView, PortRoute, QueueDepth, QueueTotals, Reading, RehearsalView, RouteView, ServiceView,
    StatefulSetView, TrafficView, UserView, World,
};
use std::collections::{BTreeMap, BTreeSet};

/// The label by which Services tell the sides apart.
const NAME: &str = "app.kubernetes.io/name";
/// The zones.
const ZONES: [&str; 3] = ["west-1", "west-2", "west-3"];

/// Facts that are of no side.
const OF_NO_SIDE: [Fact; 13] = [
    Fact::Permissions,
    Fact::Others,
    Fact::Services,
    Fact::Entrances,
    Fact::StorageClass,
    Fact::Nodes,
    Fact::Volumes,
    Fact::Record,
    Fact::Rehearsal,
    Fact::Definitions,
    Fact::Routes,
    Fact::Probe,
    Fact::Ledger,
];
/// Facts of each side.
const OF_A_SIDE: [fn(Side) -> Fact; 13] = [
    Fact::Credentials,
    Fact::StatefulSet,
    Fact::Pods,
    Fact::Broker,
    Fact::Epoch,
    Fact::Users,
    Fact::Connections,
    Fact::Queues,
    Fact::Depths,
    Fact::Emptiness,
    Fact::Traffic,
    Fact::Bindings,
    Fact::Leftovers,
];

/// Everything that can be asked: a test that lists facts itself misses those that come later.
pub fn every_fact() -> Vec<Fact> {
    let of_sides = Side::BOTH.into_iter().flat_map(|side| OF_A_SIDE.map(|fact| fact(side)));
    OF_NO_SIDE.into_iter().chain(of_sides).collect()
}

impl Toy {
    /// Answers one fact into `world`. `switching`: in a switch nobody reads statistics of queues.
    pub fn observe(&mut self, plan: &Plan, fact: Fact, switching: bool, world: &mut World) {
        match fact {
            Fact::Permissions => world.permissions = Reading::Seen(Vec::new()),
            Fact::Credentials(side) => *world.credentials.of_mut(side) = self.credentials(side),
            Fact::StatefulSet(side) => {
                *world.stateful_sets.of_mut(side) = Reading::Seen(self.stateful_set(plan, side));
            }
            Fact::Pods(side) => *world.pods.of_mut(side) = Reading::Seen(self.pods(plan, side)),
            Fact::Others => world.others = Reading::Seen(self.others.clone()),
            Fact::Services => world.services = Reading::Seen(self.services(plan)),
            Fact::Entrances => world.entrances = Reading::Seen(self.entrances()),
            Fact::StorageClass => world.storage_class = Reading::Seen(Some(storage_class())),
            Fact::Nodes => world.nodes = Reading::Seen(nodes()),
            Fact::Volumes => world.volumes = Reading::Seen(self.volumes(plan)),
            Fact::Record => world.record = Reading::Seen(self.record.clone()),
            Fact::Broker(side) => {
                *world.brokers.of_mut(side) = self.ask(side, |toy| toy.broker_view(plan, side));
            }
            Fact::Epoch(side) => *world.epochs.of_mut(side) = self.ask(side, |toy| toy.epoch(side)),
            Fact::Users(side) => *world.users.of_mut(side) = self.ask(side, |toy| toy.users(plan, side)),
            Fact::Rehearsal => world.rehearsal = self.rehearsal(),
            Fact::Definitions => world.definitions = self.definitions(),
            Fact::Routes => world.routes = Reading::Seen(self.routes(plan)),
            Fact::Connections(side) => {
                *world.connections.of_mut(side) = self.ask(side, |toy| toy.connections(side));
            }
            Fact::Queues(side) => {
                *world.queues.of_mut(side) = self.ask(side, |toy| toy.queues(plan, side, switching));
            }
            Fact::Depths(side) => *world.depths.of_mut(side) = self.ask(side, |toy| toy.depths(plan, side)),
            Fact::Emptiness(side) => {
                *world.emptiness.of_mut(side) = self.ask(side, |toy| toy.emptiness(plan, side));
            }
            Fact::Traffic(side) => {
                *world.traffic.of_mut(side) = self.ask(side, |toy| {
                    let broker = toy.brokers.of(side);
                    TrafficView { received: broker.received, unroutable: broker.unroutable }
                });
            }
            Fact::Bindings(side) => *world.bindings.of_mut(side) = self.ask(side, |toy| toy.bindings(side)),
            Fact::Probe => world.probe = Reading::Seen(self.probe_view(plan)),
            Fact::Ledger => world.ledger = Reading::Seen(self.ledger()),
            Fact::Leftovers(side) => {
                *world.leftovers.of_mut(side) =
                    self.ask(side, |toy| toy.brokers.of(side).ours.iter().cloned().collect());
            }
        }
        world.progress = self.process.progress.clone();
    }

    /// Makes a fact unreadable.
    pub fn blind(&self, fact: Fact, why: &str, world: &mut World) {
        let why = || why.to_owned();
        match fact {
            Fact::Permissions => world.permissions = Reading::Failed(why()),
            Fact::Credentials(side) => *world.credentials.of_mut(side) = Reading::Failed(why()),
            Fact::StatefulSet(side) => *world.stateful_sets.of_mut(side) = Reading::Failed(why()),
            Fact::Pods(side) => *world.pods.of_mut(side) = Reading::Failed(why()),
            Fact::Others => world.others = Reading::Failed(why()),
            Fact::Services => world.services = Reading::Failed(why()),
            Fact::Entrances => world.entrances = Reading::Failed(why()),
            Fact::StorageClass => world.storage_class = Reading::Failed(why()),
            Fact::Nodes => world.nodes = Reading::Failed(why()),
            Fact::Volumes => world.volumes = Reading::Failed(why()),
            Fact::Record => world.record = Reading::Failed(why()),
            Fact::Broker(side) => *world.brokers.of_mut(side) = Reading::Failed(why()),
            Fact::Epoch(side) => *world.epochs.of_mut(side) = Reading::Failed(why()),
            Fact::Users(side) => *world.users.of_mut(side) = Reading::Failed(why()),
            Fact::Rehearsal => world.rehearsal = Reading::Failed(why()),
            Fact::Definitions => world.definitions = Reading::Failed(why()),
            Fact::Routes => world.routes = Reading::Failed(why()),
            Fact::Connections(side) => *world.connections.of_mut(side) = Reading::Failed(why()),
            Fact::Queues(side) => *world.queues.of_mut(side) = Reading::Failed(why()),
            Fact::Depths(side) => *world.depths.of_mut(side) = Reading::Failed(why()),
            Fact::Emptiness(side) => *world.emptiness.of_mut(side) = Reading::Failed(why()),
            Fact::Traffic(side) => *world.traffic.of_mut(side) = Reading::Failed(why()),
            Fact::Bindings(side) => *world.bindings.of_mut(side) = Reading::Failed(why()),
            Fact::Probe => world.probe = Reading::Failed(why()),
            Fact::Ledger => world.ledger = Reading::Failed(why()),
            Fact::Leftovers(side) => *world.leftovers.of_mut(side) = Reading::Failed(why()),
        }
    }

    /// A broker's answer, where it is up.
    fn ask<T>(&mut self, side: Side, answer: impl FnOnce(&mut Self) -> T) -> Reading<T> {
        if self.brokers.of(side).ready(self.now) == 0 {
            return Reading::Failed(format!("no pod of {side} answers"));
        }
        Reading::Seen(answer(self))
    }

    fn credentials(&self, side: Side) -> Reading<()> {
        match side {
            Side::Blue => Reading::Seen(()),
            Side::Green if self.brokers.green.exists => Reading::Seen(()),
            Side::Green => Reading::Failed("Secret orders-green-credentials does not exist".to_owned()),
        }
    }

    fn stateful_set(&self, plan: &Plan, side: Side) -> StatefulSetView {
        let broker = self.brokers.of(side);
        if !broker.exists {
            return StatefulSetView::default();
        }
        StatefulSetView {
            exists: true,
            made_by: (side == Side::Green).then(|| plan.uid.clone()),
            template_digest: broker.template.clone(),
            replicas: broker.replicas,
            ready: broker.ready(self.now),
            pod_labels: labels(plan, side),
            persistent: Some(side == Side::Green),
            image: "rabbitmq".to_owned(),
            ports: [("amqp".to_owned(), 5672)].into(),
            probe_commands: Vec::new(),
        }
    }

    fn pods(&self, plan: &Plan, side: Side) -> Vec<PodView> {
        let broker = self.brokers.of(side);
        let pod = |(ordinal, ready_at): (usize, &i64)| PodView {
            name: format!("{}-{ordinal}", plan.broker(side).stateful_set_name),
            uid: format!("{side}-{ordinal}"),
            ip: Some(format!("10.0.{}.{ordinal}", u8::from(side == Side::Green))),
            node: Some(format!("node-{ordinal}")),
            ready: *ready_at <= self.now,
            trouble: None,
        };
        broker.ready_at.iter().enumerate().map(pod).collect()
    }

    fn services(&self, plan: &Plan) -> Vec<ServiceView> {
        let view = |(index, name): (usize, &String)| {
            if *name != service_name(index) {
                return ServiceView { name: name.clone(), ..ServiceView::default() };
            }
            ServiceView {
                name: name.clone(),
                uid: format!("uid-{name}"),
                selector: self.selector(plan, index),
                target_ports: vec!["amqp".to_owned()],
                manager: self.managers.get(index).cloned(),
                owner: None,
            }
        };
        plan.services.iter().enumerate().map(view).collect()
    }

    fn selector(&self, plan: &Plan, index: usize) -> BTreeMap<String, String> {
        match self.selected(index) {
            Some(Side::Blue) => labels(plan, Side::Blue),
            Some(Side::Green) => green_selector(plan),
            None => [("nobody".to_owned(), "here".to_owned())].into(),
        }
    }

    fn entrances(&self) -> Vec<EntranceView> {
        let on_blue = (0..self.services.len()).filter(|index| self.selected(*index) == Some(Side::Blue));
        let moved = on_blue.map(|index| EntranceView { name: service_name(index), headless: false });
        let others = [("rabbitmq-headless", true), ("rabbitmq-metrics", false)];
        let others =
            others.into_iter().map(|(name, headless)| EntranceView { name: name.to_owned(), headless });
        moved.chain(others).collect()
    }

    fn volumes(&self, plan: &Plan) -> (Vec<ReplicaView>, Vec<VolumeView>) {
        let count = self.brokers.green.ready_at.len();
        let claim = |ordinal: usize| format!("data-{}-{ordinal}", plan.green.stateful_set_name);
        let replica = |ordinal: usize| ReplicaView {
            ordinal: u32::try_from(ordinal).unwrap_or(0),
            pod: format!("{}-{ordinal}", plan.green.stateful_set_name),
            node: Some(format!("node-{ordinal}")),
            claim: Some(claim(ordinal)),
            ..ReplicaView::default()
        };
        let volume = |ordinal: usize| VolumeView {
            claim: claim(ordinal),
            volume: Some(format!("pv-{ordinal}")),
            phase: VolumePhase::Bound,
            node_affinity: Some(vec![in_zone(ordinal)]),
            storage_class: Some("premium".to_owned()),
            source: Source::Csi("disk.csi.azure.com".to_owned()),
            ..VolumeView::default()
        };
        ((0..count).map(replica).collect(), (0..count).map(volume).collect())
    }

    fn broker_view(&self, plan: &Plan, side: Side) -> BrokerView {
        let broker = self.brokers.of(side);
        let up: Vec<PodView> = self.pods(plan, side).into_iter().filter(|pod| pod.ready).collect();
        let members: BTreeSet<String> = up.iter().map(|pod| format!("rabbit@{}", pod.name)).collect();
        let per_pod: BTreeMap<_, _> = up.iter().map(|pod| (pod.name.clone(), members.clone())).collect();
        let version = if side == Side::Blue { "3.10.8" } else { "4.0.5" };
        let alarmed = side == Side::Blue && self.settings.alarm;
        BrokerView {
            cluster_names: up.iter().map(|pod| (pod.name.clone(), cluster(side))).collect(),
            members: per_pod.clone(),
            running: per_pod,
            versions: [version.to_owned()].into(),
            alarms: if alarmed { vec!["memory on rabbit@rabbitmq-0".to_owned()] } else { Vec::new() },
            user_limits: Some(broker.exists),
            ..BrokerView::default()
        }
    }

    fn epoch(&self, side: Side) -> EpochView {
        let (epoch, users) = (self.process.epoch, &self.brokers.of(side).epochs);
        let known = *self.process.established.of(side);
        EpochView {
            current: known && users.contains(&epoch),
            older: users.iter().filter(|user| **user != epoch || !known).count(),
        }
    }

    /// Users of applications and of our canary, who lives like everybody else.
    fn users(&self, plan: &Plan, side: Side) -> Vec<UserView> {
        let canary = plan.names.canary_user();
        let shown = self.brokers.of(side).users.iter();
        shown
            .filter(|(name, _)| !Names::is_ours(name) || **name == canary)
            .map(|(name, limit)| UserView { name: name.clone(), max_connections: *limit })
            .collect()
    }

    fn rehearsal(&self) -> Reading<RehearsalView> {
        self.process.rehearsal.map_or(Reading::Unasked, |refused| {
            Reading::Seen(RehearsalView { refused, detail: "530: connection limit (0)".to_owned() })
        })
    }

    fn definitions(&mut self) -> Reading<DefinitionsView> {
        if !self.brokers.blue.is_up(self.now) || !self.brokers.green.is_up(self.now) {
            return Reading::Failed("export definitions: no pod answers".to_owned());
        }
        let (blue, green) = (&self.brokers.blue, &self.brokers.green);
        let users = blue.users.keys().filter(|name| !Names::is_ours(name));
        let mut differences: Vec<String> = users
            .clone()
            .filter(|name| !green.users.contains_key(*name))
            .map(|name| format!("user {name} is missing"))
            .collect();
        let queues = blue.queues.iter().zip(&green.queues).enumerate().filter(|(index, _)| *index != CANARY);
        differences.extend(
            queues
                .filter(|(_, (blue, green))| blue.exists && !green.exists)
                .map(|(index, _)| format!("queue {} is missing", QUEUES.get(index).copied().unwrap_or("?"))),
        );
        let (blue_bindings, green_bindings) = (self.bindings(Side::Blue), self.bindings(Side::Green));
        let unbound = blue_bindings.difference(&green_bindings);
        differences.extend(unbound.map(|binding| format!("{binding} is missing")));
        let counts =
            format!("{} users, {} queues", users.count(), blue.queues.iter().filter(|q| q.exists).count());
        let imported = self.process.imported.clone();
        if differences.is_empty() {
            self.process.imported = None;
        }
        Reading::Seen(DefinitionsView {
            imported,
            digest: self.definitions_digest(),
            counts,
            rewrites: vec!["classic mirrored policy ha-all: its mirroring keys are dropped".to_owned()],
            needs_consent: Vec::new(),
            blocked: Vec::new(),
            compared_at: Some(self.timestamp()),
            differences,
            import_error: self.process.import_error.clone(),
        })
    }

    /// Digest of what green should hold.
    pub(crate) fn definitions_digest(&self) -> String {
        let users = self.brokers.blue.users.keys().filter(|name| !Names::is_ours(name));
        let names: Vec<&str> = users.map(String::as_str).collect();
        crate::plan::digest(&names)
    }

    /// The operator sees endpoints at once, and the handshake from a zone of its own.
    fn routes(&self, plan: &Plan) -> Vec<RouteView> {
        let view = |(index, name): (usize, &String)| {
            let ready = |side: Side| {
                let leads = self.selected(index) == Some(side);
                let ready = usize::try_from(self.brokers.of(side).ready(self.now)).unwrap_or(0);
                if leads { ready } else { 0 }
            };
            let answers = self.route(index, 0).filter(|side| self.brokers.of(*side).is_up(self.now));
            RouteView {
                service: name.clone(),
                ports: vec![PortRoute {
                    port: "amqp".to_owned(),
                    blue: ready(Side::Blue),
                    green: ready(Side::Green),
                    others: 0,
                }],
                answered_by: answers.map(cluster),
            }
        };
        plan.services.iter().enumerate().map(view).collect()
    }

    /// One exchange leads to every queue of the applications.
    fn bindings(&self, side: Side) -> BTreeSet<BindingView> {
        let queues = self.brokers.of(side).queues.iter().zip(QUEUES).take(CANARY);
        let bound = queues.filter(|(queue, _)| queue.exists && queue.bound);
        let binding = |name: &str| BindingView {
            vhost: "/".to_owned(),
            source: "shop".to_owned(),
            kind: "queue".to_owned(),
            destination: name.to_owned(),
            key: name.to_owned(),
            arguments: String::new(),
        };
        bound.map(|(_, name)| binding(name)).collect()
    }

    fn connections(&self, side: Side) -> Vec<ConnectionView> {
        let open = self.brokers.of(side).connections.iter();
        open.filter_map(|(id, connection)| {
            let client = self.clients.get(connection.client)?;
            Some(ConnectionView {
                name: format!("10.1.{}.{}:{id}", client.zone, connection.client),
                user: client.user.clone(),
                client: Some(format!("{:?} {}", client.kind, connection.client)),
                protocol: "AMQP 0-9-1".to_owned(),
                role: self.role(client.kind, connection),
            })
        })
        .collect()
    }

    /// What statistics say of a connection; nothing before they came.
    fn role(&self, kind: Kind, connection: &Connection) -> Role {
        if self.now.saturating_sub(connection.opened) < self.settings.statistics {
            return classify(Activity::default());
        }
        let (consumers, exclusive) = match kind {
            Kind::Consumer(_) | Kind::Worker | Kind::CanaryConsumer => (1, 0),
            Kind::Subscriber => (0, 1),
            Kind::Publisher(_) | Kind::Visitor(_) | Kind::CanaryPublisher => (0, 0),
        };
        classify(Activity {
            published: Some(connection.published),
            consumers: Some(consumers),
            exclusive_queues: Some(exclusive),
        })
    }

    fn queues(&self, plan: &Plan, side: Side, switching: bool) -> Vec<QueueTotals> {
        let vhost = plan.names.canary_vhost();
        let known = !switching && self.settings.queue_statistics;
        let there = self.brokers.of(side).queues.iter().enumerate().filter(|(_, queue)| queue.exists);
        there
            .map(|(index, queue)| {
                let consumers = u64::try_from(queue.consumers.len()).unwrap_or(u64::MAX);
                QueueTotals {
                    queue: Some(queue_ref(&vhost, index)),
                    kind: "quorum".to_owned(),
                    exclusive: false,
                    ready: queue.listed.map(|(ready, _)| ready),
                    unacked: queue.listed.map(|(_, unacked)| unacked),
                    messages: queue.listed.map(|(ready, unacked)| ready.saturating_add(unacked)),
                    consumers: known.then_some(consumers),
                    acks_per_second: known.then_some(if index == DELAY { 0 } else { 5 }),
                    state: Some("running".to_owned()),
                }
            })
            .collect()
    }

    fn depths(&mut self, plan: &Plan, side: Side) -> Vec<QueueDepth> {
        let (now, vhost) = (self.now, plan.names.canary_vhost());
        let queues = &self.brokers.of(side).queues;
        let seen: Vec<_> = queues.iter().enumerate().filter(|(_, queue)| queue.exists).collect();
        let mut depths = Vec::new();
        for (index, queue) in seen {
            let length = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
            let counted = if queue.silent_until > now {
                // Another member answers for a leader that does not: nothing, or that there is nothing.
                self.chance.one_in(2).then_some((0, 0))
            } else {
                Some((length(queue.ready.len()), length(queue.consumers.len())))
            };
            depths.push(QueueDepth { queue: queue_ref(&vhost, index), counted });
        }
        depths
    }

    fn emptiness(&self, plan: &Plan, side: Side) -> Vec<(crate::effect::QueueRef, Emptiness)> {
        let vhost = plan.names.canary_vhost();
        let there = self.brokers.of(side).queues.iter().enumerate().filter(|(_, queue)| queue.exists);
        there
            .map(|(index, queue)| {
                let answer = if queue.silent_until > self.now {
                    Emptiness::NoAnswer
                } else if queue.ready.is_empty() {
                    Emptiness::Empty
                } else {
                    Emptiness::Message
                };
                (queue_ref(&vhost, index), answer)
            })
            .collect()
    }

    fn ledger(&self) -> LedgerView {
        let ours = |message: &&super::Message| self.process.canary.first() == Some(&message.publisher);
        let messages: Vec<_> = self.truth.messages.iter().filter(ours).collect();
        let count = |wanted: fn(&super::Message) -> bool| {
            u64::try_from(messages.iter().filter(|m| wanted(m)).count()).unwrap_or(u64::MAX)
        };
        LedgerView {
            running: !self.process.canary.is_empty(),
            attempted: count(|_| true),
            confirmed: count(|m| m.confirmed),
            delivered: count(|m| m.delivered > 0),
            duplicated_explained: count(|m| m.acked > 1 && m.explained),
            duplicated_unexplained: count(|m| m.acked > 1 && !m.explained),
            ..LedgerView::default()
        }
    }
}

/// The labels of a side's pods.
pub(crate) fn labels(plan: &Plan, side: Side) -> BTreeMap<String, String> {
    let name = match side {
        Side::Blue => "rabbitmq".to_owned(),
        Side::Green => plan.names.green(),
    };
    [(NAME.to_owned(), name), (INSTANCE.to_owned(), "shop".to_owned())].into()
}

fn green_selector(plan: &Plan) -> BTreeMap<String, String> {
    [(NAME.to_owned(), plan.names.green())].into()
}

/// What a side's broker calls itself.
fn cluster(side: Side) -> String {
    format!("rabbit@{side}")
}

fn nodes() -> Vec<NodeView> {
    let node = |(index, zone): (usize, &&str)| NodeView {
        name: format!("node-{index}"),
        labels: [("topology.kubernetes.io/zone".to_owned(), (*zone).to_owned())].into(),
        ready: true,
        ..NodeView::default()
    };
    ZONES.iter().enumerate().map(node).collect()
}

fn storage_class() -> StorageClassView {
    StorageClassView {
        name: "premium".to_owned(),
        binding_mode: BindingMode::WaitForFirstConsumer,
        provisioner: "disk.csi.azure.com".to_owned(),
        allow_expansion: true,
        reclaim_policy: "Delete".to_owned(),
        ..StorageClassView::default()
    }
}

fn in_zone(ordinal: usize) -> Term {
    let zone = ZONES.get(ordinal % ZONES.len()).copied().unwrap_or_default();
    Term {
        expressions: vec![Requirement {
            key: "topology.kubernetes.io/zone".to_owned(),
            operator: Operator::In,
            values: vec![zone.to_owned()],
        }],
        ..Term::default()
    }
}

/// A connection's number, from its name.
pub(crate) fn connection_number(name: &str) -> Option<u64> {
    name.rsplit_once(':').and_then(|(_, id)| id.parse().ok())
}
