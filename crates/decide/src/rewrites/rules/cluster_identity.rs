//! Leaves out the cluster's identity: with one name on both sides federation's loop detection misfires.

use super::super::context::Context;
use super::super::draft::{Draft, Step};
use super::super::object::text;
use super::super::outcome::Decision;
use super::super::section::Section;

pub(super) const ID: &str = "own-cluster-identity";

/// Global parameters that a broker gives itself.
pub(in super::super) const IDENTITY: [&str; 3] =
    ["cluster_name", "internal_cluster_id", "imported_definition_hash_value"];

pub(super) fn apply<'a>(draft: Draft<'a>, _: &Context) -> Draft<'a> {
    draft.each(Section::GlobalParameters, ID, |parameter| {
        if IDENTITY.contains(&text(parameter, "name")) {
            Step::leave(Decision::Dropped, "names the cluster; green has its own")
        } else {
            Step::keep()
        }
    })
}
