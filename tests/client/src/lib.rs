//! Honest AMQP test clients: every message is in a ledger, and what was unconfirmed is sent again.
//!
//! ```text
//! settings -> crew -> engine (per connection) -> link, publish, consume -> books (pure) -> hub -> http
//! ```
//!
//! They run as application pods beside a migration and are no part of the operator. A checker reads
//! [`document::Document`] from each of them and decides what was lost, repeated or reordered.

pub mod consume;
pub mod consumer_book;
pub mod crew;
pub mod document;
pub mod engine;
pub mod gap;
pub mod http;
pub mod hub;
pub mod link;
pub mod message;
pub mod publish;
pub mod publisher_book;
pub mod ranges;
pub mod reason;
pub mod runs;
pub mod schedule;
pub mod sessions;
pub mod settings;
pub mod sniff;
