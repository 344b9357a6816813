//! One object as it is compared: without what brokers add, in one form for what has several.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::draft::Draft;
use super::object::{Object, argument, canonical, flag, text};
use super::policy::why_not_quorum;
use super::rules::{default_type, defaults};
use super::section::Section;

/// The runtime parameter by which older brokers export a vhost's limits; newer ones write both forms.
const VHOST_LIMITS: &str = "vhost-limits";

/// What a side's vhosts say about what is in them.
pub(super) struct Defaults {
    types: HashMap<String, String>,
    limits: HashMap<String, Object>,
}

impl Defaults {
    /// Reads them.
    pub(super) fn of(draft: &Draft<'_>) -> Self {
        let parameters = draft.now(Section::Parameters).filter(is_vhost_limits);
        let limits = parameters.filter_map(|parameter| {
            Some((text(&parameter, "vhost").to_owned(), parameter.get("value")?.as_object()?.clone()))
        });
        Self { types: defaults(draft), limits: limits.collect() }
    }

    fn limits(&self, vhost: &Object) -> Value {
        let own = vhost.get("limits").and_then(Value::as_object).cloned().unwrap_or_default();
        let by_parameter = self.limits.get(text(vhost, "name")).cloned().unwrap_or_default();
        Value::Object(own.into_iter().chain(by_parameter).collect())
    }

    /// The type a queue has, or gets when it is declared without one.
    fn queue_type(&self, queue: &Object) -> Value {
        let by_argument = argument(queue, "x-queue-type").and_then(Value::as_str);
        let by_broker = Some(text(queue, "type")).filter(|name| !name.is_empty());
        let by_vhost = self.types.get(text(queue, "vhost")).filter(|_| why_not_quorum(queue).is_none());
        let name = by_argument.or(by_broker).or(by_vhost.map(String::as_str));
        Value::from(name.unwrap_or("classic"))
    }
}

/// Reduces an object to what must be equal. Fields that identify it are left out.
pub(super) fn normal(section: Section, object: &Object, defaults: &Defaults) -> Object {
    let reduced = match section {
        Section::Users => user(object),
        Section::Vhosts => vhost(object, defaults),
        Section::Permissions => picked(object, &["configure", "write", "read"]),
        Section::TopicPermissions => picked(object, &["write", "read"]),
        Section::Parameters if text(object, "component") == "operator_policy" => {
            object.get("value").and_then(Value::as_object).map(policy).unwrap_or_default()
        }
        Section::Parameters | Section::GlobalParameters => picked(object, &["value"]),
        Section::Policies => policy(object),
        Section::Queues => queue(object, defaults),
        Section::Exchanges => exchange(object),
        // All of a binding is its identity.
        Section::Bindings => Object::new(),
    };
    reduced.into_iter().map(|(key, value)| (key, canonical(&value))).collect()
}

fn picked(object: &Object, keys: &[&str]) -> Object {
    let found = keys.iter().filter_map(|key| Some(((*key).to_owned(), object.get(*key)?.clone())));
    found.collect()
}

/// Tags are a list or a text with commas; without an algorithm a hash is SHA-256.
fn user(user: &Object) -> Object {
    let mut normal = picked(user, &["password", "password_hash"]);
    let algorithm = Some(text(user, "hashing_algorithm")).filter(|name| !name.is_empty());
    let algorithm = algorithm.unwrap_or("rabbit_password_hashing_sha256");
    normal.insert("hashing_algorithm".to_owned(), Value::from(algorithm));
    normal.insert("tags".to_owned(), tags(user.get("tags")));
    normal.insert("limits".to_owned(), limits(user.get("limits")));
    normal
}

fn tags(tags: Option<&Value>) -> Value {
    let mut tags: Vec<String> = match tags {
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(Value::String(text)) => text.split(',').map(|tag| tag.trim().to_owned()).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => Vec::new(),
    };
    tags.retain(|tag| !tag.is_empty());
    tags.sort();
    tags.dedup();
    Value::from(tags)
}

/// An empty list, an empty object and nothing are all no limits.
fn limits(limits: Option<&Value>) -> Value {
    limits.and_then(Value::as_object).cloned().map_or_else(|| json!({}), Value::Object)
}

/// Says whether a parameter holds a vhost's limits, which are compared with the vhost.
pub(super) fn is_vhost_limits(parameter: &Object) -> bool {
    text(parameter, "component") == VHOST_LIMITS
}

/// Brokers write the metadata they were given and some defaults, newer ones twice.
fn vhost(vhost: &Object, defaults: &Defaults) -> Object {
    let metadata = vhost.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    let at = |key: &str| metadata.get(key).or_else(|| vhost.get(key)).cloned();
    let description = at("description").filter(|found| !found.is_null()).unwrap_or_else(|| json!(""));
    let pairs = [
        ("description", description),
        ("tags", tags(at("tags").as_ref())),
        ("default_queue_type", Value::from(default_type(vhost).unwrap_or("classic"))),
        ("limits", defaults.limits(vhost)),
        ("tracing", Value::Bool(flag(vhost, "tracing", false))),
        ("protected_from_deletion", Value::Bool(flag(&metadata, "protected_from_deletion", false))),
    ];
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn policy(policy: &Object) -> Object {
    let mut normal = picked(policy, &["pattern", "definition"]);
    let scope = Some(text(policy, "apply-to")).filter(|scope| !scope.is_empty()).unwrap_or("all");
    normal.insert("apply-to".to_owned(), Value::from(scope));
    normal.insert("priority".to_owned(), policy.get("priority").cloned().unwrap_or_else(|| json!(0)));
    normal
}

/// 4.x writes the type as an argument where none was given; that argument is the only one so treated.
fn queue(queue: &Object, defaults: &Defaults) -> Object {
    let mut arguments = queue.get("arguments").and_then(Value::as_object).cloned().unwrap_or_default();
    arguments.insert("x-queue-type".to_owned(), defaults.queue_type(queue));
    let pairs = [
        ("durable", Value::Bool(flag(queue, "durable", true))),
        ("auto_delete", Value::Bool(flag(queue, "auto_delete", false))),
        ("arguments", Value::Object(arguments)),
    ];
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn exchange(exchange: &Object) -> Object {
    let pairs = [
        ("type", Value::from(text(exchange, "type"))),
        ("durable", Value::Bool(flag(exchange, "durable", true))),
        ("auto_delete", Value::Bool(flag(exchange, "auto_delete", false))),
        ("internal", Value::Bool(flag(exchange, "internal", false))),
        ("arguments", exchange.get("arguments").cloned().unwrap_or_else(|| json!({}))),
    ];
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
