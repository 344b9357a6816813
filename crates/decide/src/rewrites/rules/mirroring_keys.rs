//! Takes the mirroring keys out of policies: 4.x refuses any policy with one.

use serde_json::Value;

use super::super::context::Context;
use super::super::draft::{Draft, Step};
use super::super::object::Object;
use super::super::outcome::Decision;
use super::super::policy::{Layer, definition, section, with_definition};

pub(super) const ID: &str = "no-mirroring-keys";

/// All keys of classic mirroring.
const HA_PREFIX: &str = "ha-";
const OLD_LOCATOR: &str = "queue-master-locator";
const LOCATOR: &str = "queue-leader-locator";

pub(super) fn apply<'a>(draft: Draft<'a>, cx: &Context) -> Draft<'a> {
    if !cx.green_is_at_least(4, 0) {
        return draft;
    }
    [Layer::User, Layer::Operator]
        .into_iter()
        .fold(draft, |draft, layer| draft.each(section(layer), ID, |object| step(object, layer)))
}

fn step(object: &Object, layer: Layer) -> Step {
    let Some(before) = definition(object, layer) else { return Step::keep() };
    let after = without_mirroring(&before);
    if after == before {
        return Step::keep();
    }
    let gone: Vec<&str> = before.keys().filter(|key| !after.contains_key(*key)).map(String::as_str).collect();
    let locator = if before.contains_key(OLD_LOCATOR) {
        format!(", {LOCATOR} instead of {OLD_LOCATOR}")
    } else {
        String::new()
    };
    Step::edit(with_definition(object, layer, after))
        .note(Decision::Info, format!("without {}{locator}", gone.join(", ")))
}

/// A definition as 4.x understands it.
pub(in super::super) fn without_mirroring(definition: &Object) -> Object {
    let mut after: Object = definition
        .iter()
        .filter(|(key, _)| !key.starts_with(HA_PREFIX))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    if let Some(old) = after.shift_remove(OLD_LOCATOR) {
        after.entry(LOCATOR).or_insert_with(|| leader_locator(&old));
    }
    after
}

/// `client-local` means the same; the others all spread leaders, which is `balanced` today.
fn leader_locator(old: &Value) -> Value {
    if old == "client-local" { old.clone() } else { Value::from("balanced") }
}
