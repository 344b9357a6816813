//! The limits of what stands in status.

/// A word of a closed list, a number as text, a digest.
pub const WORD: usize = 64;
/// A few words: versions, what a rule compares, an order's value.
pub const PHRASE: usize = 128;
/// The longest name in Kubernetes.
pub const NAME: usize = 253;
/// A sentence or two for people.
pub const TEXT: usize = 512;
/// A command that is to be copied: cut it would be another one, so that it stands whole or not at all.
pub const COMMAND: usize = 2048;
/// Conditions: sixteen types, and some of an older or newer operator.
pub const CONDITIONS: usize = 24;
/// Findings.
pub const FINDINGS: usize = 48;
/// Lines: of the plan, of rewrites, of commands; rules of the gate.
pub const LINES: usize = 24;
/// Differences, and zones that may be lost.
pub const DIFFERENCES: usize = 16;
/// Replicas of a broker.
pub const REPLICAS: usize = 9;
/// Zones of a volume, and kinds of orders.
pub const FEW: usize = 8;
/// Phases so far.
pub const HISTORY: usize = 32;
/// Blue and green.
pub const SIDES: usize = 2;
