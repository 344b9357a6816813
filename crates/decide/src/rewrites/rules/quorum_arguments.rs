//! Takes arguments off quorum queues that quorum queues do not have: green refuses some, ignores others.

use serde_json::Value;

use super::super::context::Context;
use super::super::draft::{Draft, Step};
use super::super::object::{Object, argument, with_arguments};
use super::super::outcome::Decision;
use super::super::policy::{Kind, why_not_quorum};
use super::super::section::Section;

pub(super) const ID: &str = "quorum-arguments-valid";

/// Arguments that 4.0.5 refuses on a quorum queue, so that a client which sends them gets an error too.
const REFUSED: [&str; 3] = ["x-max-priority", "x-queue-mode", "x-queue-master-locator"];
/// Accepted and without effect.
const IGNORED: &str = "x-queue-version";
const HA_PREFIX: &str = "x-ha-";
const OVERFLOW: &str = "x-overflow";
const UNSUPPORTED_OVERFLOW: &str = "reject-publish-dlx";
const NEAREST_OVERFLOW: &str = "reject-publish";

pub(super) fn apply<'a>(draft: Draft<'a>, _: &Context) -> Draft<'a> {
    draft.each(Section::Queues, ID, step)
}

fn step(queue: &Object) -> Step {
    if Kind::of_queue(queue) != Kind::Quorum {
        return Step::keep();
    }
    if let Some(why) = why_not_quorum(queue) {
        let what = format!("a quorum queue, but {why}: green would answer 204 and not make it");
        return Step::keep().note(Decision::Blocks, what);
    }
    let arguments = queue.get("arguments").and_then(Value::as_object);
    let odd: Vec<&str> =
        arguments.into_iter().flat_map(Object::keys).map(String::as_str).filter(is_odd).collect();
    let overflows = argument(queue, OVERFLOW).is_some_and(|value| value == UNSUPPORTED_OVERFLOW);
    if odd.is_empty() && !overflows {
        return Step::keep();
    }
    let cleaned = Step::edit(with_arguments(queue, |arguments| clean(arguments, overflows)));
    let cleaned = odd.into_iter().fold(cleaned, |step, key| step.note(decision(key), said(key)));
    if overflows {
        cleaned.note(
            Decision::NeedsConsent,
            "x-overflow reject-publish-dlx becomes reject-publish: what is refused is not dead-lettered any more",
        )
    } else {
        cleaned
    }
}

fn is_odd(key: &&str) -> bool {
    REFUSED.contains(key) || *key == IGNORED || key.starts_with(HA_PREFIX)
}

fn clean(arguments: &mut Object, overflows: bool) {
    arguments.retain(|key, _| !is_odd(&key.as_str()));
    if overflows {
        arguments.insert(OVERFLOW.to_owned(), Value::from(NEAREST_OVERFLOW));
    }
}

fn decision(key: &str) -> Decision {
    if REFUSED.contains(&key) { Decision::NeedsConsent } else { Decision::Info }
}

fn said(key: &str) -> String {
    match key {
        "x-max-priority" => {
            format!("{key} removed: priorities work differently, and a client that declares it gets an error")
        }
        _ if REFUSED.contains(&key) => format!("{key} removed: a client that declares it gets an error"),
        _ => format!("{key} removed: it has no effect on quorum queues"),
    }
}
