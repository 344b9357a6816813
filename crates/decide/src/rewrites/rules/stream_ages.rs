//! Finds ages of streams that a broker refuses.

use serde_json::Value;

use super::super::context::Context;
use super::super::draft::{Draft, Step};
use super::super::object::argument;
use super::super::outcome::Decision;
use super::super::section::Section;

pub(super) const ID: &str = "stream-ages-valid";

/// Years, months, days, hours, minutes, seconds.
const UNITS: [char; 6] = ['Y', 'M', 'D', 'h', 'm', 's'];

pub(super) fn apply<'a>(draft: Draft<'a>, _: &Context) -> Draft<'a> {
    draft.each(Section::Queues, ID, |queue| match argument(queue, "x-max-age").and_then(Value::as_str) {
        Some(age) if !is_age(age) => Step::keep()
            .note(Decision::Blocks, format!("x-max-age {age:?} is refused: want a number and one of YMDhms")),
        Some(_) | None => Step::keep(),
    })
}

fn is_age(age: &str) -> bool {
    let number = age.strip_suffix(UNITS).unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}
