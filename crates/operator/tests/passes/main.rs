//! The ring of passes: the operator's own code against an API server in the process, which records every
//! request and grants what `deploy/base` grants.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod broker;
mod cuts;
mod leader;
mod rbac;
mod scene;
mod secrets;
mod server;
mod status;
mod stop;
mod wakes;
