//! What the machine must have before anything is built or started, and the packages that are installed.

use std::path::Path;
use std::process::Command;

use crate::cgroups;
use crate::error::{Attempt, Error, Result};
use crate::programs::{run, run_long};
use crate::progress::Step;
use crate::{paths, space};

/// Programs of Debian packages that the lab uses, each with its package.
const PACKAGES: [(&str, &str); 10] = [
    ("containerd", "containerd"),
    ("runc", "runc"),
    ("/usr/lib/cni/bridge", "containernetworking-plugins"),
    ("mmdebstrap", "mmdebstrap"),
    // On Ubuntu the brokers' Debian suites cannot be verified without it.
    ("/usr/share/keyrings/debian-archive-keyring.gpg", "debian-archive-keyring"),
    ("nft", "nftables"),
    ("iptables", "iptables"),
    ("ip", "iproute2"),
    ("conntrack", "conntrack"),
    ("/bin/busybox", "busybox-static"),
];
/// Room for the builds (about 4 GiB with Go's own caches) and the running lab (about 3 GiB).
const NEEDED_GIB: u64 = 8;

/// Checks what can only be reported, then installs missing packages.
pub fn ensure(need_go: NeedGo) -> Result<()> {
    let mut missing = kernel_and_rights();
    if need_go == NeedGo::Yes && find("go").is_none() {
        missing.push("no `go` in PATH: the lab builds Kubernetes from its Go modules".into());
    }
    if let Some(sentence) = disk()? {
        missing.push(sentence);
    }
    if !missing.is_empty() {
        return Err(Error::Prerequisites { missing });
    }
    install_packages()
}

/// Whether this run has to build Go programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NeedGo {
    /// It does.
    Yes,
    /// All are in the cache.
    No,
}

/// Fails unless the caller is root, with a sentence.
pub fn must_be_root() -> Result<()> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    Err(Error::Prerequisites { missing: vec!["root: namespaces, mounts and control groups need it".into()] })
}

fn kernel_and_rights() -> Vec<String> {
    let mut missing = Vec::new();
    if !rustix::process::geteuid().is_root() {
        missing.push("root: namespaces, mounts and control groups need it".into());
    }
    let filesystems = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let has_overlay = filesystems.lines().any(|line| line.split_whitespace().last() == Some("overlay"));
    if !has_overlay && run("load overlay", Command::new("modprobe").arg("overlay")).is_err() {
        missing.push("the file system overlay in the kernel".into());
    }
    if let Err(error) = cgroups::version() {
        missing.push(error.to_string());
    }
    missing
}

fn disk() -> Result<Option<String>> {
    let cache = paths::cache()?;
    let existing = cache.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    let room = rustix::fs::statvfs(existing).attempt(|| format!("measure {}", existing.display()))?;
    let gib = room.f_bavail.saturating_mul(room.f_frsize) >> 30;
    let sentence = format!("{NEEDED_GIB} GiB free at {}: {gib} GiB are", existing.display());
    Ok((gib < NEEDED_GIB).then_some(sentence))
}

fn install_packages() -> Result<()> {
    let missing: Vec<_> =
        PACKAGES.iter().filter(|(program, _)| find(program).is_none()).map(|(_, package)| *package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if find("apt-get").is_none() {
        let sentence = format!("packages {} and no apt-get to install them", missing.join(", "));
        return Err(Error::Prerequisites { missing: vec![sentence] });
    }
    let mut step = Step::start(format!("install {}", missing.join(" ")));
    let log = paths::cache()?.join("apt.log");
    let mut update = apt();
    run_long(&mut step, "update the list of packages", update.arg("update"), &log)?;
    let mut install = apt();
    // Recommended packages would start services of their own; policy-rc.d is not ours to write.
    install.args(["install", "--yes", "--no-install-recommends"]).args(&missing);
    run_long(&mut step, "install packages", &mut install, &log)?;
    step.done();
    Ok(())
}

fn apt() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").args(["-o", "DPkg::Lock::Timeout=300"]);
    command
}

/// Finds a program in PATH and in the system's own directories, or at its absolute path.
fn find(program: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    let directories = path.split(':').chain(space::PATH.split(':'));
    directories.map(|directory| Path::new(directory).join(program)).find(|candidate| candidate.is_file())
}
