//! The kubectl plugin: renders a migration's status, and writes annotations or spec. It decides nothing.
//!
//! All that it does `kubectl` can do too. It has no access to brokers and reads no Secret.

pub mod arguments;
pub mod commands;
pub mod connect;
pub mod error;
pub mod orders;
pub mod render;
