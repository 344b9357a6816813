//! Leaves out bindings that lead nowhere: green from 3.13 on refuses them with 400, half way through.

use std::collections::HashSet;

use super::super::context::Context;
use super::super::draft::{Draft, Item, Step};
use super::super::object::{Object, text};
use super::super::outcome::Decision;
use super::super::section::Section;

pub(super) const ID: &str = "bindings-lead-somewhere";

/// Exchanges that every vhost has and no export lists.
const BUILT_IN: &str = "amq.";

/// Names of things, with their vhosts.
struct Names(HashSet<(String, String)>);

impl Names {
    fn of(objects: impl Iterator<Item = Object>) -> Self {
        Self(objects.map(|one| (text(&one, "vhost").to_owned(), text(&one, "name").to_owned())).collect())
    }

    fn have(&self, vhost: &str, name: &str) -> bool {
        self.0.contains(&(vhost.to_owned(), name.to_owned()))
    }
}

pub(super) fn apply<'a>(draft: Draft<'a>, _: &Context) -> Draft<'a> {
    let queues = Names::of(draft.now(Section::Queues));
    let exchanges = Names::of(draft.now(Section::Exchanges));
    let blue_queues = Names::of(draft.items(Section::Queues).filter_map(Item::on_blue));
    draft.each(Section::Bindings, ID, |binding| step(binding, &queues, &exchanges, &blue_queues))
}

fn step(binding: &Object, queues: &Names, exchanges: &Names, blue_queues: &Names) -> Step {
    let (vhost, source, destination) =
        (text(binding, "vhost"), text(binding, "source"), text(binding, "destination"));
    let is_exchange = |name: &str| name.starts_with(BUILT_IN) || exchanges.have(vhost, name);
    let to_queue = text(binding, "destination_type") != "exchange";
    let leads = if to_queue { queues.have(vhost, destination) } else { is_exchange(destination) };
    if source.is_empty() {
        return Step::leave(Decision::Dropped, "of the default exchange, which every queue has by itself");
    }
    if leads && is_exchange(source) {
        return Step::keep();
    }
    if leads {
        return Step::leave(Decision::NeedsConsent, format!("its source {source} does not exist on blue"));
    }
    if to_queue && (destination.starts_with("amq.gen-") || blue_queues.have(vhost, destination)) {
        return Step::leave(Decision::Dropped, "its queue is left out");
    }
    Step::leave(
        Decision::NeedsConsent,
        format!("its destination {destination} does not exist on blue, so green would refuse the import"),
    )
}
