//! The lab's own network: a bridge, a cable to each node, routes for pods. The machine's network is not touched.

use crate::error::Result;
use crate::programs::{run, run_with_input};
use crate::space::{LAB, ensure_anchor, inside};
use crate::topology::{CONTROL_ADDRESS, NODES, Node, SERVICE_RANGE};

/// The bridge in the lab's space.
const BRIDGE: &str = "fabric";

/// Makes the network inside standing anchors. Not for a network half made: that is taken down first.
pub fn make() -> Result<()> {
    let mut cables = Vec::new();
    for node in NODES {
        cables.push((node, ensure_anchor(node.name)?));
    }
    ip(LAB, "make the lab's bridge and cables", &lab_batch(&cables))?;
    for node in NODES {
        ip(node.name, &format!("make the network of {}", node.name), &node_batch(node))?;
        forward(node.name)?;
    }
    forward(LAB)?;
    // Last, since its presence says that the network is whole.
    ip(LAB, "route the services", &format!("route add {SERVICE_RANGE} dev {BRIDGE}\n"))
}

/// Whether the network is whole.
pub fn is_whole() -> Result<bool> {
    let routes = run("list the lab's routes", inside(LAB, "ip").args(["route", "show", SERVICE_RANGE]))?;
    Ok(!routes.trim().is_empty())
}

/// Cuts a node off, or joins it again.
pub fn set_cable(node: Node, state: Cable) -> Result<()> {
    let word = match state {
        Cable::Cut => "down",
        Cable::Joined => "up",
    };
    ip(LAB, &format!("set the cable of {} {word}", node.name), &format!("link set {} {word}\n", node.cable()))
}

/// The state of a node's cable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cable {
    /// No traffic.
    Cut,
    /// Traffic.
    Joined,
}

/// Tells the state of a node's cable.
pub fn cable(node: Node) -> Result<Cable> {
    let attempt = format!("look at the cable of {}", node.name);
    let text = run(&attempt, inside(LAB, "ip").args(["-o", "link", "show", &node.cable()]))?;
    let flags = text.split(['<', '>']).nth(1).unwrap_or_default();
    Ok(if flags.split(',').any(|flag| flag == "UP") { Cable::Joined } else { Cable::Cut })
}

fn ip(space: &str, attempt: &str, batch: &str) -> Result<()> {
    run_with_input(attempt, inside(space, "ip").args(["-batch", "-"]), batch).map(drop)
}

fn forward(space: &str) -> Result<()> {
    let setting = "net.ipv4.ip_forward";
    let shell = format!("echo 1 > /proc/sys/{}", setting.replace('.', "/"));
    run(&format!("set {setting} in {space}"), inside(space, "sh").args(["-c", &shell])).map(drop)
}

fn lab_batch(cables: &[(Node, i32)]) -> String {
    let bridge = format!(
        "link set lo up\nlink add {BRIDGE} type bridge\naddr add {CONTROL_ADDRESS}/24 dev {BRIDGE}\n\
         link set {BRIDGE} up\n"
    );
    let cables = cables.iter().map(|(node, anchor)| {
        let (cable, range, address) = (node.cable(), node.pod_range(), node.address());
        format!(
            "link add {cable} type veth peer name eth0 netns {anchor}\nlink set {cable} master {BRIDGE} up\n\
             route add {range} via {address}\n"
        )
    });
    std::iter::once(bridge).chain(cables).collect::<Vec<_>>().concat()
}

fn node_batch(node: Node) -> String {
    let own = format!(
        "link set lo up\naddr add {}/24 dev eth0\nlink set eth0 up\nroute add default via {CONTROL_ADDRESS}\n",
        node.address()
    );
    let others = NODES.iter().filter(|other| **other != node);
    let routes = others.map(|other| format!("route add {} via {}\n", other.pod_range(), other.address()));
    std::iter::once(own).chain(routes).collect::<Vec<_>>().concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_routes_to_the_pods_of_the_others_only() {
        let batch = node_batch(NODES[0]);
        assert!(!batch.contains("10.78.1.0/24"));
        assert!(batch.contains("route add 10.78.2.0/24 via 10.77.0.12\n"));
        assert!(batch.contains("route add 10.78.3.0/24 via 10.77.0.13\n"));
    }

    #[test]
    fn each_cable_ends_in_its_nodes_namespace() {
        let batch = lab_batch(&[(NODES[1], 4711)]);
        assert!(batch.contains("link add cable-2 type veth peer name eth0 netns 4711\n"));
    }
}
