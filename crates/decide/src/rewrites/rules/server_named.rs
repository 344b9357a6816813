//! Leaves out queues that belong to one connection, and counts all that come and go.

use super::super::classes::Census;
use super::super::context::Context;
use super::super::draft::{Draft, Step};
use super::super::object::{flag, is_server_named};
use super::super::outcome::Decision;
use super::super::section::Section;

pub(super) const ID: &str = "no-server-named-queues";

pub(super) fn apply<'a>(draft: Draft<'a>, cx: &Context) -> Draft<'a> {
    let classes = Census::of(&draft, cx).counted(&draft);
    draft.counting(classes).each(Section::Queues, ID, |queue| {
        if is_server_named(queue) {
            Step::leave(Decision::Dropped, "named by the server for one client, which makes its own on green")
        } else if flag(queue, "exclusive", false) {
            Step::leave(Decision::Dropped, "exclusive to one connection, which makes its own on green")
        } else {
            Step::keep()
        }
    })
}
