//! Puts images into the nodes' containerds.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::paths;
use crate::programs::run;
use crate::topology::{NODES, Node};

/// Puts images into a node unless images of these names are there.
pub fn ensure(node: Node, images: &[(String, PathBuf)]) -> Result<()> {
    let socket = paths::containerd_socket(node.name);
    let attempt = format!("list the images of {}", node.name);
    let present = run(&attempt, ctr(&socket).args(["images", "list", "--quiet"]))?;
    let missing = images.iter().filter(|(name, _)| !present.lines().any(|line| line == name));
    missing.into_iter().try_for_each(|(_, file)| import(&socket, file))
}

/// Puts one image into all nodes under a name, in place of what had that name.
pub fn load(name: &str, file: &Path) -> Result<()> {
    let own_name = name_in(file)?;
    each_node(|node| {
        let socket = paths::containerd_socket(node.name);
        import(&socket, file)?;
        if own_name == name {
            return Ok(());
        }
        let attempt = format!("name the image {name} in {}", node.name);
        run(&attempt, ctr(&socket).args(["images", "tag", "--force", &own_name, name])).map(drop)
    })
}

/// Does the same on all nodes at once; the first failure is returned when all have ended.
pub fn each_node(work: impl Fn(Node) -> Result<()> + Sync) -> Result<()> {
    let work = &work;
    std::thread::scope(|scope| {
        let running: Vec<_> = NODES.map(|node| scope.spawn(move || work(node))).into_iter().collect();
        let results: Vec<_> = running.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        results.into_iter().try_for_each(|result| {
            let lost =
                || Error::Program { attempt: "work on a node".into(), detail: "the thread ended".into() };
            result.map_err(|_| lost())?
        })
    })
}

/// The client of a containerd, in the namespace that kubelet uses.
pub fn ctr(socket: &Path) -> Command {
    let mut command = Command::new("ctr");
    command.arg("--address").arg(socket).args(["--namespace", "k8s.io"]);
    command
}

/// Puts an image into a containerd.
pub fn import(socket: &Path, file: &Path) -> Result<()> {
    let attempt = format!("put {} into {}", file.display(), socket.display());
    run(&attempt, ctr(socket).args(["images", "import"]).arg(file)).map(drop)
}

/// The name that an archive gives its image.
fn name_in(file: &Path) -> Result<String> {
    let what = format!("the index of {}", file.display());
    let list = run(&format!("list {}", file.display()), Command::new("tar").arg("-tf").arg(file))?;
    let member =
        list.lines().find(|line| line.trim_start_matches("./") == "index.json").unwrap_or("index.json");
    let text = run(&format!("read {what}"), Command::new("tar").arg("-xOf").arg(file).arg(member))?;
    let malformed = |detail: String| Error::Malformed { what: what.clone(), detail };
    let index: Value = serde_json::from_str(&text).map_err(|error| malformed(error.to_string()))?;
    let name = index["manifests"][0]["annotations"]["io.containerd.image.name"].as_str();
    name.map(str::to_owned).ok_or_else(|| malformed("no io.containerd.image.name".into()))
}
