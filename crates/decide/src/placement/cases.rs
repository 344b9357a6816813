//! Real-world placements (cases B of the project), and the what-if table.

use std::collections::BTreeMap;

use super::*;

const ZONE: &str = "topology.kubernetes.io/zone";
const BETA_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
const BETA_REGION: &str = "failure-domain.beta.kubernetes.io/region";
const REGION: &str = "topology.kubernetes.io/region";
const AZURE: &str = "topology.disk.csi.azure.com/zone";
const HOST: &str = "kubernetes.io/hostname";

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn node(name: &str, pairs: &[(&str, &str)]) -> NodeView {
    NodeView { name: name.to_owned(), labels: labels(pairs), ready: true, ..NodeView::default() }
}

fn requirement(key: &str, operator: Operator, values: &[&str]) -> Requirement {
    Requirement {
        key: key.to_owned(),
        operator,
        values: values.iter().map(|one| (*one).to_owned()).collect(),
    }
}

fn is_in(key: &str, values: &[&str]) -> Requirement {
    requirement(key, Operator::In, values)
}

fn term(expressions: Vec<Requirement>) -> Term {
    Term { expressions, fields: Vec::new() }
}

fn volume(source: Source, terms: Vec<Term>) -> VolumeView {
    VolumeView {
        claim: "data-0".to_owned(),
        volume: Some("pv-0".to_owned()),
        phase: Phase::Bound,
        node_affinity: Some(terms),
        source,
        ..VolumeView::default()
    }
}

fn csi(driver: &str, terms: Vec<Term>) -> VolumeView {
    volume(Source::Csi(driver.to_owned()), terms)
}

/// Nodes whose labels match, as the cases' fit sets mean it.
fn fit_set(volume: &VolumeView, nodes: &[NodeView]) -> Vec<String> {
    nodes.iter().filter(|node| fits(volume, node).matches_labels()).map(|node| node.name.clone()).collect()
}

#[test]
fn b01_an_empty_zone_is_a_value() {
    let volume = csi("disk.csi.azure.com", vec![term(vec![is_in(AZURE, &[""])])]);
    let nodes = [
        node("aks-plain-0", &[(AZURE, ""), (ZONE, "0")]),
        node("aks-zoned-0", &[(AZURE, "westus3-1"), (ZONE, "westus3-1")]),
        node("aks-nolabel-0", &[(ZONE, "0")]),
    ];
    assert_eq!(fit_set(&volume, &nodes), ["aks-plain-0"]);
    let replica = ReplicaView {
        node: Some("aks-plain-0".to_owned()),
        claim: Some("data-0".to_owned()),
        ..ReplicaView::default()
    };
    let answer = placement(&nodes, &[volume], &[replica], &[]);
    let replica = answer.replicas.first().expect("one");
    assert_eq!(replica.zone.as_deref(), Some("no zone"));
    assert_eq!(replica.allowed_zones, ["no zone"]);
    assert!(matches!(answer.verdict, Safety::Unknown(_)), "{:?}", answer.verdict);
}

#[test]
fn b03_fault_domains_pose_as_zones() {
    let zone = |zone| term(vec![is_in(BETA_REGION, &["weu"]), is_in(BETA_ZONE, &[zone])]);
    let volume = volume(Source::AzureDisk, vec![zone("0"), zone("1"), zone("2")]);
    let at =
        |name, zone| node(name, &[(BETA_REGION, "weu"), (BETA_ZONE, zone), (REGION, "weu"), (ZONE, zone)]);
    let Fit::No(why) = fits(&volume, &at("weu-z2", "weu-2")) else { panic!("it never fits") };
    for part in ["\"0\"", "\"1\"", "\"2\"", "\"weu-2\""] {
        assert!(why.contains(part), "{why}");
    }
    let nodes = [at("weu-fd0", "0")];
    let domain = nodes.first().map(|node| fits(&volume, node));
    assert!(matches!(domain, Some(Fit::DependsOnTranslation(_))), "{domain:?}");
    let replica = ReplicaView { claim: Some("data-0".to_owned()), ..ReplicaView::default() };
    let answer = placement(&nodes, &[volume], &[replica], &[]);
    assert!(
        matches!(answer.verdict, Safety::Unknown(_)),
        "a warning, not a yes and not a no: {}",
        answer.summary
    );
}

#[test]
fn b06_in_tree_volumes_are_translated_and_others_are_not() {
    let ga =
        node("ga-only", &[(ZONE, "use1d"), (REGION, "use1"), ("topology.ebs.csi.aws.com/zone", "use1d")]);
    let both = vec![term(vec![is_in(BETA_ZONE, &["use1d"]), is_in(BETA_REGION, &["use1"])])];
    let mut in_tree = volume(Source::AwsElasticBlockStore, both);
    in_tree.labels = labels(&[(BETA_ZONE, "use1d"), (BETA_REGION, "use1")]);
    assert_eq!(fits(&in_tree, &ga), Fit::Yes);
    let external = csi("block.vendor.example", vec![term(vec![is_in(BETA_ZONE, &["use1d"])])]);
    assert!(matches!(fits(&external, &ga), Fit::No(_)));
}

#[test]
fn b07_a_zone_label_is_a_set() {
    let handmade = VolumeView {
        node_affinity: None,
        labels: labels(&[(ZONE, "uc1-a__uc1-b"), (REGION, "uc1")]),
        ..volume(Source::GcePersistentDisk, Vec::new())
    };
    let at = |name, zone| node(name, &[(ZONE, zone), (REGION, "uc1")]);
    assert_eq!(fit_set(&handmade, &[at("c", "uc1-c"), at("b", "uc1-b")]), ["b"]);
    let Fit::No(why) = fits(&handmade, &at("c", "uc1-c")) else { panic!("it never fits") };
    assert!(why.contains("label") && !why.contains("affinity"), "{why}");
    assert_eq!(fits(&VolumeView { source: Source::Other, ..handmade }, &at("b", "uc1-b")), Fit::Yes);
}

#[test]
fn b08_the_hostname_is_a_label() {
    let local = volume(Source::Local, vec![term(vec![is_in(HOST, &["worker-7"])])]);
    let nodes = [
        node("ip-10-9-8-7.internal.example", &[(HOST, "worker-7")]),
        node("worker-7-new", &[(HOST, "worker-7-new")]),
        node("worker-7", &[]),
    ];
    assert_eq!(fit_set(&local, &nodes), ["ip-10-9-8-7.internal.example"]);
    let replica = ReplicaView {
        node: Some("worker-7".to_owned()),
        claim: Some("data-0".to_owned()),
        ..ReplicaView::default()
    };
    let answer = placement(&nodes, &[local], &[replica], &[]);
    let told = &answer.replicas.first().expect("one").notes;
    assert!(told.iter().any(|note| note.contains("one machine")), "{told:?}");
}

#[test]
fn b09_fields_and_empty_terms() {
    let nodes = [node("edge-1", &[(HOST, "edge-1")]), node("edge-2", &[(HOST, "edge-2")])];
    let by_name = Term { expressions: Vec::new(), fields: vec![is_in("metadata.name", &["edge-1"])] };
    let real = term(vec![is_in(HOST, &["edge-1"])]);
    let table = [
        (vec![by_name], vec!["edge-1"]),
        (vec![Term::default()], vec![]),
        (vec![Term::default(), real], vec!["edge-1"]),
        (vec![], vec![]),
    ];
    for (terms, wanted) in table {
        assert_eq!(fit_set(&volume(Source::Local, terms), &nodes), wanted);
    }
}

#[test]
fn b10_operators() {
    let nodes = [
        node("nozone", &[]),
        node("z1n", &[(ZONE, "z1"), ("rack", "r1"), ("gen", "4")]),
        node("z2n", &[(ZONE, "z2"), ("gen", "3"), ("diskless", "")]),
    ];
    let table = [
        (requirement(ZONE, Operator::NotIn, &["z1"]), vec!["nozone", "z2n"]),
        (requirement("rack", Operator::Exists, &[]), vec!["z1n"]),
        (requirement("gen", Operator::Gt, &["3"]), vec!["z1n"]),
        (requirement("gen", Operator::Lt, &["4"]), vec!["z2n"]),
        (requirement("diskless", Operator::DoesNotExist, &[]), vec!["nozone", "z1n"]),
    ];
    for (requirement, wanted) in table {
        let volume = csi("ebs.csi.aws.com", vec![term(vec![requirement.clone()])]);
        assert_eq!(fit_set(&volume, &nodes), wanted, "{requirement:?}");
    }
}

#[test]
fn malformed_terms_are_unknown_unless_another_matches() {
    let nodes = node("a", &[(ZONE, "z1"), ("gen", "x")]);
    let good = term(vec![is_in(ZONE, &["z1"])]);
    let malformed = [
        requirement(ZONE, Operator::Other("Near".to_owned()), &["z1"]),
        requirement(ZONE, Operator::In, &[]),
        requirement(ZONE, Operator::Exists, &["z1"]),
        requirement("gen", Operator::Gt, &["many"]),
        requirement("gen", Operator::Gt, &["1", "2"]),
    ];
    for one in malformed {
        let alone = volume(Source::Other, vec![term(vec![one.clone()])]);
        assert!(matches!(fits(&alone, &nodes), Fit::Unknown(_)), "{one:?}");
        let beside = volume(Source::Other, vec![term(vec![one]), good.clone()]);
        assert_eq!(fits(&beside, &nodes), Fit::Yes);
    }
    let label = volume(Source::Other, vec![term(vec![requirement("gen", Operator::Gt, &["1"])])]);
    assert!(matches!(fits(&label, &nodes), Fit::No(_)), "a label that is no number only does not match");
    let field = Term { expressions: Vec::new(), fields: vec![is_in("metadata.uid", &["a"])] };
    assert!(matches!(fits(&volume(Source::Other, vec![field]), &nodes), Fit::Unknown(_)));
}

#[test]
fn operators_are_read_as_kubernetes_writes_them() {
    let read: Term = serde_json::from_str(
        r#"{"matchExpressions":[{"key":"a","operator":"NotIn","values":["b"]},{"key":"c","operator":"Near"}]}"#,
    )
    .expect("a term");
    let operators: Vec<Operator> = read.expressions.into_iter().map(|one| one.operator).collect();
    assert_eq!(operators, [Operator::NotIn, Operator::Other("Near".to_owned())]);
}

#[test]
fn b11_storage_zones_are_not_compute_zones() {
    let key = "topology.cinder.csi.openstack.org/zone";
    let volume = csi("cinder.csi.openstack.org", vec![term(vec![is_in(key, &["nova"])])]);
    let at = |name, storage, zone| node(name, &[(key, storage), (ZONE, zone)]);
    let nodes = [at("k-a", "nova", "dc-a"), at("k-b", "nova", "dc-b"), at("k-c", "dc-c", "dc-c")];
    assert_eq!(fit_set(&volume, &nodes), ["k-a", "k-b"]);
}

/// Replicas on nodes of these zones, each volume tied to its zone, one spare node in each zone.
fn cluster(zones: &[&str]) -> (Vec<NodeView>, Vec<VolumeView>, Vec<ReplicaView>) {
    let ordinals = || (0u32..).zip(zones);
    let name = |ordinal: u32| format!("node-{ordinal}");
    let running = ordinals().map(|(ordinal, zone)| node(&name(ordinal), &[(ZONE, zone)]));
    let spare = ordinals().map(|(ordinal, zone)| node(&format!("spare-{ordinal}"), &[(ZONE, zone)]));
    let volumes = ordinals().map(|(ordinal, zone)| VolumeView {
        claim: format!("data-{ordinal}"),
        ..csi("any.example", vec![term(vec![is_in(ZONE, &[zone])])])
    });
    let replicas = ordinals().map(|(ordinal, _)| ReplicaView {
        ordinal,
        node: Some(name(ordinal)),
        claim: Some(format!("data-{ordinal}")),
        apart_by: vec![HOST.to_owned()],
        ..ReplicaView::default()
    });
    (running.chain(spare).collect(), volumes.collect(), replicas.collect())
}

#[test]
fn what_the_loss_of_a_zone_leaves() {
    let table = [
        (vec!["a", "b", "c"], true),
        (vec!["a", "a", "b"], false),
        (vec!["a", "a", "a"], false),
        (vec!["a", "a", "b", "b", "c"], true),
        (vec!["a", "a", "a", "b", "c"], false),
        (vec!["a", "b"], false),
        (vec!["a", "a", "b", "b"], false),
        (vec!["a"], false),
    ];
    for (zones, safe) in table {
        let (nodes, volumes, replicas) = cluster(&zones);
        let answer = placement(&nodes, &volumes, &replicas, &[]);
        assert_eq!(answer.verdict == Safety::Safe, safe, "{zones:?}: {}", answer.summary);
        assert_eq!(answer.zone_loss.iter().all(|loss| loss.quorum), safe, "{zones:?}");
        assert!(safe || matches!(answer.verdict, Safety::Unsafe(_)), "{zones:?}: {}", answer.summary);
    }
}

#[test]
fn unknown_is_never_safe() {
    let (nodes, volumes, replicas) = cluster(&["a", "b", "c"]);
    let with = |change: fn(&mut Vec<NodeView>, &mut Vec<VolumeView>, &mut Vec<ReplicaView>)| {
        let (mut nodes, mut volumes, mut replicas) = (nodes.clone(), volumes.clone(), replicas.clone());
        change(&mut nodes, &mut volumes, &mut replicas);
        placement(&nodes, &volumes, &replicas, &[]).verdict
    };
    let unknown = [
        with(|_, volumes, _| volumes.clear()),
        with(|_, _, replicas| replicas.clear()),
        with(|_, volumes, _| volumes.iter_mut().for_each(|one| one.phase = Phase::Unknown)),
        with(|_, volumes, _| volumes.iter_mut().for_each(|one| one.phase = Phase::Pending)),
        with(|_, _, replicas| replicas.iter_mut().for_each(|one| one.node = None)),
        with(|nodes, _, _| nodes.retain(|node| node.name != "node-1")),
        with(|nodes, volumes, _| {
            for node in nodes {
                node.labels.clear();
            }
            for volume in volumes {
                volume.node_affinity = None;
            }
        }),
    ];
    for (case, verdict) in unknown.iter().enumerate() {
        assert!(matches!(verdict, Safety::Unknown(_)), "case {case}: {verdict:?}");
    }
    let lost = with(|_, volumes, _| volumes.iter_mut().for_each(|one| one.phase = Phase::Lost));
    assert!(matches!(lost, Safety::Unsafe(_)));
    let bare = with(|_, _, replicas| replicas.iter_mut().for_each(|one| one.claim = None));
    assert!(matches!(bare, Safety::Unsafe(_)));
}

#[test]
fn a_pod_has_a_say_of_its_own() {
    let (nodes, volumes, replicas) = cluster(&["a", "b", "c"]);
    let eligible = |change: fn(&mut NodeView), replica: fn(&mut ReplicaView)| {
        let (mut nodes, mut replicas) = (nodes.clone(), replicas.clone());
        nodes.iter_mut().filter(|node| node.name == "spare-0").for_each(change);
        replicas.iter_mut().for_each(replica);
        let answer = placement(&nodes, &volumes, &replicas, &[]);
        let first = answer.replicas.first().expect("three");
        assert!(first.fitting_nodes.contains(&"spare-0".to_owned()), "the volume fits all the same");
        first.eligible_nodes.contains(&"spare-0".to_owned())
    };
    let taint = |node: &mut NodeView| {
        node.taints =
            vec![Taint { key: "gpu".to_owned(), value: "yes".to_owned(), effect: "NoSchedule".to_owned() }];
    };
    let tolerate = |replica: &mut ReplicaView| {
        replica.tolerations = vec![Toleration { operator: "Exists".to_owned(), ..Toleration::default() }];
    };
    assert!(eligible(|_| {}, |_| {}));
    assert!(!eligible(|node| node.ready = false, |_| {}));
    assert!(!eligible(|node| node.unschedulable = true, |_| {}));
    assert!(eligible(|node| node.unschedulable = true, tolerate));
    assert!(!eligible(taint, |_| {}));
    assert!(eligible(taint, tolerate));
    assert!(!eligible(|_| {}, |replica| replica.node_selector = labels(&[("disk", "ssd")])));
    assert!(!eligible(|node| node.free_attachments = [("any.example".to_owned(), 0)].into(), |_| {}));
}

#[test]
fn a_zone_without_a_node_keeps_a_replica_pending() {
    let (nodes, volumes, replicas) = cluster(&["a", "b", "retired"]);
    let nodes: Vec<NodeView> = nodes
        .into_iter()
        .filter(|node| node.labels.get(ZONE).is_some_and(|zone| zone != "retired"))
        .collect();
    let answer = placement(&nodes, &volumes, &replicas, &[]);
    let last = answer.replicas.last().expect("three");
    assert!(last.eligible_nodes.is_empty());
    assert_eq!(last.allowed_zones, ["retired"]);
    assert_ne!(answer.verdict, Safety::Safe);
}

#[test]
fn a_zone_redundant_disk_can_move() {
    let (nodes, volumes, replicas) = cluster(&["a", "b", "c"]);
    let regional: Vec<VolumeView> = volumes
        .into_iter()
        .map(|one| VolumeView { node_affinity: Some(vec![term(vec![is_in(ZONE, &["a", "b", "c"])])]), ..one })
        .collect();
    let answer = placement(&nodes, &regional, &replicas, &[]);
    let moves: Vec<Vec<u32>> = answer.zone_loss.into_iter().map(|loss| loss.could_move).collect();
    assert_eq!(moves, [[0], [1], [2]]);
}

fn class(binding_mode: BindingMode, zones: &[&str]) -> StorageClassView {
    let topology =
        Topology { key: ZONE.to_owned(), values: zones.iter().map(|one| (*one).to_owned()).collect() };
    StorageClassView {
        name: "fast".to_owned(),
        binding_mode,
        allowed_topologies: if zones.is_empty() { Vec::new() } else { vec![vec![topology]] },
        provisioner: "any.example".to_owned(),
        ..StorageClassView::default()
    }
}

#[test]
fn before_install_the_class_is_asked() {
    let late = BindingMode::WaitForFirstConsumer;
    let (nodes, _, replicas) = cluster(&["a", "b", "c"]);
    let verdict = |class: Option<&StorageClassView>| before_install(class, &nodes, &replicas).verdict;
    assert_eq!(verdict(Some(&class(late, &[]))), Safety::Safe);
    assert_eq!(verdict(Some(&class(late, &["a", "b", "c"]))), Safety::Safe);
    assert!(matches!(verdict(Some(&class(late, &["a", "b"]))), Safety::Unsafe(_)), "two zones");
    assert!(matches!(verdict(Some(&class(late, &["a", "b", "gone"]))), Safety::Unsafe(_)), "an empty zone");
    assert!(matches!(verdict(Some(&class(BindingMode::Immediate, &[]))), Safety::Unknown(_)));
    assert!(matches!(verdict(None), Safety::Unknown(_)));
}
