//! Names of all that we create, derived from the migration's uid, so that cleaning needs no memory.

/// Prefix of every user, vhost and queue of ours on a broker.
pub const PREFIX: &str = "rmqm.";

/// The field manager of everything that the operator writes in Kubernetes.
pub const MANAGER: &str = "rabbitmq-migration-operator";

/// The names that belong to one migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    uid8: String,
    migration: String,
}

impl Names {
    /// Names for the migration `name` with `uid`. Two migrations never share one: the uid's first eight
    /// hexadecimal digits are in every broker name.
    pub fn new(name: &str, uid: &str) -> Self {
        let uid8 = uid.chars().filter(char::is_ascii_hexdigit).take(8).collect();
        Self { uid8, migration: name.to_owned() }
    }

    /// What every broker object of this migration begins with.
    pub fn prefix(&self) -> String {
        format!("{PREFIX}{}.", self.uid8)
    }

    /// What the operator's users on the brokers begin with; the epoch follows.
    pub fn epoch_prefix(&self) -> String {
        format!("{}operator.", self.prefix())
    }

    /// The vhost of the probe, on both sides.
    pub fn probe_vhost(&self) -> String {
        format!("{}probe", self.prefix())
    }

    /// The user of the probe.
    pub fn probe_user(&self) -> String {
        format!("{}probe", self.prefix())
    }

    /// The vhost of the canary, on both sides.
    pub fn canary_vhost(&self) -> String {
        format!("{}canary", self.prefix())
    }

    /// The user of the canary: fenced and moved like everybody else.
    pub fn canary_user(&self) -> String {
        format!("{}canary", self.prefix())
    }

    /// The user on which the fence is rehearsed.
    pub fn rehearsal_user(&self) -> String {
        format!("{}rehearsal", self.prefix())
    }

    /// Green's StatefulSet, where we make it.
    pub fn green(&self) -> String {
        format!("{}-green", self.migration)
    }

    /// The Secret that holds the SwitchRecord.
    pub fn record(&self) -> String {
        format!("{}-switch-record-{}", self.migration, self.uid8)
    }

    /// The ConfigMap that holds the plan.
    pub fn plan(&self) -> String {
        format!("{}-plan-{}", self.migration, self.uid8)
    }

    /// The ConfigMap that holds the gate's evidence.
    pub fn evidence(&self) -> String {
        format!("{}-evidence-{}", self.migration, self.uid8)
    }

    /// True for a broker object that some migration's operator made.
    pub fn is_ours(name: &str) -> bool {
        name.starts_with(PREFIX)
    }
}
