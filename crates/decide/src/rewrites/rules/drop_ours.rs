//! Leaves out what the operator made on blue, and users that are green's own.

use super::super::context::Context;
use super::super::draft::{Draft, Step};
use super::super::object::{Object, text};
use super::super::outcome::Decision;
use super::super::section::Section;

pub(super) const ID: &str = "no-operator-objects";

/// Fields that hold the name of something that may be ours. A permission without its user would be refused.
const NAMES: [&str; 6] = ["name", "vhost", "user", "source", "destination", "exchange"];

pub(super) fn apply<'a>(draft: Draft<'a>, cx: &Context) -> Draft<'a> {
    Section::ALL
        .into_iter()
        .fold(draft, |draft, section| draft.each(section, ID, |object| step(section, object, cx)))
}

fn step(section: Section, object: &Object, cx: &Context) -> Step {
    if NAMES.iter().any(|key| cx.is_ours(text(object, key))) {
        return Step::ours("made by the operator, left out");
    }
    let user = match section {
        Section::Users => text(object, "name"),
        Section::Permissions | Section::TopicPermissions => text(object, "user"),
        Section::Vhosts
        | Section::Parameters
        | Section::GlobalParameters
        | Section::Policies
        | Section::Queues
        | Section::Exchanges
        | Section::Bindings => return Step::keep(),
    };
    if cx.is_excluded_user(user) {
        return Step::leave(Decision::Dropped, "green keeps its own user of this name");
    }
    Step::keep()
}
