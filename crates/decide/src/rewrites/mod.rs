//! Rewrites: what must change in blue's definitions so that green can hold them.
//!
//! Works on the export as bytes in which every secret is already an opaque seal. Objects are borrowed raw
//! and parsed one at a time; what no rule touches comes out byte-equal.

mod classes;
mod compare;
mod context;
mod draft;
mod json;
mod normal;
mod object;
mod outcome;
mod policy;
mod rewrite;
mod rules;
mod section;

#[cfg(test)]
mod cases;

pub use compare::compare;
pub use context::{Choice, Context, Dynamic, LimitOwner, OwnLimit, Treatment};
pub use outcome::{Change, Classes, Comparison, Decision, Difference, Held, Malformed, Rewritten};
pub(crate) use policy::Pattern;
pub use rewrite::{catalogue, rewrite};
pub use section::{ObjectRef, Section};
