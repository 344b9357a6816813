//! The only crate that talks to a RabbitMQ broker: what it returns is broker truth in broker words.
//!
//! Contract of all I/O here: every call has a timeout and says what a cut leaves behind; a field that the
//! broker did not send is `None`, never 0; no error, `Debug` or log line holds a secret. There is no
//! Kubernetes in this crate and no decision.
//!
//! * [`management`]: the HTTP API, [`metrics`]: the Prometheus endpoint.
//! * [`amqp`]: handshake, depths, carrying messages, the canary.
//! * [`definitions`] and [`seal`]: importing in phases, keeping secrets out of the rewrites.

pub mod amqp;
pub mod definitions;
pub mod error;
pub mod management;
pub mod metrics;
pub mod seal;
mod secret;
mod timeouts;

pub use error::{Cause, Error, Kind, Result};
pub use secret::{Credentials, Secret};
pub use timeouts::Timeouts;
