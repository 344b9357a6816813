//! Placement: which nodes and zones can host each replica, and what happens when a zone is lost.
//!
//! "The volume fits a node" and "this pod can run there" are two answers, and both are given. Unknown is
//! never safe.

mod answer;
mod before;
mod keys;
mod loss;
mod placed;
mod pod;
mod selector;
mod view;
mod volume;

#[cfg(test)]
mod cases;

pub use answer::{Placement, ReplicaPlacement, Safety, ZoneLoss};
pub use before::before_install;
pub use placed::placement;
pub use view::{
    BindingMode, NodeView, Operator, Phase, ReplicaView, Requirement, Source, StorageClassView, Taint, Term,
    Toleration, Topology, VolumeView,
};
pub use volume::{Fit, fits};
