//! Tells what of the lab runs.

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::network::{self, Cable};
use crate::setup::Built;
use crate::topology::NODES;
use crate::{control_plane, kubectl, nodes, paths, space, up};

/// Prints what runs; fails when the lab is not all up, so that scripts can ask.
pub fn status(built: &Built) -> Result<()> {
    if space::anchor(space::LAB)?.is_none() {
        return Err(Error::Refused { reason: "the lab is down".into() });
    }
    println!("build: {}", up::made_of()?.unwrap_or_else(|| "unknown".into()));
    let mut dead = Vec::new();
    for daemon in control_plane::daemons(built).into_iter().chain(nodes::daemons(built)) {
        let running = daemon.is_running()?;
        println!("{}: {}", daemon.name, if running { "running" } else { "not running" });
        if !running {
            dead.push(daemon.name);
        }
    }
    for node in NODES {
        println!(
            "{}: {}",
            node.zone,
            if network::cable(node)? == Cable::Joined { "joined" } else { "cut off" }
        );
    }
    if !dead.is_empty() {
        return Err(Error::Refused {
            reason: format!("not running: {}; `lab up` starts them", dead.join(", ")),
        });
    }
    let ready = nodes::ready_nodes(&kubectl::get(built, &["nodes"])?);
    println!("ready nodes: {}", ready.join(", "));
    Ok(())
}

/// Where things are, for scripts.
pub fn paths_as_json(built: &Built) -> Result<Value> {
    Ok(json!({
        "kubeconfig": paths::kubeconfig(),
        "cache": paths::cache()?,
        "state": paths::state(),
        "logs": paths::logs(),
        "programs": built.kubernetes()?,
    }))
}
