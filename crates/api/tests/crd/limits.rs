//! What holds for the whole schema: everything has a limit and a description, and nothing is a float.

use crate::walk::{schema, walk};
use serde_json::Value;

fn faults(test: impl Fn(&str, &Value) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    let mut count = 0;
    walk(schema(), "", &mut |at, node| {
        count += 1;
        if !test(at, node) {
            found.push(at.to_owned());
        }
    });
    assert!(count > 150, "the walk saw only {count} nodes");
    found
}

fn is(node: &Value, kind: &str) -> bool {
    node["type"] == kind
}

#[test]
fn every_string_is_bounded() {
    let limits = ["maxLength", "enum", "pattern", "format"];
    let found = faults(|_, node| !is(node, "string") || limits.iter().any(|limit| node.get(limit).is_some()));
    assert!(found.is_empty(), "without maxLength, enum, pattern or format: {found:#?}");
}

#[test]
fn every_list_and_map_is_bounded() {
    let lists = faults(|_, node| !is(node, "array") || node["maxItems"].is_u64());
    assert!(lists.is_empty(), "without maxItems: {lists:#?}");
    let maps = faults(|_, node| !node["additionalProperties"].is_object() || node["maxProperties"].is_u64());
    assert!(maps.is_empty(), "without maxProperties: {maps:#?}");
}

#[test]
fn every_number_is_an_integer_and_bounded_where_people_write_it() {
    let floats = faults(|_, node| !is(node, "number"));
    assert!(floats.is_empty(), "floats: {floats:#?}");
    let open = faults(|at, node| {
        let bounded = node["minimum"].is_number() && node["maximum"].is_number();
        !at.starts_with("spec") || !is(node, "integer") || bounded
    });
    assert!(open.is_empty(), "without minimum or maximum: {open:#?}");
}

#[test]
fn every_field_is_described() {
    let found = faults(|at, node| {
        let is_field = !at.is_empty() && !at.ends_with("[]") && !at.ends_with("{}");
        let told = node["description"].as_str().is_some_and(|text| !text.trim().is_empty());
        !is_field || told
    });
    assert!(found.is_empty(), "without a description: {found:#?}");
}

#[test]
fn every_node_has_a_type_and_nothing_is_left_open() {
    let untyped = faults(|_, node| node["type"].is_string());
    assert!(untyped.is_empty(), "without a type: {untyped:#?}");
    let open = faults(|_, node| node.get("x-kubernetes-preserve-unknown-fields").is_none());
    assert!(open.is_empty(), "anything may stand here: {open:#?}");
}
