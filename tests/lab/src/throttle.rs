//! Slows a pod's disk down, for real: the kernel limits its writes.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::cgroups::{self, Version};
use crate::error::{Attempt, Error, Result};
use crate::kubectl;
use crate::paths;
use crate::setup::Built;

/// Limits the writes per second of a pod to the disk that the lab is on; 0 removes the limit.
pub fn throttle(built: &Built, namespace: &str, pod: &str, writes: u64) -> Result<()> {
    let object = kubectl::get(built, &["pod", pod, "--namespace", namespace])?;
    let group = pod_group(&object)?;
    let device = disk_of(&paths::state())?;
    let (file, line) = match cgroups::version()? {
        Version::V1 => ("blkio.throttle.write_iops_device", format!("{device} {writes}")),
        Version::V2 if writes == 0 => ("io.max", format!("{device} wiops=max")),
        Version::V2 => ("io.max", format!("{device} wiops={writes}")),
    };
    // In version 1 a limit does not reach the groups below, where the containers are.
    for one in cgroups::subtree(&group) {
        let path = one.join(file);
        fs::write(&path, &line).attempt(|| format!("write {line:?} to {}", path.display()))?;
    }
    eprintln!("lab: {namespace}/{pod}: {} on device {device}", describe(writes));
    Ok(())
}

fn describe(writes: u64) -> String {
    if writes == 0 { "no limit of writes".into() } else { format!("{writes} writes per second") }
}

fn pod_group(pod: &Value) -> Result<PathBuf> {
    let malformed = |detail: &str| Error::Malformed { what: "the pod".into(), detail: detail.into() };
    let uid = pod["metadata"]["uid"].as_str().ok_or_else(|| malformed("it has no uid"))?;
    let node = pod["spec"]["nodeName"].as_str().ok_or_else(|| malformed("it is on no node"))?;
    let root = cgroups::block_group(node)?.join("kubepods");
    let candidates = ["", "burstable", "besteffort"].map(|class| root.join(class).join(format!("pod{uid}")));
    candidates
        .into_iter()
        .find(|path| path.is_dir())
        .ok_or_else(|| malformed("it has no control group: not running?"))
}

/// The disk under a path, as MAJOR:MINOR; limits are set on disks, not on partitions.
fn disk_of(path: &Path) -> Result<String> {
    let device = fs::metadata(path).attempt(|| format!("look at {}", path.display()))?.dev();
    let number = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    let block = PathBuf::from("/sys/dev/block").join(&number);
    if !block.exists() {
        let reason =
            format!("{} is on no block device ({number}): its writes cannot be limited", path.display());
        return Err(Error::Refused { reason });
    }
    if !block.join("partition").exists() {
        return Ok(number);
    }
    let disk = block.join("../dev");
    let text = fs::read_to_string(&disk).attempt(|| format!("read {}", disk.display()))?;
    Ok(text.trim().to_owned())
}
