//! Compares the policy keys that every queue and exchange had on blue with those it gets on green.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::context::Context;
use super::super::draft::{Draft, Item};
use super::super::object::{Object, canonical, text};
use super::super::outcome::{Change, Decision};
use super::super::policy::{Effective, Kind, Layer, Policies};
use super::super::section::{ObjectRef, Section};
use super::empty_policies::{NEUTRAL, NEUTRAL_KEY};
use super::held_movers::without_federation;
use super::mirroring_keys::without_mirroring;

pub(super) const ID: &str = "effective-policies-kept";

/// What differs, and for how many objects: one change for each, not one for each queue.
type Found = BTreeMap<(String, String), (ObjectRef, u32)>;

pub(super) fn apply<'a>(draft: Draft<'a>, cx: &Context) -> Draft<'a> {
    [Layer::User, Layer::Operator].into_iter().fold(draft, |draft, layer| {
        let found = differences(&draft, layer, cx);
        found.into_iter().fold(draft, |draft, ((before, after), (object, count))| {
            let others = if count > 1 { format!(" and {} others", count - 1) } else { String::new() };
            let what = format!("effective policy{others}: {before} on blue, {after} on green");
            draft.say(Change { rule: ID.to_owned(), object, what, decision: Decision::NeedsConsent })
        })
    })
}

fn differences(draft: &Draft<'_>, layer: Layer, cx: &Context) -> Found {
    let (blue, green) = (Policies::on_blue(draft, layer), Policies::now(draft, layer));
    let mut found = Found::new();
    for section in [Section::Queues, Section::Exchanges] {
        for item in draft.items(section) {
            let Some((object, difference)) = difference(item, section, (&blue, &green), cx) else { continue };
            let entry = found.entry(difference).or_insert((object, 0));
            entry.1 = entry.1.saturating_add(1);
        }
    }
    found
}

fn difference(
    item: &Item<'_>,
    section: Section,
    (blue, green): (&Policies, &Policies),
    cx: &Context,
) -> Option<(ObjectRef, (String, String))> {
    let (before, after) = (item.on_blue()?, item.now()?);
    let (vhost, name) = (text(&after, "vhost"), text(&after, "name"));
    let before = blue.effective(vhost, name, kind(section, &before));
    let after = green.effective(vhost, name, kind(section, &after));
    let (meant, given) = (meant(&before, cx), given(&after));
    if meant == given {
        return None;
    }
    let object = ObjectRef { section, vhost: Some(vhost.to_owned()), name: name.to_owned() };
    Some((object, (said(&before, meant.as_ref()), said(&after, given.as_ref()))))
}

fn kind(section: Section, object: &Object) -> Kind {
    if section == Section::Exchanges { Kind::Exchange } else { Kind::of_queue(object) }
}

/// What blue's definition comes to on green. None where blue's policy is not known.
fn meant(effective: &Effective<'_>, cx: &Context) -> Option<Value> {
    let definition = definition(effective)?;
    let definition = if cx.green_is_at_least(4, 0) { without_mirroring(&definition) } else { definition };
    Some(canonical(&Value::Object(without_federation(&definition))))
}

fn given(effective: &Effective<'_>) -> Option<Value> {
    let mut definition = definition(effective)?;
    if definition.get(NEUTRAL_KEY) == Some(&Value::from(NEUTRAL)) {
        definition.shift_remove(NEUTRAL_KEY);
    }
    Some(canonical(&Value::Object(definition)))
}

fn definition(effective: &Effective<'_>) -> Option<Object> {
    match effective {
        Effective::Nothing => Some(Object::new()),
        Effective::One(_) => effective.definition().cloned(),
        Effective::Tie(_, _) | Effective::Unknown(_) => None,
    }
}

/// Names the policy and its keys; values stay out of it.
fn said(effective: &Effective<'_>, keys: Option<&Value>) -> String {
    let keys: Vec<&str> =
        keys.and_then(Value::as_object).into_iter().flat_map(Object::keys).map(String::as_str).collect();
    match effective {
        Effective::Nothing => "none".to_owned(),
        Effective::One(policy) => format!("{} ({})", policy.name, keys.join(", ")),
        Effective::Tie(one, other) => format!("a tie of {} and {}", one.name, other.name),
        Effective::Unknown(policy) => format!("not known ({} cannot be evaluated)", policy.name),
    }
}
