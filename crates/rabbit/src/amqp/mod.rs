//! AMQP 0-9-1: handshake, sessions, depths, carrying, canary. Connections never recover by themselves.

mod canary;
mod carry;
mod depth;
mod dial;
mod handshake;
mod ledger;
mod ranges;
mod session;
pub mod transport;

pub use canary::{Canary, CanaryConfig, CanaryHandle, Declare};
pub use carry::{Carried, CarryEnd, CarryOptions, UserId, carry};
pub use depth::{Depth, Probe};
pub use handshake::{ServerIdentity, handshake};
pub use ledger::{Ledger, LedgerSnapshot, Outages};
pub use ranges::Ranges;
pub use session::Session;
