//! One suite for every broker: the facts that the toy and the protocol of the switch rest on.
//!
//! Runs against a real broker when `RABBIT_CONTRACT_URL` (management, `http://host:15672`) and
//! `RABBIT_CONTRACT_AMQP` (`host:5672`) are set, with `RABBIT_CONTRACT_USER` and `RABBIT_CONTRACT_PASSWORD`
//! of an administrator (guest, guest by default) and, if there, `RABBIT_CONTRACT_METRICS`
//! (`http://host:15692`). Without them each test says that it is skipped. Every test has a vhost and a user of
//! its own and removes them.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests: clippy knows only functions marked so")]

#[path = "contract/canary.rs"]
mod canary;
#[path = "contract/carry.rs"]
mod carry;
#[path = "contract/definitions.rs"]
mod definitions;
#[path = "contract/facts.rs"]
mod facts;
#[path = "contract/listings.rs"]
mod listings;
#[path = "contract/outages.rs"]
mod outages;
#[path = "contract/world.rs"]
mod world;
