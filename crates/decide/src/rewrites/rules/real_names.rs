//! Lists names that look like a placeholder or like the left-over of a load test. They are kept.

use super::super::context::Context;
use super::super::draft::{Draft, Step};
use super::super::object::{Object, text};
use super::super::outcome::Decision;
use super::super::section::Section;

pub(super) const ID: &str = "names-look-real";

/// What template languages leave behind when nobody rendered them.
const TEMPLATES: [&str; 4] = ["{{", "${", "<%", "%("];
/// How PerfTest names its queues.
const LOAD_TEST: &str = "perf-";
/// Environment variables are rarely shorter; `SVC_A` may be a person's taste.
const SHORTEST_VARIABLE: usize = 8;

pub(super) fn apply<'a>(draft: Draft<'a>, _: &Context) -> Draft<'a> {
    let sections = [Section::Users, Section::Vhosts, Section::Queues, Section::Exchanges];
    let draft = sections.into_iter().fold(draft, |draft, section| draft.each(section, ID, placeholder));
    draft.each(Section::Users, ID, variable).each(Section::Queues, ID, left_over)
}

fn placeholder(object: &Object) -> Step {
    let name = text(object, "name");
    if TEMPLATES.iter().any(|template| name.contains(template)) {
        return Step::keep()
            .note(Decision::NeedsConsent, "its name looks like a template that nobody rendered");
    }
    Step::keep()
}

fn variable(user: &Object) -> Step {
    let name = text(user, "name");
    let is_shouted =
        name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    if is_shouted && name.contains('_') && name.len() >= SHORTEST_VARIABLE {
        return Step::keep()
            .note(Decision::NeedsConsent, "its name looks like a variable that nobody replaced");
    }
    Step::keep()
}

fn left_over(queue: &Object) -> Step {
    let number = text(queue, "name").strip_prefix(LOAD_TEST).unwrap_or_default();
    if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Step::keep().note(Decision::Info, "looks like the left-over of a load test; kept");
    }
    Step::keep()
}
