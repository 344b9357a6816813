//! Open-loop latency probe for RabbitMQ: one or two brokers at once, latency from the intended time.
//!
//! A run lives on its own OS thread with its own runtime ([`Handle`] is the way to it). Messages are due at
//! absolute times ([`Schedule`]), the same on every side, and the plan is kept whatever a broker does: what
//! cannot be sent, is refused or does not come counts as infinitely late ([`Latency::Infinite`]). What leaves
//! the probe is one [`PairedWindow`] per slice of the schedule; it decides nothing.
//!
//! Vhost and user exist already. The probe declares durable queues `probe.0`, ... in that vhost and removes
//! them at the end; `x-expires` does when it cannot.

mod body;
mod clock;
mod config;
mod connect;
mod engine;
#[cfg(test)]
mod engine_tests;
#[cfg(test)]
mod fake;
mod handle;
mod latency;
mod ledger;
#[cfg(test)]
mod ledger_tests;
mod pacer;
mod schedule;
mod shared;
mod side;
mod store;
#[cfg(test)]
mod store_tests;
mod summary;
mod throttle;
mod transport;
mod warmup;
mod window;

pub use body::{HEADER, Stamp};
pub use config::{
    Config, ConfigError, Percentile, QueueType, SideConfig, WarmupConfig, WindowLength, sendlag_bound,
};
pub use connect::Leftover;
pub use handle::{Handle, LoadSummary, LoadTest, Probe, StartError};
pub use latency::{Latency, Quantiles, Recorder, Samples};
pub use schedule::{Rate, Schedule};
pub use shared::State;
pub use summary::{Counters, Fault, Merged, PairedWindow, Throttling, Validity, WindowSummary};
