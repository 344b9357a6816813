//! The fixed shape of the lab: three zones with one node each, and their addresses.

use crate::error::{Error, Result};

/// The address of the API server and of the cluster's DNS, on the bridge in the lab's network namespace.
pub const CONTROL_ADDRESS: &str = "10.77.0.1";
/// All pods.
pub const POD_RANGE: &str = "10.78.0.0/16";
/// All services.
pub const SERVICE_RANGE: &str = "10.79.0.0/16";
/// The service of the API server: the first address of the service range.
pub const API_SERVICE_ADDRESS: &str = "10.79.0.1";
/// The URL of the API server, reachable inside the lab's network only.
pub const API_URL: &str = "https://10.77.0.1:6443";

/// A Kubernetes node of the lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// Its name in Kubernetes.
    pub name: &'static str,
    /// Its zone.
    pub zone: &'static str,
    /// Its number, from 1: the last byte of addresses and the third of its pod range.
    pub number: u8,
}

/// The three nodes.
pub const NODES: [Node; 3] = [
    Node { name: "node-a", zone: "lab-a", number: 1 },
    Node { name: "node-b", zone: "lab-b", number: 2 },
    Node { name: "node-c", zone: "lab-c", number: 3 },
];

impl Node {
    /// Its address on the bridge.
    pub fn address(self) -> String {
        format!("10.77.0.1{}", self.number)
    }

    /// The range its pods get addresses from.
    pub fn pod_range(self) -> String {
        format!("10.78.{}.0/24", self.number)
    }

    /// The bridge's end of its cable.
    pub fn cable(self) -> String {
        format!("cable-{}", self.number)
    }
}

/// Finds a node by its name.
pub fn node(name: &str) -> Result<Node> {
    find(name, |node| node.name)
}

/// Finds the node of a zone.
pub fn node_of_zone(zone: &str) -> Result<Node> {
    find(zone, |node| node.zone)
}

fn find(wanted: &str, key: fn(&Node) -> &'static str) -> Result<Node> {
    NODES.into_iter().find(|node| key(node) == wanted).ok_or_else(|| {
        let known: Vec<_> = NODES.iter().map(key).collect();
        Error::Refused { reason: format!("no {wanted} in the lab, only {}", known.join(", ")) }
    })
}
