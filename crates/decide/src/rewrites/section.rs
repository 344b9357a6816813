//! The sections of a definitions file, and what identifies an object in each.

use serde::{Deserialize, Serialize};

/// A section of the definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Section {
    /// `users`
    Users,
    /// `vhosts`
    Vhosts,
    /// `permissions`
    Permissions,
    /// `topic_permissions`
    TopicPermissions,
    /// `parameters`, operator policies among them.
    Parameters,
    /// `global_parameters`
    GlobalParameters,
    /// `policies`
    Policies,
    /// `queues`
    Queues,
    /// `exchanges`
    Exchanges,
    /// `bindings`
    Bindings,
}

impl Section {
    /// All of them, in the order of a broker's export.
    pub const ALL: [Self; 10] = [
        Self::Users,
        Self::Vhosts,
        Self::Permissions,
        Self::TopicPermissions,
        Self::Parameters,
        Self::GlobalParameters,
        Self::Policies,
        Self::Queues,
        Self::Exchanges,
        Self::Bindings,
    ];

    /// Its key in the file.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Users => "users",
            Self::Vhosts => "vhosts",
            Self::Permissions => "permissions",
            Self::TopicPermissions => "topic_permissions",
            Self::Parameters => "parameters",
            Self::GlobalParameters => "global_parameters",
            Self::Policies => "policies",
            Self::Queues => "queues",
            Self::Exchanges => "exchanges",
            Self::Bindings => "bindings",
        }
    }

    /// Finds the section of a key.
    pub fn of_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|section| section.key() == key)
    }

    /// Says whether its objects live in a vhost.
    pub const fn is_in_vhost(self) -> bool {
        match self {
            Self::Users | Self::Vhosts | Self::GlobalParameters => false,
            Self::Permissions
            | Self::TopicPermissions
            | Self::Parameters
            | Self::Policies
            | Self::Queues
            | Self::Exchanges
            | Self::Bindings => true,
        }
    }

    /// One object of it, in words.
    pub const fn singular(self) -> &'static str {
        match self {
            Self::Users => "user",
            Self::Vhosts => "vhost",
            Self::Permissions => "permission",
            Self::TopicPermissions => "topic permission",
            Self::Parameters => "parameter",
            Self::GlobalParameters => "global parameter",
            Self::Policies => "policy",
            Self::Queues => "queue",
            Self::Exchanges => "exchange",
            Self::Bindings => "binding",
        }
    }
}

/// Names one object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectRef {
    /// Its section.
    pub section: Section,
    /// Its vhost, where it has one.
    pub vhost: Option<String>,
    /// Its name, or for a binding and a permission what it joins.
    pub name: String,
}

impl std::fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.section.singular(), self.name)?;
        self.vhost.as_ref().map_or(Ok(()), |vhost| write!(f, " in vhost {vhost}"))
    }
}
