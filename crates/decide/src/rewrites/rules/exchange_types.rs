//! Finds exchanges of a type that green does not know.

use super::super::context::Context;
use super::super::draft::{Draft, Step};
use super::super::object::{Object, text};
use super::super::outcome::Decision;
use super::super::section::Section;

pub(super) const ID: &str = "exchange-types-known";

/// Types that every broker has.
const BUILT_IN: [&str; 4] = ["direct", "fanout", "topic", "headers"];

pub(super) fn apply<'a>(draft: Draft<'a>, cx: &Context) -> Draft<'a> {
    draft.each(Section::Exchanges, ID, |exchange| step(exchange, cx))
}

fn step(exchange: &Object, cx: &Context) -> Step {
    let kind = text(exchange, "type");
    if BUILT_IN.contains(&kind) {
        return Step::keep();
    }
    match &cx.green_exchange_types {
        Some(known) if known.iter().any(|one| one == kind) => Step::keep(),
        Some(_) => {
            Step::keep().note(Decision::Blocks, format!("green has no plugin for exchange type {kind:?}"))
        }
        None => Step::keep().note(
            Decision::NeedsConsent,
            format!("whether green knows exchange type {kind:?} was not asked"),
        ),
    }
}
