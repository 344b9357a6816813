//! The namespaces of the lab and how a process gets into them.
//!
//! One mount namespace holds every mount of the lab, so the machine's own mount table never changes and the
//! mounts end with the last process. Each network namespace is held open by one idle process, its anchor,
//! found by its control group: no pid is stored, no namespace is bound to a file.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use crate::error::{Attempt, Error, Result};
use crate::programs::last_words_of;
use crate::progress::{Look, wait_until};
use crate::{birth, cgroups, paths};

/// The name of the space of the control plane and the test clients; the others bear their node's name.
pub const LAB: &str = "lab";
/// Directories that Kubernetes and containerd write to wherever they are told to live: in the lab's mount
/// namespace each is an empty one of its own.
pub const HIDDEN: [&str; 4] = ["/var/lib/kubelet", "/run/containerd", "/var/log/containers", "/var/lib/cni"];
/// Settings of the whole machine that kubelet would change unless they are as it wants: in the lab's mount
/// namespace they look so.
pub const PRETENDED: [(&str, &str); 6] = [
    ("/proc/sys/vm/overcommit_memory", "1"),
    ("/proc/sys/vm/panic_on_oom", "0"),
    ("/proc/sys/kernel/panic", "10"),
    ("/proc/sys/kernel/panic_on_oops", "1"),
    ("/proc/sys/kernel/keys/root_maxkeys", "1000000"),
    ("/proc/sys/kernel/keys/root_maxbytes", "25000000"),
];
/// What an anchor runs once it stands.
const IDLE: [&str; 2] = ["sleep", "infinity"];
/// An anchor makes a namespace and a few mounts.
const ANCHOR_LIMIT: Duration = Duration::from_secs(10);

/// The anchor of a space: the process that holds its namespaces open, if it stands.
pub fn anchor(space: &str) -> Result<Option<i32>> {
    let members = cgroups::members(&anchor_name(space))?;
    Ok(members.into_iter().find(|pid| runs(*pid, IDLE[0])))
}

/// Whether a process runs the program of this name.
pub fn runs(pid: i32, program: &str) -> bool {
    // The kernel keeps 15 bytes of a name.
    let kept = program.get(..15).unwrap_or(program);
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim_end() == kept)
}

/// Makes the anchor of a space unless it stands; the lab's own must stand before the nodes'.
pub fn ensure_anchor(space: &str) -> Result<i32> {
    if let Some(pid) = anchor(space)? {
        return Ok(pid);
    }
    let mut command = ourselves(&["anchor", space]);
    // Not our own standard error: a caller that reads it would wait for the anchor to end.
    let log = paths::logs().join(format!("{}.log", anchor_name(space)));
    let file = File::create(&log).attempt(|| format!("create {}", log.display()))?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
    let mut child = command.spawn().attempt(|| format!("start the anchor of {space}"))?;
    wait_until(&format!("see the anchor of {space} stand"), ANCHOR_LIMIT, || {
        if let Some(pid) = anchor(space)? {
            return Ok(Look::Ready(pid));
        }
        match child.try_wait().attempt(|| format!("look after the anchor of {space}"))? {
            Some(status) => {
                let detail = format!("{status}, {}", last_words_of(&log));
                Err(Error::Program { attempt: format!("make space {space}"), detail })
            }
            None => Ok(Look::NotYet("it is not there yet".into())),
        }
    })
}

/// Becomes the anchor of a space: never returns unless it fails.
pub fn become_anchor(space: &str, parent: i32) -> Result<std::convert::Infallible> {
    birth::be_of_the_lab(&anchor_name(space), parent)?;
    if space == LAB {
        unshare(UnshareFlags::NEWNET | UnshareFlags::NEWNS)?;
        arrange_mounts()?;
    } else {
        enter(LAB)?;
        unshare(UnshareFlags::NEWNET)?;
    }
    let error = Command::new(IDLE[0]).args(&IDLE[1..]).env_clear().env("PATH", PATH).exec();
    Err(error).attempt(|| format!("start {}", IDLE[0]))
}

/// Moves the calling process into the network and the mounts of a space. The process must have one thread.
pub fn enter(space: &str) -> Result<()> {
    let pid = standing_anchor(space)?;
    move_into(pid, "mnt", LinkNameSpaceType::Mount)?;
    move_into(pid, "net", LinkNameSpaceType::Network)?;
    std::env::set_current_dir("/").attempt(|| "go to the root directory".into())
}

/// Moves the calling thread into the network of a space.
pub fn enter_network(space: &str) -> Result<()> {
    move_into(standing_anchor(space)?, "net", LinkNameSpaceType::Network)
}

/// A command that runs a program inside a space, through this program.
pub fn inside(space: &str, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = ourselves(&["enter", space, "--"]);
    command.arg(program);
    command
}

/// This very program with a hidden subcommand, which is told who started it.
pub fn ourselves(arguments: &[&str]) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.env(PARENT, std::process::id().to_string()).args(arguments);
    command
}

/// The environment variable that tells a hidden subcommand who started it.
pub const PARENT: &str = "LAB_PARENT";
/// Where programs are found, whatever the caller's own PATH is.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

fn anchor_name(space: &str) -> String {
    format!("anchor-{space}")
}

fn standing_anchor(space: &str) -> Result<i32> {
    anchor(space)?
        .ok_or_else(|| Error::Refused { reason: format!("space {space} is not up: run `lab up` first") })
}

fn move_into(pid: i32, kind: &str, expected: LinkNameSpaceType) -> Result<()> {
    let link = format!("/proc/{pid}/ns/{kind}");
    let file = File::open(&link).attempt(|| format!("open {link}"))?;
    move_into_link_name_space(file.as_fd(), Some(expected)).attempt(|| format!("enter {link}"))
}

#[expect(deprecated, reason = "sound for mounts and network; unsafe only for the table of open files")]
fn unshare(flags: UnshareFlags) -> Result<()> {
    rustix::thread::unshare(flags).attempt(|| "make namespaces".into())
}

/// Cuts the new mount table off the machine's, then lets kubelet, containerd and pods share it.
fn arrange_mounts() -> Result<()> {
    let all = MountPropagationFlags::REC;
    mount_change("/", all | MountPropagationFlags::PRIVATE).attempt(|| "make mounts private".into())?;
    mount_change("/", all | MountPropagationFlags::SHARED).attempt(|| "share mounts in the lab".into())?;
    for path in HIDDEN.iter().filter(|path| Path::new(path).is_dir()) {
        mount("tmpfs", *path, "tmpfs", MountFlags::empty(), c"mode=0755")
            .attempt(|| format!("mount an empty {path}"))?;
    }
    let pretended = paths::state().join("pretended");
    fs::create_dir_all(&pretended).attempt(|| format!("make {}", pretended.display()))?;
    for (setting, value) in PRETENDED.into_iter().filter(|(setting, _)| Path::new(setting).exists()) {
        let file = pretended.join(setting.replace('/', "_"));
        fs::write(&file, format!("{value}\n")).attempt(|| format!("write {}", file.display()))?;
        mount_bind(&file, setting).attempt(|| format!("mount {} at {setting}", file.display()))?;
    }
    Ok(())
}
