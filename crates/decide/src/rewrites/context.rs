//! What the rewrites know beside blue's definitions: versions, names that are ours, choices of the user.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::section::Section;

/// Everything beside the definitions that decides how they are rewritten.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Context {
    /// Blue's RabbitMQ version.
    pub blue_version: String,
    /// Green's RabbitMQ version.
    pub green_version: String,
    /// Exchange types green knows; none when nobody asked it.
    pub green_exchange_types: Option<Vec<String>>,
    /// Every name that begins so is ours: users, vhosts, queues, exchanges, policies, parameters.
    /// Empty means nothing is.
    pub our_prefix: String,
    /// Users that are green's own, such as its administrator: never imported over.
    pub exclude_users: Vec<String>,
    /// Choices for single queues.
    pub choices: Vec<Choice>,
    /// Limits that the operator set on blue, with what stood there before.
    pub own_limits: Vec<OwnLimit>,
    /// Objects that come and go by design (`topology.dynamic`): followed and counted, not compared.
    pub dynamic: Vec<Dynamic>,
}

impl Context {
    /// Says whether a name is ours.
    pub fn is_ours(&self, name: &str) -> bool {
        !self.our_prefix.is_empty() && name.starts_with(&self.our_prefix)
    }

    /// Says whether a user must stay as green has it.
    pub fn is_excluded_user(&self, name: &str) -> bool {
        self.is_ours(name) || self.exclude_users.iter().any(|user| user == name)
    }

    /// Looks up the user's choice for a queue.
    pub fn treatment(&self, vhost: &str, queue: &str) -> Option<Treatment> {
        let found = self.choices.iter().find(|choice| choice.vhost == vhost && choice.queue == queue);
        found.map(|choice| choice.treatment)
    }

    /// Says whether green is at least this version; a version that cannot be read counts as new, since new
    /// brokers refuse more.
    pub fn green_is_at_least(&self, major: u32, minor: u32) -> bool {
        at_least(&self.green_version, major, minor)
    }
}

fn at_least(version: &str, major: u32, minor: u32) -> bool {
    let mut parts = version.split(['.', '-', '+']).map(str::parse::<u32>);
    match (parts.next(), parts.next()) {
        (Some(Ok(got_major)), Some(Ok(got_minor))) => (got_major, got_minor) >= (major, minor),
        (Some(Ok(_) | Err(_)) | None, _) => true,
    }
}

/// What the user chose for one queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// Its vhost.
    pub vhost: String,
    /// Its name.
    pub queue: String,
    /// What to do with it.
    pub treatment: Treatment,
}

/// What can be done with a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Treatment {
    /// Make it a quorum queue, if it can be one.
    Quorum,
    /// Leave its type alone.
    KeepClassic,
    /// Make a transient queue durable.
    MakeDurable,
    /// Leave it out, with its bindings.
    Drop,
}

/// Whose limit it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LimitOwner {
    /// A user's.
    User,
    /// A vhost's.
    Vhost,
}

/// A limit that the operator set on blue, so that it never reaches green.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OwnLimit {
    /// Whether it is a user's or a vhost's.
    pub owner: LimitOwner,
    /// The user or vhost.
    pub name: String,
    /// The limit, such as `max-connections`.
    pub limit: String,
    /// What the operator set.
    pub set: Value,
    /// What stood there before; none means there was none.
    pub before: Option<Value>,
}

/// A class of objects that come and go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dynamic {
    /// Which section.
    pub section: Section,
    /// Which names: a pattern as in policies.
    pub pattern: String,
}
