//! The lab's control groups: every process of the lab is born in one, and `down` empties them.
//!
//! Version 1 (one tree per controller) is tested; version 2 is written by the book and not tested.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Attempt, Error, Result};

/// Where control groups are mounted.
const MOUNT: &str = "/sys/fs/cgroup";
/// The lab's group in each tree.
const GROUP: &str = "rmqlab";
/// Below it: one group per process that we start ourselves; pods have theirs below the node's name.
const SYSTEM: &str = "system";
/// The controllers that kubelet needs in the lab's group of a version 2 tree.
const DELEGATED: &str = "+cpuset +cpu +io +memory +pids";

/// How this machine arranges control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// One tree per controller.
    V1,
    /// One tree for all.
    V2,
}

/// Tells the version, by what is mounted.
pub fn version() -> Result<Version> {
    if Path::new(MOUNT).join("cgroup.controllers").exists() {
        return Ok(Version::V2);
    }
    if Path::new(MOUNT).join("memory").is_dir() && Path::new(MOUNT).join("cpu").is_dir() {
        return Ok(Version::V1);
    }
    let detail = format!("neither version 1 nor version 2 is mounted at {MOUNT}");
    Err(Error::Malformed { what: "control groups".into(), detail })
}

/// The group kubelet puts a node's pods under, as kubelet names it.
pub fn kubelet_root(node: &str) -> String {
    format!("/{GROUP}/{node}")
}

/// The lab's group in each tree where it exists.
pub fn lab_groups() -> Result<Vec<PathBuf>> {
    Ok(trees()?.into_iter().map(|tree| tree.join(GROUP)).filter(|group| group.is_dir()).collect())
}

/// Makes the group of pods of a node in every tree.
pub fn prepare_node(node: &str) -> Result<()> {
    for tree in trees()? {
        make(&tree, &[GROUP, node])?;
    }
    Ok(())
}

/// Moves the calling process into the group of the named process, in every tree.
pub fn join(process: &str) -> Result<()> {
    for tree in trees()? {
        let group = make(&tree, &[GROUP, SYSTEM, process])?;
        write(&group.join("cgroup.procs"), "0")?;
    }
    Ok(())
}

/// The processes in the group of the named process; none when there is no such group.
pub fn members(process: &str) -> Result<Vec<i32>> {
    let tree = tracking_tree()?;
    Ok(processes_in(&tree.join(GROUP).join(SYSTEM).join(process)))
}

/// All groups at and below a group, deepest first.
pub fn subtree(group: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let entries = fs::read_dir(group).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        all.extend(subtree(&entry.path()));
    }
    all.push(group.to_owned());
    all
}

/// The processes in exactly this group.
pub fn processes_in(group: &Path) -> Vec<i32> {
    let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.trim().parse().ok()).collect()
}

/// Whether a process is in the lab's group, in any tree.
pub fn holds(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/cgroup")).is_ok_and(|text| names_lab(&text))
}

/// The group of a pod that throttles its disk: the tree of block devices, or the only tree.
pub fn block_group(node: &str) -> Result<PathBuf> {
    let tree = match version()? {
        Version::V1 => Path::new(MOUNT).join("blkio"),
        Version::V2 => PathBuf::from(MOUNT),
    };
    Ok(tree.join(GROUP).join(node))
}

fn names_lab(cgroup_file: &str) -> bool {
    cgroup_file.lines().filter_map(|line| line.splitn(3, ':').nth(2)).any(|path| {
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        parts.next() == Some(GROUP)
    })
}

/// The roots of all trees; in version 1 the controllers' links (cpu -> cpu,cpuacct) count once.
fn trees() -> Result<Vec<PathBuf>> {
    if version()? == Version::V2 {
        return Ok(vec![PathBuf::from(MOUNT)]);
    }
    let entries = fs::read_dir(MOUNT).attempt(|| format!("list {MOUNT}"))?.flatten();
    let mut trees: Vec<_> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .filter(|path| path.join("cgroup.procs").exists())
        .collect();
    trees.sort();
    Ok(trees)
}

/// The tree that we look up our own processes in: one that nothing moves them out of.
fn tracking_tree() -> Result<PathBuf> {
    let all = trees()?;
    let named = |name: &str| all.iter().find(|tree| tree.ends_with(name)).cloned();
    let found = named("unified").or_else(|| named("systemd")).or_else(|| named("freezer"));
    Ok(found.unwrap_or_else(|| PathBuf::from(MOUNT)))
}

fn make(tree: &Path, below: &[&str]) -> Result<PathBuf> {
    let mut group = tree.to_owned();
    for name in below {
        prepare_parent(&group)?;
        let parent = group.clone();
        group.push(name);
        if !group.is_dir() {
            fs::create_dir(&group).or_else(already_there).attempt(|| format!("make {}", group.display()))?;
        }
        inherit_cpuset(&parent, &group)?;
    }
    Ok(group)
}

fn already_there(error: std::io::Error) -> std::io::Result<()> {
    if error.kind() == std::io::ErrorKind::AlreadyExists { Ok(()) } else { Err(error) }
}

/// Version 2 only: a group may use the controllers that its parent hands down.
fn prepare_parent(group: &Path) -> Result<()> {
    let control = group.join("cgroup.subtree_control");
    if version()? == Version::V1 || group.ends_with(SYSTEM) {
        return Ok(());
    }
    write(&control, DELEGATED)
}

/// Version 1 only: a new cpuset group is empty and takes no process until it has its parent's values.
fn inherit_cpuset(parent: &Path, group: &Path) -> Result<()> {
    for file in ["cpuset.cpus", "cpuset.mems"] {
        let own = group.join(file);
        if version()? == Version::V2 || !own.exists() {
            continue;
        }
        if fs::read_to_string(&own).is_ok_and(|text| text.trim().is_empty()) {
            let from = parent.join(file);
            let value = fs::read_to_string(&from).attempt(|| format!("read {}", from.display()))?;
            write(&own, value.trim())?;
        }
    }
    Ok(())
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).attempt(|| format!("write {text:?} to {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_below_the_labs_group_name_the_lab() {
        assert!(names_lab("9:name=systemd:/\n5:devices:/rmqlab/node-a/kubepods/pod1\n"));
        assert!(names_lab("0::/rmqlab\n"));
        assert!(!names_lab("0::/rmqlab2/system\n5:devices:/other/rmqlab\n"));
    }
}
