//! Reading one object: its fields, and what identifies it.

use serde_json::{Map, Value};

use super::section::{ObjectRef, Section};

/// One object of the definitions, parsed.
pub(super) type Object = Map<String, Value>;

/// A text field; absent is empty.
pub(super) fn text<'o>(object: &'o Object, key: &str) -> &'o str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A yes-or-no field.
pub(super) fn flag(object: &Object, key: &str, absent: bool) -> bool {
    object.get(key).and_then(Value::as_bool).unwrap_or(absent)
}

/// A queue's, exchange's or binding's arguments.
pub(super) fn argument<'o>(object: &'o Object, key: &str) -> Option<&'o Value> {
    object.get("arguments")?.as_object()?.get(key)
}

/// The object with other arguments.
pub(super) fn with_arguments(object: &Object, change: impl Fn(&mut Object)) -> Object {
    let mut object = object.clone();
    let mut arguments = object.get("arguments").and_then(Value::as_object).cloned().unwrap_or_default();
    change(&mut arguments);
    object.insert("arguments".to_owned(), Value::Object(arguments));
    object
}

/// Says whether a queue's name was given by the server.
pub(super) fn is_server_named(queue: &Object) -> bool {
    text(queue, "name").starts_with("amq.gen-")
}

/// What names an object; the error is the field that it lacks.
pub(super) fn identity(section: Section, object: &Object) -> Result<ObjectRef, &'static str> {
    let need = |key: &'static str| object.get(key).and_then(Value::as_str).ok_or(key);
    let vhost = if section.is_in_vhost() { Some(need("vhost")?.to_owned()) } else { None };
    let name = match section {
        Section::Users
        | Section::Vhosts
        | Section::GlobalParameters
        | Section::Queues
        | Section::Exchanges => need("name")?.to_owned(),
        // A nameless policy is reported with all other faults of policies, not alone.
        Section::Policies => text(object, "name").to_owned(),
        Section::Permissions => need("user")?.to_owned(),
        Section::TopicPermissions => format!("{} on exchange {}", need("user")?, need("exchange")?),
        Section::Parameters => format!("{}/{}", need("component")?, need("name")?),
        Section::Bindings => binding_name(object, need("source")?, need("destination")?),
    };
    Ok(ObjectRef { section, vhost, name })
}

/// All that identifies a binding: number kinds count, `3` and `3.0` are two bindings.
fn binding_name(binding: &Object, source: &str, destination: &str) -> String {
    let kind = text(binding, "destination_type");
    let key = text(binding, "routing_key");
    let arguments = binding.get("arguments").and_then(Value::as_object).filter(|found| !found.is_empty());
    let arguments = arguments.map(|found| format!(" {}", canonical(&Value::Object(found.clone()))));
    format!("{source:?} -> {kind} {destination:?} key {key:?}{}", arguments.unwrap_or_default())
}

/// A value with its keys sorted, so that equal values have equal texts.
pub(super) fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut entries: Vec<(&String, &Value)> = object.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            let sorted = entries.into_iter().map(|(key, value)| (key.clone(), canonical(value)));
            Value::Object(sorted.collect())
        }
        Value::Array(list) => Value::Array(list.iter().map(canonical).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
