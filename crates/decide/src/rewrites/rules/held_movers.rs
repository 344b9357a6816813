//! Holds back what moves messages by itself: on green it would pull from the same sources as blue does.

use super::super::context::Context;
use super::super::draft::{Draft, Step};
use super::super::object::{Object, text};
use super::super::outcome::Decision;
use super::super::policy::{Layer, definition, with_definition};
use super::super::section::Section;

pub(super) const ID: &str = "movers-wait-for-switch";

/// Runtime parameters that start something.
const COMPONENTS: [&str; 3] = ["shovel", "federation-upstream", "federation-upstream-set"];
/// Policy keys that start federation links.
const KEY_PREFIX: &str = "federation-upstream";

pub(super) fn apply<'a>(draft: Draft<'a>, _: &Context) -> Draft<'a> {
    draft.each(Section::Parameters, ID, parameter).each(Section::Policies, ID, policy)
}

fn parameter(parameter: &Object) -> Step {
    if COMPONENTS.contains(&text(parameter, "component")) {
        Step::leave(Decision::Dropped, "held back: starts on green at the switch, when blue's has stopped")
            .held()
    } else {
        Step::keep()
    }
}

/// The policy stays, perhaps empty for now, so that no lower one takes its place unseen.
fn policy(policy: &Object) -> Step {
    let before = definition(policy, Layer::User).unwrap_or_default();
    let after = without_federation(&before);
    if after == before {
        return Step::keep();
    }
    Step::edit(with_definition(policy, Layer::User, after))
        .note(Decision::Info, "its federation keys are held back until the switch")
        .held()
}

/// A definition without what starts federation links.
pub(in super::super) fn without_federation(definition: &Object) -> Object {
    let others = definition.iter().filter(|(key, _)| !key.starts_with(KEY_PREFIX));
    others.map(|(key, value)| (key.clone(), value.clone())).collect()
}
