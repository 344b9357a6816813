//! Real-world definitions (cases A of the project), and the laws of rewriting.

use serde_json::{Value, json};

use super::*;

fn cx() -> Context {
    Context {
        blue_version: "3.10.8".to_owned(),
        green_version: "4.0.5".to_owned(),
        our_prefix: "rmqm.".to_owned(),
        exclude_users: vec!["admin".to_owned()],
        ..Context::default()
    }
}

/// Definitions with these sections and vhost `/`.
fn definitions(sections: &Value) -> Vec<u8> {
    let mut all = json!({"rabbit_version": "3.10.8", "vhosts": [{"name": "/"}]});
    for (key, value) in sections.as_object().expect("sections") {
        all[key] = value.clone();
    }
    all.to_string().into_bytes()
}

fn queue(name: &str, arguments: &Value) -> Value {
    json!({"name": name, "vhost": "/", "durable": true, "auto_delete": false, "arguments": arguments})
}

fn policy(name: &str, pattern: &str, priority: i64, definition: &Value) -> Value {
    json!({"vhost": "/", "name": name, "pattern": pattern, "apply-to": "queues", "priority": priority,
           "definition": definition})
}

fn binding(source: &str, destination: &str, key: &str, arguments: &Value) -> Value {
    json!({"source": source, "vhost": "/", "destination": destination, "destination_type": "queue",
           "routing_key": key, "arguments": arguments})
}

fn run(sections: &Value) -> Rewritten {
    run_with(sections, &cx())
}

fn run_with(sections: &Value, cx: &Context) -> Rewritten {
    rewrite(&definitions(sections), cx).expect("well formed")
}

fn section(rewritten: &Rewritten, key: &str) -> Vec<Value> {
    let document: Value = serde_json::from_slice(&rewritten.document).expect("it is JSON");
    document.get(key).and_then(Value::as_array).cloned().unwrap_or_default()
}

fn names(rewritten: &Rewritten, key: &str) -> Vec<String> {
    let text = |object: &Value| object["name"].as_str().unwrap_or_default().to_owned();
    section(rewritten, key).iter().map(text).collect()
}

fn said(rewritten: &Rewritten, rule: &str) -> Vec<(String, Decision)> {
    let of_rule = rewritten.changes.iter().filter(|change| change.rule == rule);
    of_rule.map(|change| (change.object.name.clone(), change.decision)).collect()
}

fn is_quorum(rewritten: &Rewritten, name: &str) -> bool {
    let queues = section(rewritten, "queues");
    let queue = queues.iter().find(|queue| queue["name"] == name).expect("it is there");
    queue["arguments"]["x-queue-type"] == "quorum"
}

#[test]
fn untouched_objects_are_byte_equal() {
    let odd = "{ \"name\":\"a\\u0062\",\n \"vhost\" :\"/\", \"durable\":true, \"weight\": 1.50e2 }";
    let text = format!("{{\"vhosts\":[{{\"name\":\"/\"}}],\"queues\":[{odd}],\"note\": [1,  2]}}");
    let rewritten = rewrite(text.as_bytes(), &cx()).expect("well formed");
    let document = String::from_utf8(rewritten.document).expect("text");
    assert!(document.contains(odd) && document.contains("[1,  2]"), "{document}");
    assert!(rewritten.changes.is_empty());
    assert_eq!(rewritten.digest.len(), 64);
    let again = rewrite(document.as_bytes(), &cx()).expect("well formed");
    assert_eq!(again.digest, rewritten.digest, "rewriting twice changes nothing more");
}

#[test]
fn a01_the_export_of_one_vhost_is_refused_by_name() {
    let text = br#"{"rabbitmq_definition_format":"single_virtual_host","original_vhost_name":"fulfil/eu",
        "queues":[{"name":"pick.list","durable":true,"arguments":{}}]}"#;
    let wanted = Malformed::SingleVhost { vhost: Some("fulfil/eu".to_owned()) };
    assert_eq!(rewrite(text, &cx()), Err(wanted));
    assert!(matches!(rewrite(br#"{"queues":[]}"#, &cx()), Err(Malformed::SingleVhost { vhost: None })));
}

#[test]
fn objects_without_what_identifies_them_are_refused() {
    let refused =
        |sections: &Value| rewrite(&definitions(sections), &cx()).expect_err("malformed").to_string();
    assert_eq!(refused(&json!({"queues": [{"name": "a"}]})), "object 0 of queues has no usable vhost");
    assert!(refused(&json!({"queues": [{"name": "a", "vhost": "gone"}]})).contains("no such vhost"));
    assert!(refused(&json!({"queues": {}})).contains("not a list"));
    assert!(refused(&json!({"queues": [1]})).contains("not a list"));
}

#[test]
fn a18_almost_json_is_refused_with_its_place() {
    let refused = [
        &br#"{"vhosts":[{"name":"/"},]}"#[..],
        br#"{{"vhosts":[]}}"#,
        br#"{"vhosts":[],"users":[{"name":"a","name":"b"}]}"#,
        br#"{"vhosts":[],"vhosts":[]}"#,
        br#"{"vhosts":{{ .Values.vhosts }}}"#,
        b"",
    ];
    for text in refused {
        let Err(Malformed::Json { detail }) = rewrite(text, &cx()) else { panic!("{text:?} was taken") };
        assert!(detail.contains("line 1 column"), "{detail}");
    }
    assert!(rewrite(b"\xef\xbb\xbf{\"vhosts\":[]}", &cx()).is_ok(), "a byte-order mark is skipped");
}

#[test]
fn ours_and_greens_own_stay_out() {
    let cx = Context { our_prefix: "rmqmig.probe.".to_owned(), ..cx() };
    let rewritten = run_with(
        &json!({
            "users": [{"name": "admin", "tags": "administrator"}, {"name": "svc", "tags": []}],
            "permissions": [{"user": "admin", "vhost": "/"}, {"user": "svc", "vhost": "/"}],
            "queues": [queue("perf-001", &json!({})), queue("rmqmig.probe.7f3a", &json!({"x-expires": 60000})),
                       queue("till.sales", &json!({}))],
            "exchanges": [{"name": "perf-ex", "vhost": "/", "type": "direct"}],
            "bindings": [binding("perf-ex", "rmqmig.probe.7f3a", "", &json!({}))]
        }),
        &cx,
    );
    assert_eq!(names(&rewritten, "queues"), ["perf-001", "till.sales"]);
    assert_eq!(names(&rewritten, "users"), ["svc"]);
    assert_eq!(section(&rewritten, "permissions").len(), 1);
    assert!(section(&rewritten, "bindings").is_empty());
    assert_eq!(rewritten.classes, Classes::default(), "ours are not counted");
    assert_eq!(rewritten.counts.get(&Section::Queues), Some(&2));
}

#[test]
fn a17_identity_stays_and_the_rest_moves() {
    let rewritten = run(&json!({"global_parameters": [
        {"name": "cluster_name", "value": "blue-mq"}, {"name": "internal_cluster_id", "value": "x"},
        {"name": "mqtt_port_to_vhost_mapping", "value": {"1883": "/"}}, {"name": "flat", "value": "text"}]}));
    assert_eq!(names(&rewritten, "global_parameters"), ["mqtt_port_to_vhost_mapping", "flat"]);
}

#[test]
fn a08_movers_wait_for_the_switch() {
    let rewritten = run(&json!({
        "parameters": [
            {"vhost": "/", "component": "shovel", "name": "pull", "value": {"src-uri": "seal-1"}},
            {"vhost": "/", "component": "federation-upstream", "name": "hq", "value": {"uri": "seal-2"}},
            {"vhost": "/", "component": "federation-upstream-set", "name": "all-hq", "value": [{"upstream": "hq"}]},
            {"vhost": "/", "component": "vhost-limits", "name": "limits", "value": {"max-queues": 50}}],
        "policies": [
            policy("fed", "^hub$", 0, &json!({"federation-upstream-set": "all-hq"})),
            policy("mixed", "^m", 0, &json!({"federation-upstream": "hq", "max-length": 5}))],
        "exchanges": [{"name": "hub", "vhost": "/", "type": "topic"}]
    }));
    assert_eq!(names(&rewritten, "parameters"), ["limits"]);
    assert_eq!(names(&rewritten, "policies"), ["mixed"]);
    assert_eq!(section(&rewritten, "policies")[0]["definition"], json!({"max-length": 5}));
    let held: Vec<&str> = rewritten.held.iter().map(|held| held.object.name.as_str()).collect();
    assert_eq!(
        held,
        ["shovel/pull", "federation-upstream/hq", "federation-upstream-set/all-hq", "fed", "mixed"]
    );
    assert!(rewritten.held.iter().all(|held| !held.raw.is_empty()));
    let told = serde_json::to_string(&rewritten.changes).expect("data");
    assert!(!told.contains("seal-"), "seals stay out of what people read");
}

#[test]
fn only_effectively_mirrored_queues_become_quorum() {
    let ha = json!({"ha-mode": "all", "ha-sync-mode": "automatic"});
    let rewritten = run(&json!({
        "policies": [
            policy("ha", r"^(?!amq\.|plain).*", 1, &ha),
            policy("over", "^over", 5, &json!({"max-length": 9}))],
        "queues": [
            queue("orders", &json!({"x-max-priority": 5, "x-queue-mode": "lazy", "x-overflow": "reject-publish-dlx"})),
            queue("plain", &json!({})), queue("over.it", &json!({})),
            queue("events", &json!({"x-queue-type": "stream"})),
            {"name": "brief", "vhost": "/", "durable": false, "auto_delete": false, "arguments": {}},
            {"name": "reply", "vhost": "/", "durable": true, "auto_delete": true, "arguments": {}}]
    }));
    assert!(is_quorum(&rewritten, "orders"));
    for name in ["plain", "over.it", "events", "brief", "reply"] {
        assert!(!is_quorum(&rewritten, name), "{name}");
    }
    let orders = section(&rewritten, "queues")[0]["arguments"].clone();
    assert_eq!(orders, json!({"x-overflow": "reject-publish", "x-queue-type": "quorum"}));
    let told = said(&rewritten, "mirrored-queues-to-quorum");
    assert!(told.contains(&("orders".to_owned(), Decision::Info)));
    assert!(told.contains(&("brief".to_owned(), Decision::NeedsConsent)));
    assert!(told.contains(&("reply".to_owned(), Decision::NeedsConsent)));
    assert!(told.contains(&("/".to_owned(), Decision::NeedsConsent)), "changes of behavior, once per vhost");
    let cleaned = said(&rewritten, "quorum-arguments-valid");
    assert_eq!(cleaned.iter().filter(|(_, decision)| *decision == Decision::NeedsConsent).count(), 3);
    assert_eq!(names(&rewritten, "policies"), ["over"], "the emptied policy masks nothing");
    assert!(said(&rewritten, "effective-policies-kept").is_empty());
}

#[test]
fn unclear_mirroring_is_asked_about() {
    let queues = json!([queue("q", &json!({}))]);
    let tie = run(&json!({"queues": queues, "policies": [
        policy("ha", ".*", 1, &json!({"ha-mode": "all"})), policy("ttl", "q", 1, &json!({"max-length": 3}))]}));
    let odd =
        run(&json!({"queues": queues, "policies": [policy("odd", "(", 1, &json!({"ha-mode": "all"}))]}));
    for rewritten in [tie, odd] {
        assert!(!is_quorum(&rewritten, "q"));
        let told = said(&rewritten, "mirrored-queues-to-quorum");
        assert_eq!(told, [("q".to_owned(), Decision::NeedsConsent)]);
    }
}

#[test]
fn choices_and_older_greens_decide_otherwise() {
    let sections = json!({"queues": [queue("q", &json!({}))],
        "policies": [policy("ha", ".*", 1, &json!({"ha-mode": "all"}))]});
    let choose = |treatment| Context {
        choices: vec![Choice { vhost: "/".to_owned(), queue: "q".to_owned(), treatment }],
        ..cx()
    };
    assert!(!is_quorum(&run_with(&sections, &choose(Treatment::KeepClassic)), "q"));
    assert!(names(&run_with(&sections, &choose(Treatment::Drop)), "queues").is_empty());
    let older = Context { green_version: "3.13.7".to_owned(), ..cx() };
    let kept = run_with(&sections, &older);
    assert!(!is_quorum(&kept, "q") && names(&kept, "policies") == ["ha"]);
    let plain = json!({"queues": [queue("q", &json!({}))]});
    assert!(is_quorum(&run_with(&plain, &choose(Treatment::Quorum)), "q"));
}

#[test]
fn mirroring_keys_leave_operator_policies_too() {
    let rewritten = run(&json!({
        "parameters": [{"vhost": "/", "component": "operator_policy", "name": "op", "value":
            {"pattern": ".*", "apply-to": "queues", "priority": 0, "definition": {"ha-mode": "all", "max-length": 5}}}],
        "policies": [policy("at", ".*", 0, &json!({"queue-master-locator": "min-masters", "ha-mode": "all"}))]
    }));
    let parameter = section(&rewritten, "parameters")[0].clone();
    assert_eq!(parameter["value"]["definition"], json!({"max-length": 5}));
    assert_eq!(section(&rewritten, "policies")[0]["definition"], json!({"queue-leader-locator": "balanced"}));
}

#[test]
fn an_emptied_policy_that_masks_another_stays() {
    let rewritten = run(&json!({
        "policies": [policy("ha", "^o", 5, &json!({"ha-mode": "all"})),
                     policy("ttl", ".*", 0, &json!({"message-ttl": 5}))],
        "queues": [queue("orders", &json!({}))]
    }));
    assert_eq!(names(&rewritten, "policies"), ["ha", "ttl"]);
    assert_eq!(said(&rewritten, "no-empty-policies"), [("ha".to_owned(), Decision::NeedsConsent)]);
    assert!(said(&rewritten, "effective-policies-kept").is_empty(), "and so nothing changes");
}

#[test]
fn a_scope_that_no_longer_reaches_a_queue_is_said() {
    let mut classic = policy("cq", ".*", 5, &json!({"ha-mode": "all", "max-length": 9}));
    classic["apply-to"] = json!("classic_queues");
    let rewritten =
        run(&json!({"policies": [classic], "queues": [queue("a", &json!({})), queue("b", &json!({}))]}));
    assert_eq!(said(&rewritten, "effective-policies-kept").len(), 1, "one change for both queues");
}

#[test]
fn a24_bindings_that_lead_nowhere() {
    let sections = json!({
        "queues": [queue("there", &json!({})), queue("amq.gen-x", &json!({}))],
        "exchanges": [{"name": "a", "vhost": "/", "type": "topic"}],
        "bindings": [binding("a", "there", "1", &json!({})), binding("a", "not-there", "2", &json!({})),
            binding("a", "amq.gen-x", "3", &json!({})), binding("", "there", "there", &json!({})),
            binding("amq.topic", "there", "4", &json!({})), binding("gone", "there", "5", &json!({}))]
    });
    let rewritten = run(&sections);
    assert_eq!(section(&rewritten, "bindings").len(), 2);
    assert_eq!(rewritten.classes.server_named, 1);
    let told = said(&rewritten, "bindings-lead-somewhere");
    let asked: Vec<&String> = told
        .iter()
        .filter(|(_, decision)| *decision == Decision::NeedsConsent)
        .map(|(name, _)| name)
        .collect();
    assert_eq!(asked.len(), 2);
    assert!(asked.iter().any(|name| name.contains("not-there")));
}

#[test]
fn a24_number_kinds_make_different_bindings() {
    let arguments = |prio: Value| json!({"x-match": "all", "prio": prio});
    let sections = json!({
        "queues": [queue("sink", &json!({}))],
        "exchanges": [{"name": "hx", "vhost": "/", "type": "headers"}],
        "bindings": [binding("hx", "sink", "", &arguments(json!(3))), binding("hx", "sink", "", &arguments(json!(3.0)))]
    });
    let document = run(&sections).document;
    let same = compare(&document, &document, &cx()).expect("well formed");
    assert!(same.in_sync, "{}", same.summary);
    let mut fewer = sections;
    fewer["bindings"].as_array_mut().expect("list").pop();
    let comparison = compare(&document, &definitions(&fewer), &cx()).expect("well formed");
    assert_eq!(comparison.missing.len(), 1);
}

#[test]
fn a25_broken_policies_are_all_named() {
    let mut sing = policy("sing", "^c", 0, &json!({"max-length": 10}));
    sing["apply-to"] = json!("classic_queue");
    let nameless =
        json!({"vhost": "/", "pattern": "^n", "apply-to": "queues", "definition": {"max-length": 5}});
    let rewritten = run(&json!({"policies": [
        policy("ok", "^x", 0, &json!({"max-length": 5})), nameless, sing, policy("empty", ".*", 0, &json!({}))]}));
    let told = said(&rewritten, "policies-valid");
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told.iter().all(|(_, decision)| *decision == Decision::Blocks));
    let mut quorum = policy("qq", "^q", 3, &json!({"delivery-limit": 7}));
    quorum["apply-to"] = json!("quorum_queues");
    let sections = json!({"policies": [quorum]});
    assert!(said(&run(&sections), "policies-valid").is_empty());
    let old = Context { green_version: "3.10.8".to_owned(), ..cx() };
    assert_eq!(said(&run_with(&sections, &old), "policies-valid").len(), 1);
}

#[test]
fn a14_a19_queues_that_green_refuses() {
    let transient = json!({"name": "loader", "vhost": "/", "durable": false, "arguments": {}});
    let sections = json!({"queues": [queue("wk", &json!({"x-queue-type": "stream", "x-max-age": "1W"})),
        queue("ok", &json!({"x-queue-type": "stream", "x-max-age": "1M"})), transient]});
    assert_eq!(said(&run(&sections), "stream-ages-valid"), [("wk".to_owned(), Decision::Blocks)]);
    assert_eq!(said(&run(&sections), "no-transient-queues"), [("loader".to_owned(), Decision::Info)]);
    let later = Context { green_version: "4.3.5".to_owned(), ..cx() };
    assert_eq!(
        said(&run_with(&sections, &later), "no-transient-queues"),
        [("loader".to_owned(), Decision::Blocks)]
    );
    let treatment = Treatment::MakeDurable;
    let choice = Choice { vhost: "/".to_owned(), queue: "loader".to_owned(), treatment };
    let made = run_with(&sections, &Context { choices: vec![choice], ..later });
    assert_eq!(section(&made, "queues")[2]["durable"], true);
}

#[test]
fn exchange_types_must_be_known() {
    let sections = json!({"exchanges": [{"name": "d", "vhost": "/", "type": "x-delayed-message"}]});
    let knows = |types: Option<Vec<String>>| {
        let cx = Context { green_exchange_types: types, ..cx() };
        said(&run_with(&sections, &cx), "exchange-types-known").first().map(|(_, decision)| *decision)
    };
    assert_eq!(knows(None), Some(Decision::NeedsConsent));
    assert_eq!(knows(Some(vec!["direct".to_owned()])), Some(Decision::Blocks));
    assert_eq!(knows(Some(vec!["x-delayed-message".to_owned()])), None);
}

#[test]
fn names_that_look_unreal_are_listed_and_kept() {
    let rewritten = run(&json!({
        "users": [{"name": "MQ_DEFAULT_USER", "tags": []}, {"name": "svc", "tags": []}],
        "queues": [queue("{{ queue }}", &json!({})), queue("perf-001", &json!({})), queue("perf-orders", &json!({}))]
    }));
    let told: Vec<String> = said(&rewritten, "names-look-real").into_iter().map(|(name, _)| name).collect();
    assert_eq!(told, ["{{ queue }}", "MQ_DEFAULT_USER", "perf-001"]);
    assert_eq!(names(&rewritten, "queues").len(), 3);
}

#[test]
fn a_hostile_pattern_is_not_known_and_does_not_hang() {
    let pattern = "^(?:(?:a|aa)(?=a*))+[^a]$";
    let name = "a".repeat(200);
    let rewritten = run(&json!({"queues": [queue(&name, &json!({}))],
        "policies": [policy("hostile", pattern, 1, &json!({"ha-mode": "all"}))]}));
    assert_eq!(said(&rewritten, "mirrored-queues-to-quorum").len(), 1);
    assert!(!is_quorum(&rewritten, &name));
}

#[test]
fn our_limits_never_reach_green() {
    let own = |owner, name: &str, before: Option<Value>| OwnLimit {
        owner,
        name: name.to_owned(),
        limit: "max-connections".to_owned(),
        set: json!(0),
        before,
    };
    let cx = Context {
        own_limits: vec![own(LimitOwner::User, "svc", Some(json!(7))), own(LimitOwner::Vhost, "/", None)],
        ..cx()
    };
    let rewritten = run_with(
        &json!({
            "users": [{"name": "svc", "tags": [], "limits": {"max-connections": 0, "max-channels": 3}},
                      {"name": "other", "tags": [], "limits": {"max-connections": 0}}],
            "parameters": [{"vhost": "/", "component": "vhost-limits", "name": "limits", "value": {"max-connections": 0}}]
        }),
        &cx,
    );
    let users = section(&rewritten, "users");
    assert_eq!(users[0]["limits"], json!({"max-connections": 7, "max-channels": 3}));
    assert_eq!(users[1]["limits"], json!({"max-connections": 0}), "the user's own");
    assert!(section(&rewritten, "parameters").is_empty());
}

#[test]
fn default_queue_types_do_not_change_queues() {
    let mut typed = queue("typed", &json!({}));
    typed["type"] = json!("classic");
    let rewritten = run(&json!({
        "vhosts": [{"name": "/", "metadata": {"default_queue_type": "quorum"}}],
        "queues": [typed, queue("untyped", &json!({})), queue("own", &json!({"x-queue-type": "quorum"}))]
    }));
    assert_eq!(section(&rewritten, "queues")[0]["arguments"]["x-queue-type"], "classic");
    let told = said(&rewritten, "queue-types-kept");
    assert_eq!(told, [("typed".to_owned(), Decision::Info), ("untyped".to_owned(), Decision::NeedsConsent)]);
}

#[test]
fn a20_classes_are_counted_and_not_compared() {
    let sections = json!({
        "policies": [policy("exp", r"^notify\.", 0, &json!({"expires": 60000}))],
        "users": [{"name": "v-1", "tags": []}, {"name": "svc", "tags": []}],
        "queues": [queue("session.eu", &json!({"x-expires": 45000})), queue("notify.eu", &json!({})),
            {"name": "worker.ad", "vhost": "/", "durable": true, "auto_delete": true, "arguments": {}},
            queue("solid", &json!({}))],
        "bindings": [binding("amq.topic", "notify.eu", "#", &json!({}))]
    });
    let cx =
        Context { dynamic: vec![Dynamic { section: Section::Users, pattern: "^v-".to_owned() }], ..cx() };
    let rewritten = run_with(&sections, &cx);
    let wanted = Classes { expiring: 2, auto_delete: 1, dynamic: 1, ..Classes::default() };
    assert_eq!(rewritten.classes, wanted);
    let mut green = sections;
    green["queues"] = json!([queue("solid", &json!({}))]);
    green["users"] = json!([{"name": "svc", "tags": []}, {"name": "v-2", "tags": []}]);
    green["bindings"] = json!([]);
    let comparison = compare(&rewritten.document, &definitions(&green), &cx).expect("well formed");
    assert!(comparison.in_sync, "{}", comparison.summary);
    assert_eq!(comparison.not_compared, 5);
}

#[test]
fn a22_a_204_is_no_proof() {
    let wanted = definitions(&json!({
        "queues": [queue("orders.in", &json!({})), queue("orders.dlq", &json!({}))],
        "exchanges": [{"name": "orders", "vhost": "/", "type": "topic"}],
        "bindings": [binding("orders", "orders.in", "#", &json!({}))]
    }));
    let green = definitions(&json!({"exchanges": [{"name": "orders", "vhost": "/", "type": "topic"}]}));
    let comparison = compare(&wanted, &green, &cx()).expect("well formed");
    assert!(!comparison.in_sync);
    assert_eq!(comparison.missing.len(), 3);
    assert!(comparison.summary.contains("orders.in"), "{}", comparison.summary);
}

#[test]
fn what_brokers_add_is_no_difference() {
    let wanted = definitions(&json!({
        "users": [{"name": "svc", "password_hash": "seal", "hashing_algorithm": "rabbit_password_hashing_sha256",
                   "tags": "b, a"}],
        "policies": [{"vhost": "/", "name": "p", "pattern": "x", "definition": {"max-length": 1, "expires": 9}}],
        "queues": [queue("a", &json!({})), queue("b", &json!({}))],
        "exchanges": [{"name": "e", "vhost": "/", "type": "topic", "durable": true, "arguments": {}}]
    }));
    let green = definitions(&json!({
        "vhosts": [{"name": "/", "description": "", "tags": [], "limits": [], "metadata":
            {"description": "", "tags": [], "default_queue_type": "classic"}}],
        "users": [{"name": "admin", "tags": ["administrator"]},
                  {"name": "svc", "password_hash": "seal", "tags": ["a", "b"], "limits": {}}],
        "policies": [{"vhost": "/", "name": "p", "pattern": "x", "apply-to": "all", "priority": 0,
                      "definition": {"expires": 9, "max-length": 1}}],
        "queues": [{"name": "b", "vhost": "/", "durable": true, "auto_delete": false, "type": "classic",
                    "arguments": {"x-queue-type": "classic"}}, queue("a", &json!({}))],
        "exchanges": [{"name": "amq.topic", "vhost": "/", "type": "topic"},
            {"name": "e", "vhost": "/", "type": "topic", "durable": true, "auto_delete": false, "internal": false,
             "arguments": {}}],
        "global_parameters": [{"name": "cluster_name", "value": "green"}]
    }));
    let comparison = compare(&wanted, &green, &cx()).expect("well formed");
    assert!(comparison.in_sync, "{} {:?}", comparison.summary, comparison.different);
}

#[test]
fn limits_of_a_vhost_have_two_forms() {
    let parameter = |most| {
        json!({"vhost": "/", "component": "vhost-limits", "name": "limits",
                                  "value": {"max-queues": most}})
    };
    let older = definitions(&json!({"parameters": [parameter(5)]}));
    let newer = |most| {
        definitions(&json!({"vhosts": [{"name": "/", "limits": {"max-queues": most}}],
                                           "parameters": [parameter(most)]}))
    };
    assert!(compare(&older, &newer(5), &cx()).expect("well formed").in_sync);
    let other = compare(&older, &newer(6), &cx()).expect("well formed");
    assert_eq!(other.different.first().map(|one| one.fields.clone()), Some(vec!["limits".to_owned()]));
    assert!(!compare(&older, &definitions(&json!({})), &cx()).expect("well formed").in_sync);
}

#[test]
fn what_is_held_can_be_put_onto_green() {
    let rewritten = run(&json!({"policies": [
        policy("mixed", "^m", 0, &json!({"ha-mode": "all", "federation-upstream": "hq", "max-length": 5}))]}));
    let held = rewritten.held.first().expect("one");
    let policy: Value = serde_json::from_str(&held.raw).expect("JSON");
    assert_eq!(policy["definition"], json!({"federation-upstream": "hq", "max-length": 5}));
}

#[test]
fn real_differences_are_differences() {
    let side = |hash: &str, quorum: &str, read: &str| {
        definitions(&json!({
            "users": [{"name": "svc", "password_hash": hash, "tags": []}],
            "permissions": [{"user": "svc", "vhost": "/", "configure": "", "write": "", "read": read}],
            "queues": [queue("a", &json!({"x-queue-type": quorum, "x-max-length": 5}))]
        }))
    };
    let compared = |green: &[u8]| compare(&side("h", "quorum", ".*"), green, &cx()).expect("well formed");
    assert!(compared(&side("h", "quorum", ".*")).in_sync);
    let fields =
        |green: &[u8]| compared(green).different.into_iter().flat_map(|one| one.fields).collect::<Vec<_>>();
    assert_eq!(fields(&side("other", "quorum", ".*")), ["password_hash"]);
    assert_eq!(fields(&side("h", "classic", ".*")), ["arguments"]);
    assert_eq!(fields(&side("h", "quorum", "")), ["read"]);
    let extra = definitions(&json!({"vhosts": [{"name": "/"}, {"name": "more"}]}));
    let comparison = compare(&definitions(&json!({})), &extra, &cx()).expect("well formed");
    assert_eq!(comparison.extra.len(), 1);
    assert!(!comparison.in_sync);
}

#[test]
fn a05_clear_text_is_not_compared_with_its_hash() {
    let wanted = definitions(&json!({"users": [{"name": "plain", "password": "seal", "tags": ""}]}));
    let green = definitions(&json!({"users": [{"name": "plain", "password_hash": "h", "tags": []}]}));
    assert!(compare(&wanted, &green, &cx()).expect("well formed").in_sync);
}

#[test]
fn every_rewrite_says_where_it_stands() {
    let listed: Vec<(&str, &str)> = catalogue().collect();
    let mut ids: Vec<&str> = listed.iter().map(|(id, _)| *id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), listed.len(), "no name twice");
    let is_kebab = |id: &str| id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    assert!(listed.iter().all(|(id, place)| is_kebab(id) && !place.is_empty()));
}
