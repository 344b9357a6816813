//! The bindings of a side that lead to what lasts, live.

use crate::body::{Memory, Scene};
use decide::names::Names;
use decide::side::Side;
use decide::world::{BindingView, Reading};
use rabbit::management::{Binding, Queue};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How old the list of queues may be that tells which ones last.
const QUEUES: Duration = Duration::from_secs(30);

/// Lists the bindings, those to queues that come and go, to ours and of the default exchange left out.
pub async fn bindings(_scene: &Scene<'_>, memory: &mut Memory, side: Side) -> Reading<BTreeSet<BindingView>> {
    let link = memory.link(side);
    let queues = match link.queues.listed(QUEUES) {
        Some(list) => list,
        None => match link.ask(|client| async move { client.queues_totals().await }).await {
            Ok(list) => link.queues.keep(list),
            Err(error) => return Reading::Failed(error.report()),
        },
    };
    match link.ask(|client| async move { client.bindings().await }).await {
        Ok(bindings) => Reading::Seen(lasting(bindings, &queues)),
        Err(error) => Reading::Failed(error.report()),
    }
}

fn lasting(bindings: Vec<Binding>, queues: &[Queue]) -> BTreeSet<BindingView> {
    let lasts = |queue: &&Queue| {
        queue.exclusive != Some(true)
            && queue.auto_delete != Some(true)
            && !queue.arguments.contains_key("x-expires")
            && !queue.name.starts_with("amq.gen-")
    };
    let lasting: BTreeSet<(&str, &str)> =
        queues.iter().filter(lasts).map(|queue| (queue.vhost.as_str(), queue.name.as_str())).collect();
    let leads = |binding: &Binding| {
        !binding.source.is_empty()
            && !Names::is_ours(&binding.vhost)
            && (binding.destination_type != "queue"
                || lasting.contains(&(binding.vhost.as_str(), binding.destination.as_str())))
    };
    bindings.into_iter().filter(leads).map(view).collect()
}

fn view(binding: Binding) -> BindingView {
    let Binding { vhost, source, destination, destination_type, routing_key, arguments } = binding;
    let arguments = if arguments.is_empty() { String::new() } else { sorted(arguments).to_string() };
    BindingView { vhost, source, kind: destination_type, destination, key: routing_key, arguments }
}

/// The arguments with their keys in order: brokers list them as they like.
fn sorted(arguments: Map<String, Value>) -> Value {
    let sorted: BTreeMap<String, Value> =
        arguments.into_iter().map(|(key, value)| (key, ordered(value))).collect();
    Value::Object(sorted.into_iter().collect())
}

fn ordered(value: Value) -> Value {
    match value {
        Value::Object(object) => sorted(object),
        Value::Array(list) => list.into_iter().map(ordered).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn binding(source: &str, destination: &str, arguments: &Value) -> Binding {
        serde_json::from_value(json!({ "vhost": "/", "source": source, "destination": destination,
            "destination_type": "queue", "routing_key": "k", "arguments": arguments }))
        .unwrap()
    }

    fn queue(name: &str, more: &Value) -> Queue {
        let mut queue = json!({ "vhost": "/", "name": name });
        queue.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(queue).unwrap()
    }

    #[test]
    fn only_bindings_to_what_lasts_are_listed() {
        let queues = [
            queue("jobs", &json!({})),
            queue("mine", &json!({ "exclusive": true })),
            queue("passing", &json!({ "auto_delete": true })),
            queue("expiring", &json!({ "arguments": { "x-expires": 1000 } })),
            queue("amq.gen-x", &json!({})),
        ];
        let names = ["jobs", "mine", "passing", "expiring", "amq.gen-x", "gone"];
        let mut all: Vec<Binding> = names.iter().map(|name| binding("e", name, &json!({}))).collect();
        all.push(binding("", "jobs", &json!({})));
        let told: Vec<String> = lasting(all, &queues).into_iter().map(|b| b.to_string()).collect();
        assert_eq!(told, [r#""e" -> queue "jobs" key "k" in vhost /"#]);
    }

    #[test]
    fn the_order_of_arguments_tells_nobody_apart() {
        let one = view(binding("e", "q", &json!({ "a": 1, "x": { "c": 1, "b": 2 } })));
        let other = view(binding("e", "q", &json!({ "x": { "b": 2, "c": 1 }, "a": 1 })));
        assert_eq!(one, other);
        assert_ne!(one, view(binding("e", "q", &json!({ "a": 1 }))));
    }
}
