//! The end-to-end suite and the demo: real brokers on a real Kubernetes, under load.

pub mod bench;
pub mod brokers;
pub mod cluster;
pub mod demo;
pub mod error;
pub mod ledger;
pub mod migration;
pub mod operator;
pub mod scenarios;
pub mod shop;
pub mod show;
pub mod suite;
pub mod summary;
pub mod why;
