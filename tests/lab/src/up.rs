//! Brings the lab up, or what is missing of it.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::cgroups::{self, Version};
use crate::error::{Attempt, Error, Result};
use crate::lock::Lock;
use crate::progress::Step;
use crate::setup::Built;
use crate::topology::NODES;
use crate::{base, control_plane, down, load, network, nodes, paths, pki, setup, space, volumes};

/// Brings the lab up: nothing to do when it is, repairs when half of it is.
pub fn up() -> Result<()> {
    let built = setup::ensure()?;
    let lock = Lock::take(paths::lock())?;
    refuse_a_stranger(&built)?;
    let whole = Step::start("bring the lab up");
    foundation(&built)?;
    pki::ensure()?;
    control_plane::start_api(&built)?;
    start_nodes(&built)?;
    base::apply(&built)?;
    volumes::ensure(&built)?;
    let step = Step::start("wait for nodes and DNS");
    nodes::wait_until_ready(&built)?;
    control_plane::wait_for_dns()?;
    step.done();
    drop(lock);
    whole.done();
    advise();
    Ok(())
}

/// A lab of another recipe is not touched: it may be in use.
fn refuse_a_stranger(built: &Built) -> Result<()> {
    let Some(made) = made_of()? else { return Ok(()) };
    let running = space::anchor(space::LAB)?.is_some();
    if made == built.fingerprint() || !running {
        return Ok(());
    }
    Err(Error::Refused {
        reason: format!(
            "a lab of another version (build {made}, ours is {}) runs on this machine, and there is one per \
             machine: use it from its own clone, or run `lab down` first",
            built.fingerprint()
        ),
    })
}

/// The build that the lab in the state directory was made of.
pub fn made_of() -> Result<Option<String>> {
    let path = marker();
    let Ok(text) = fs::read_to_string(&path) else { return Ok(None) };
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| Error::Malformed { what: path.display().to_string(), detail: error.to_string() })?;
    Ok(value["build"].as_str().map(str::to_owned))
}

fn marker() -> std::path::PathBuf {
    paths::state().join("lab.json")
}

/// Namespaces and network: all of it stands, or all that is there is removed and made anew.
fn foundation(built: &Built) -> Result<()> {
    if space::anchor(space::LAB)?.is_some()
        && made_of()?.is_some()
        && all_anchors_stand()?
        && network::is_whole()?
    {
        return Ok(());
    }
    down::clear()?;
    let state = paths::state();
    let attempt = || format!("make {}", state.display());
    fs::create_dir_all(paths::logs()).attempt(attempt)?;
    let made: Vec<_> = space::HIDDEN.into_iter().filter(|path| !Path::new(path).exists()).collect();
    let text = json!({ "build": built.fingerprint(), "made_directories": made }).to_string();
    fs::write(marker(), text).attempt(|| format!("write {}", marker().display()))?;
    for path in made {
        fs::create_dir_all(path).attempt(|| format!("make {path}"))?;
    }
    space::ensure_anchor(space::LAB)?;
    network::make()
}

fn all_anchors_stand() -> Result<bool> {
    for node in NODES {
        if space::anchor(node.name)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The nodes' containerds take their images while the API server starts.
fn start_nodes(built: &Built) -> Result<()> {
    let step = Step::start("start the nodes' containerds and put images into them");
    let images = load::each_node(|node| {
        nodes::start_containerd(built, node)?;
        load::ensure(node, &built.images)
    });
    images?;
    step.done();
    let step = Step::start("wait for the API server");
    control_plane::wait_for_api(built)?;
    control_plane::start_rest(built)?;
    for node in NODES {
        nodes::start_kubelet(built, node)?;
    }
    nodes::start_proxies(built)?;
    step.done();
    Ok(())
}

fn advise() {
    if cgroups::version().is_ok_and(|version| version == Version::V2) {
        eprintln!(
            "lab: this machine has control groups version 2: the lab was written for it but only tested on 1"
        );
    }
    eprintln!(
        "lab: up. Try `lab kubectl get nodes`; `lab paths` tells where things are; `lab down` removes it"
    );
}
