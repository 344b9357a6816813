//! Keeps queues without a type from becoming something else by their vhost's default type.

use std::collections::HashMap;

use serde_json::Value;

use super::super::context::Context;
use super::super::draft::{Draft, Step};
use super::super::object::{Object, argument, text, with_arguments};
use super::super::outcome::Decision;
use super::super::policy::why_not_quorum;
use super::super::section::Section;

pub(super) const ID: &str = "queue-types-kept";

pub(super) fn apply<'a>(draft: Draft<'a>, _: &Context) -> Draft<'a> {
    let defaults = defaults(&draft);
    if defaults.is_empty() {
        return draft;
    }
    draft.each(Section::Queues, ID, |queue| {
        let default = defaults.get(text(queue, "vhost"));
        default.map_or_else(Step::keep, |default| step(queue, default))
    })
}

/// The default type of every vhost that has one other than classic.
pub(in super::super) fn defaults(draft: &Draft<'_>) -> HashMap<String, String> {
    let named = draft.now(Section::Vhosts).filter_map(|vhost| {
        let default = default_type(&vhost)?;
        Some((text(&vhost, "name").to_owned(), default.to_owned()))
    });
    named.collect()
}

/// A vhost's default queue type, unless it is classic.
pub(in super::super) fn default_type(vhost: &Object) -> Option<&str> {
    let metadata = vhost.get("metadata").and_then(Value::as_object);
    let in_metadata =
        metadata.map(|metadata| text(metadata, "default_queue_type")).filter(|one| !one.is_empty());
    let default = in_metadata.unwrap_or_else(|| text(vhost, "default_queue_type"));
    (!matches!(default, "" | "classic" | "undefined" | "rabbit_classic_queue")).then_some(default)
}

fn step(queue: &Object, default: &str) -> Step {
    // What cannot be a quorum queue falls back to classic on green as well.
    if argument(queue, "x-queue-type").is_some() || why_not_quorum(queue).is_some() {
        return Step::keep();
    }
    match text(queue, "type") {
        "classic" => {
            let typed = with_arguments(queue, |arguments| {
                arguments.insert("x-queue-type".to_owned(), Value::from("classic"));
            });
            Step::edit(typed).note(
                Decision::Info,
                format!("classic on blue; says so now, since its vhost's default type is {default}"),
            )
        }
        "" => Step::keep().note(
            Decision::NeedsConsent,
            format!(
                "has no type and blue did not say one: on green it becomes {default}, its vhost's default"
            ),
        ),
        _ => Step::keep(),
    }
}
