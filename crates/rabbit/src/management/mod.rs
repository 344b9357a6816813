//! Client of the management HTTP API: one file per API area, each call with the tag it needs.

mod broker;
mod channels;
mod connections;
mod definitions;
mod feature_flags;
mod http;
mod json;
mod limits;
mod parameters;
mod path;
mod queues;
pub(crate) mod reason;
mod topology;
mod users;
mod vhosts;

pub(crate) use http::{plain_http, unreachable};

pub use broker::{Health, Listener, Members, Node, Overview};
pub use channels::{Channel, Consumer};
pub use connections::{Closed, Connection, LiveConnection};
pub use feature_flags::FeatureFlag;
pub use http::Client;
pub use limits::{Limits, MAX_CONNECTIONS};
pub use parameters::{Parameter, Policy};
pub use queues::{MessageStats, Queue, QueueStats};
pub use topology::{Binding, Exchange};
pub use users::{Password, Permissions, TopicPermission, User, WhoAmI};
pub use vhosts::{Vhost, VhostSpec};
