//! A real Kubernetes with three zones on one machine, in namespaces and control groups of its own.
//!
//! For test programs: [`enter_network`] before they start a runtime, then [`kubeconfig_path`] and [`bin`].

pub mod base;
pub mod birth;
pub mod cgroups;
pub mod control_plane;
pub mod daemon;
pub mod down;
pub mod error;
pub mod files;
pub mod images;
pub mod kubectl;
pub mod load;
pub mod lock;
pub mod mounts;
pub mod network;
pub mod nodes;
pub mod oci;
pub mod paths;
pub mod pki;
pub mod prerequisites;
pub mod programs;
pub mod progress;
pub mod recipe;
pub mod removal;
pub mod seed;
pub mod setup;
pub mod signal;
pub mod space;
pub mod status;
pub mod tar;
pub mod throttle;
pub mod topology;
pub mod up;
pub mod volumes;

use std::path::PathBuf;

pub use error::{Error, Result};

/// Moves the calling thread into the network of the running lab, where the API server, pods and services are.
///
/// Only that thread: call it before a runtime or another thread starts, those started later inherit it.
/// Needs root. The view of files does not change.
pub fn enter_network() -> Result<()> {
    space::enter_network(space::LAB)
}

/// The administrator's kubeconfig; its server is reachable inside the lab's network only.
pub fn kubeconfig_path() -> PathBuf {
    paths::kubeconfig()
}

/// The path of a program of the lab: `kubectl`, `etcd`, `kube-apiserver`, ...
pub fn bin(name: &str) -> Result<PathBuf> {
    setup::built().map(|built| built.bin(name))
}
