//! Where the lab keeps things: one state directory per machine, one cache of builds per user.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The one directory of the running lab. One per machine, so that two labs cannot meet.
const STATE: &str = "/var/lib/rabbitmq-migration-lab";
/// The lock that `up` and `down` hold, outside the directory that `down` removes.
const LOCK: &str = "/run/rabbitmq-migration-lab.lock";
/// The cache's name below the user's cache directory.
const CACHE: &str = "rabbitmq-migration-lab";

/// The state directory of the lab.
pub fn state() -> PathBuf {
    PathBuf::from(STATE)
}

/// The file whose lock guards the lab.
pub fn lock() -> &'static Path {
    Path::new(LOCK)
}

/// The cache of builds: `$XDG_CACHE_HOME/rabbitmq-migration-lab`, or the same below `~/.cache`.
pub fn cache() -> Result<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .map(|base| base.join(CACHE))
        .ok_or_else(|| Error::Refused { reason: "neither HOME nor XDG_CACHE_HOME is set".into() })
}

/// The administrator's kubeconfig; its server is reachable inside the lab's network only.
pub fn kubeconfig() -> PathBuf {
    state().join("kubeconfig")
}

/// The directory of keys, certificates and the components' kubeconfigs.
pub fn pki() -> PathBuf {
    state().join("pki")
}

/// The directory of all logs.
pub fn logs() -> PathBuf {
    state().join("log")
}

/// The directory of one node.
pub fn node(name: &str) -> PathBuf {
    state().join(name)
}

/// The socket of a node's containerd.
pub fn containerd_socket(name: &str) -> PathBuf {
    node(name).join("containerd.sock")
}

/// The directory whose folders are the disks of one zone.
pub fn volumes(zone: &str) -> PathBuf {
    state().join("volumes").join(zone)
}
