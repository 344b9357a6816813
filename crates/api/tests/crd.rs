//! Tests of the CRD as it is generated: its rules, its limits, and that status keeps them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "crd/bounded.rs"]
mod bounded;
#[path = "crd/limits.rs"]
mod limits;
#[path = "crd/rules.rs"]
mod rules;
#[path = "crd/walk.rs"]
mod walk;
