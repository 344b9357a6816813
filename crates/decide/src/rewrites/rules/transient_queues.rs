//! Queues that do not survive a restart: denied by default from 4.3 on, and never quorum queues.

use serde_json::Value;

use super::super::context::{Context, Treatment};
use super::super::draft::{Draft, Step};
use super::super::object::{Object, flag, text};
use super::super::outcome::Decision;
use super::super::section::Section;

pub(super) const ID: &str = "no-transient-queues";

pub(super) fn apply<'a>(draft: Draft<'a>, cx: &Context) -> Draft<'a> {
    draft.each(Section::Queues, ID, |queue| step(queue, cx))
}

fn step(queue: &Object, cx: &Context) -> Step {
    let treatment = cx.treatment(text(queue, "vhost"), text(queue, "name"));
    let is_transient = !flag(queue, "durable", true);
    match treatment {
        Some(Treatment::Drop) => Step::leave(Decision::Dropped, "left out by choice"),
        Some(Treatment::MakeDurable) if is_transient => {
            let mut durable = queue.clone();
            durable.insert("durable".to_owned(), Value::Bool(true));
            Step::edit(durable).note(
                Decision::NeedsConsent,
                "made durable by choice; a client that declares it with durable=false gets 406",
            )
        }
        Some(Treatment::Quorum | Treatment::KeepClassic | Treatment::MakeDurable) | None if is_transient => {
            if cx.green_is_at_least(4, 3) {
                let what = "not durable, which green denies by default: make it durable, drop it, or permit \
                            transient_nonexcl_queues on green";
                Step::keep().note(Decision::Blocks, what)
            } else {
                Step::keep().note(Decision::Info, "not durable: it does not survive a restart of green")
            }
        }
        Some(Treatment::Quorum | Treatment::KeepClassic | Treatment::MakeDurable) | None => Step::keep(),
    }
}
