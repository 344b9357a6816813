//! Leaves out policies that the rewrites emptied, unless a lower policy would take their place.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::super::context::Context;
use super::super::draft::{Draft, Step};
use super::super::object::{Object, text};
use super::super::outcome::Decision;
use super::super::policy::{Effective, Kind, Layer, Policies, Policy, definition, section, with_definition};
use super::super::section::Section;

pub(super) const ID: &str = "no-empty-policies";

/// A key that every policy may hold and that changes nothing at this value, the largest that JSON readers
/// agree on: limits merge to the smaller one.
pub(in super::super) const NEUTRAL_KEY: &str = "max-length-bytes";
/// The largest whole number that survives every JSON reader.
pub(in super::super) const NEUTRAL: u64 = 9_007_199_254_740_991;

pub(super) fn apply<'a>(draft: Draft<'a>, _: &Context) -> Draft<'a> {
    [Layer::User, Layer::Operator].into_iter().fold(draft, |draft, layer| {
        let masks = masks(&draft, layer);
        draft.each(section(layer), ID, |object| step(object, layer, &masks))
    })
}

/// Policies by vhost and name, with one object that a lower policy would reach without them.
type Masks = HashMap<(String, String), String>;

fn step(object: &Object, layer: Layer, masks: &Masks) -> Step {
    if definition(object, layer).is_none_or(|definition| !definition.is_empty()) {
        return Step::keep();
    }
    let key = (text(object, "vhost").to_owned(), text(object, "name").to_owned());
    let Some(reached) = masks.get(&key) else {
        return Step::leave(Decision::Dropped, "nothing is left in it, and no other policy takes its place");
    };
    let neutral = [(NEUTRAL_KEY.to_owned(), Value::from(NEUTRAL))].into_iter().collect();
    Step::edit(with_definition(object, layer, neutral)).note(
        Decision::NeedsConsent,
        format!(
            "nothing is left in it, but without it a lower policy would apply to {reached}: kept with {NEUTRAL_KEY} \
             at a value that limits nothing"
        ),
    )
}

fn masks(draft: &Draft<'_>, layer: Layer) -> Masks {
    let policies = Policies::now(draft, layer);
    let empty: HashSet<(String, String)> = draft
        .now(section(layer))
        .filter(|object| definition(object, layer).is_some_and(|definition| definition.is_empty()))
        .map(|object| (text(&object, "vhost").to_owned(), text(&object, "name").to_owned()))
        .collect();
    if empty.is_empty() {
        return Masks::new();
    }
    let queues = draft.now(Section::Queues).map(|queue| (Kind::of_queue(&queue), queue));
    let exchanges = draft.now(Section::Exchanges).map(|exchange| (Kind::Exchange, exchange));
    let masked = queues.chain(exchanges).filter_map(|(kind, object)| {
        let (vhost, name) = (text(&object, "vhost"), text(&object, "name"));
        let above = masking(&policies, vhost, name, kind)?;
        Some(((above.vhost.clone(), above.name.clone()), name.to_owned()))
    });
    masked.collect()
}

/// The emptied policy that keeps a lower one from this object, if there is one. Where that cannot be said
/// the policy is kept.
fn masking<'p>(policies: &'p Policies, vhost: &str, name: &str, kind: Kind) -> Option<&'p Policy> {
    let above = match policies.effective(vhost, name, kind) {
        Effective::One(policy) | Effective::Tie(policy, _) => policy,
        Effective::Nothing | Effective::Unknown(_) => return None,
    };
    if !above.definition.is_empty() {
        return None;
    }
    match policies.effective_among(vhost, name, kind, |policy| !policy.definition.is_empty()) {
        Effective::Nothing => None,
        Effective::One(_) | Effective::Tie(_, _) | Effective::Unknown(_) => Some(above),
    }
}
