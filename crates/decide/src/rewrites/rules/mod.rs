//! The registry of rewrites, in the order in which they must run.

mod cluster_identity;
mod dangling_bindings;
mod default_queue_type;
mod drop_ours;
mod effective_policies;
mod empty_policies;
mod exchange_types;
mod held_movers;
mod mirroring_keys;
mod own_limits;
mod policy_shapes;
mod quorum_arguments;
mod quorum_queues;
mod real_names;
mod server_named;
mod stream_ages;
mod transient_queues;

use super::context::Context;
use super::draft::Draft;

pub(super) use cluster_identity::IDENTITY;
pub(super) use default_queue_type::{default_type, defaults};

/// One rewrite. Assumes that all before it in [`ALL`] have run; running it twice changes nothing more.
pub(super) struct Rewrite {
    /// Its name, kebab-case, the good state.
    pub(super) id: &'static str,
    /// Why it stands where it stands.
    pub(super) place: &'static str,
    /// Does it.
    pub(super) apply: for<'a> fn(Draft<'a>, &Context) -> Draft<'a>,
}

/// All rewrites, in order.
pub(super) const ALL: [Rewrite; 17] = [
    Rewrite {
        id: drop_ours::ID,
        place: "first: nothing after it may reason about objects that are not the user's",
        apply: drop_ours::apply,
    },
    Rewrite {
        id: own_limits::ID,
        place: "also about what is not the user's, so right after",
        apply: own_limits::apply,
    },
    Rewrite { id: cluster_identity::ID, place: "depends on nothing", apply: cluster_identity::apply },
    Rewrite {
        id: server_named::ID,
        place: "before any queue is converted: these are never",
        apply: server_named::apply,
    },
    Rewrite {
        id: transient_queues::ID,
        place: "before the conversion, which wants durable queues",
        apply: transient_queues::apply,
    },
    Rewrite {
        id: quorum_queues::ID,
        place: "while policies still say which queues are mirrored",
        apply: quorum_queues::apply,
    },
    Rewrite {
        id: quorum_arguments::ID,
        place: "after the conversion: cleans converted and older quorum queues alike",
        apply: quorum_arguments::apply,
    },
    Rewrite {
        id: default_queue_type::ID,
        place: "after the conversion: what still has no type stays classic",
        apply: default_queue_type::apply,
    },
    Rewrite { id: real_names::ID, place: "once ours are out", apply: real_names::apply },
    Rewrite { id: stream_ages::ID, place: "depends on nothing", apply: stream_ages::apply },
    Rewrite { id: exchange_types::ID, place: "before bindings are judged", apply: exchange_types::apply },
    Rewrite {
        id: dangling_bindings::ID,
        place: "once it is known which queues and exchanges stay",
        apply: dangling_bindings::apply,
    },
    Rewrite {
        id: policy_shapes::ID,
        place: "judges blue's own policies, so before they are changed",
        apply: policy_shapes::apply,
    },
    Rewrite {
        id: mirroring_keys::ID,
        place: "after the conversion has read them",
        apply: mirroring_keys::apply,
    },
    Rewrite {
        id: held_movers::ID,
        place: "after the mirroring keys: what is left beside federation decides if a policy stays",
        apply: held_movers::apply,
    },
    Rewrite {
        id: empty_policies::ID,
        place: "after all that empties policies",
        apply: empty_policies::apply,
    },
    Rewrite {
        id: effective_policies::ID,
        place: "last: compares what every queue and exchange had with what it gets",
        apply: effective_policies::apply,
    },
];
