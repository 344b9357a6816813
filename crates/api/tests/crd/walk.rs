//! What the tests of the CRD share: its schema as JSON, and a walk over it.

use serde_json::Value;
use std::sync::LazyLock;

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let mut crd = serde_json::to_value(api::crd()).unwrap();
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].take()
});

/// The schema that the API server validates with.
pub fn schema() -> &'static Value {
    &SCHEMA
}

/// Calls `visit` for each node below `schema` with its place: `spec.services[].name`, map values are `{}`.
pub fn walk(schema: &Value, at: &str, visit: &mut impl FnMut(&str, &Value)) {
    visit(at, schema);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let below = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        walk(property, &below, visit);
    }
    for (key, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
        if schema[key].is_object() {
            walk(&schema[key], &format!("{at}{mark}"), visit);
        }
    }
}

/// Where `value` breaks the limits of `schema`: lengths, counts, enums and types.
pub fn violations(schema: &Value, value: &Value, at: &str) -> Vec<String> {
    if value.is_null() && schema["nullable"] == true {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut check = |good: bool, what: &str| {
        if !good {
            found.push(format!("{at}: {what}"));
        }
    };
    let at_most = |limit: &Value, count: usize| limit.as_u64().is_none_or(|max| count as u64 <= max);
    let at_least = |limit: &Value, count: usize| limit.as_u64().is_none_or(|min| count as u64 >= min);
    match schema["type"].as_str() {
        Some("string") => {
            let text = value.as_str().unwrap_or_default();
            check(value.is_string(), "not a string");
            check(at_most(&schema["maxLength"], text.chars().count()), "too long");
            check(at_least(&schema["minLength"], text.chars().count()), "too short");
            check(schema["enum"].as_array().is_none_or(|words| words.contains(value)), "not in the enum");
        }
        Some("array") => {
            let count = value.as_array().map_or(0, Vec::len);
            check(value.is_array(), "not an array");
            check(at_most(&schema["maxItems"], count), "too many items");
            check(at_least(&schema["minItems"], count), "too few items");
        }
        Some("object") => {
            let count = value.as_object().map_or(0, serde_json::Map::len);
            check(value.is_object(), "not an object");
            check(at_most(&schema["maxProperties"], count), "too many entries");
        }
        Some("integer") => check(value.is_i64(), "not an integer"),
        Some("boolean") => check(value.is_boolean(), "not a boolean"),
        other => check(false, &format!("a type that this walk does not know: {other:?}")),
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        check(value.get(name).is_some(), &format!("{name} is missing"));
    }
    for item in value.as_array().into_iter().flatten() {
        found.extend(violations(&schema["items"], item, &format!("{at}[]")));
    }
    for (name, field) in value.as_object().into_iter().flatten() {
        let below = format!("{at}.{name}");
        if let Some(known) = schema["properties"].get(name) {
            found.extend(violations(known, field, &below));
        } else if schema["additionalProperties"].is_object() {
            found.extend(violations(&schema["additionalProperties"], field, &below));
        } else if !at.is_empty() {
            // At the root stand apiVersion, kind and metadata, which every object has.
            found.push(format!("{below}: not in the schema"));
        }
    }
    found
}
