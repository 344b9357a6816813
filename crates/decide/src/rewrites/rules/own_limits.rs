//! Puts back limits that the operator set on blue: a fence must never be copied to green.

use serde_json::Value;

use super::super::context::{Context, LimitOwner, OwnLimit};
use super::super::draft::{Draft, Step};
use super::super::object::{Object, text};
use super::super::outcome::Decision;
use super::super::section::Section;

pub(super) const ID: &str = "own-limits-undone";

/// The runtime parameter that holds a vhost's limits.
const VHOST_LIMITS: &str = "vhost-limits";

pub(super) fn apply<'a>(draft: Draft<'a>, cx: &Context) -> Draft<'a> {
    if cx.own_limits.is_empty() {
        return draft;
    }
    draft
        .each(Section::Users, ID, |user| step(user, "limits", LimitOwner::User, text(user, "name"), cx))
        .each(Section::Vhosts, ID, |vhost| step(vhost, "limits", LimitOwner::Vhost, text(vhost, "name"), cx))
        .each(Section::Parameters, ID, |parameter| {
            if text(parameter, "component") == VHOST_LIMITS {
                step(parameter, "value", LimitOwner::Vhost, text(parameter, "vhost"), cx)
            } else {
                Step::keep()
            }
        })
}

fn step(object: &Object, key: &str, owner: LimitOwner, name: &str, cx: &Context) -> Step {
    let Some(limits) = object.get(key).and_then(Value::as_object) else {
        return Step::keep();
    };
    let is_set = |own: &&OwnLimit| limits.get(&own.limit) == Some(&own.set);
    let own: Vec<&OwnLimit> =
        cx.own_limits.iter().filter(|own| own.owner == owner && own.name == name).filter(is_set).collect();
    if own.is_empty() {
        return Step::keep();
    }
    let limits = own.into_iter().fold(limits.clone(), without);
    // A parameter without a limit says nothing; a user or vhost stays.
    if limits.is_empty() && key == "value" {
        return Step::leave(Decision::Dropped, "its only limits are the operator's");
    }
    let mut object = object.clone();
    object.insert(key.to_owned(), Value::Object(limits));
    Step::edit(object).note(Decision::Info, "a limit that the operator set was put back to what it was")
}

fn without(mut limits: Object, own: &OwnLimit) -> Object {
    match &own.before {
        Some(before) => limits.insert(own.limit.clone(), before.clone()),
        None => limits.shift_remove(&own.limit),
    };
    limits
}
