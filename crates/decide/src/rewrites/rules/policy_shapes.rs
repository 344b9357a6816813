//! Finds policies that green would refuse: no name, an unknown scope, nothing in them.

use super::super::context::Context;
use super::super::draft::{Draft, Step};
use super::super::object::{Object, text};
use super::super::outcome::Decision;
use super::super::policy::{Layer, Pattern, body, definition, section};

pub(super) const ID: &str = "policies-valid";

/// Scopes of every version.
const SCOPES: [&str; 4] = ["", "all", "exchanges", "queues"];
/// Scopes from 3.12 on.
const LATER_SCOPES: [&str; 3] = ["classic_queues", "quorum_queues", "streams"];

pub(super) fn apply<'a>(draft: Draft<'a>, cx: &Context) -> Draft<'a> {
    [Layer::User, Layer::Operator]
        .into_iter()
        .fold(draft, |draft, layer| draft.each(section(layer), ID, |object| step(object, layer, cx)))
}

fn step(object: &Object, layer: Layer, cx: &Context) -> Step {
    let (Some(body), Some(definition)) = (body(object, layer), definition(object, layer)) else {
        return Step::keep();
    };
    let scope = text(body, "apply-to");
    let is_known = SCOPES.contains(&scope) || (LATER_SCOPES.contains(&scope) && cx.green_is_at_least(3, 12));
    let faults = [
        (text(object, "name").is_empty()).then(|| "has no name, which green refuses".to_owned()),
        (!is_known).then(|| format!("applies to {scope:?}, which green does not know")),
        definition.is_empty().then(|| "has an empty definition, which green refuses".to_owned()),
    ];
    let step =
        faults.into_iter().flatten().fold(Step::keep(), |step, what| step.note(Decision::Blocks, what));
    if Pattern::new(text(body, "pattern")).is_usable() {
        step
    } else {
        step.note(
            Decision::NeedsConsent,
            "its pattern cannot be evaluated here, so what it applies to is not known",
        )
    }
}
