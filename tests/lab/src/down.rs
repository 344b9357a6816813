//! Takes the lab down, whatever is left of it: processes, then files, then control groups.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::Value;

use crate::error::{Attempt, Error, Result};
use crate::lock::Lock;
use crate::progress::{Look, Step, wait_until};
use crate::{cgroups, paths, removal, space};

/// A killed process ends at once unless it waits for a disk.
const KILL_LIMIT: Duration = Duration::from_mins(1);
/// The kernel empties a control group a moment after its last process ended.
const GROUP_LIMIT: Duration = Duration::from_secs(10);

/// Takes the lab down and keeps the cache of builds.
pub fn down() -> Result<()> {
    let lock = Lock::take(paths::lock())?;
    let step = Step::start("take the lab down");
    clear()?;
    step.done();
    lock.remove()
}

/// Removes all of a lab, under the caller's lock.
pub fn clear() -> Result<()> {
    kill_all()?;
    // With the last process went the lab's mount namespace and network namespaces.
    let made = made_directories();
    removal::remove_tree(&paths::state())?;
    for path in made {
        // Only if empty: what others have put there since is theirs.
        let _ = fs::remove_dir(path);
    }
    remove_groups()
}

/// Kills all processes and waits until each has ended: a group is empty a moment before its last process has
/// let go of mounts and namespaces.
fn kill_all() -> Result<()> {
    let mut ending = Vec::new();
    wait_until("see the lab's processes end", KILL_LIMIT, || {
        let processes = processes()?;
        for number in &processes {
            ending.extend(kill(*number)?);
        }
        if processes.is_empty() {
            return Ok(Look::Ready(()));
        }
        Ok(Look::NotYet(format!("left are {processes:?}")))
    })?;
    let limit = Timespec { tv_sec: 10, tv_nsec: 0 };
    for handle in ending {
        poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&limit))
            .attempt(|| "wait for a killed process".into())?;
    }
    Ok(())
}

fn processes() -> Result<Vec<i32>> {
    let groups = cgroups::lab_groups()?;
    let all = groups.iter().flat_map(|group| cgroups::subtree(group));
    let mut processes: Vec<_> = all.flat_map(|group| cgroups::processes_in(&group)).collect();
    processes.sort_unstable();
    processes.dedup();
    Ok(processes)
}

/// Kills a process that is in the lab's group: the handle is taken first, so a number used anew is not hit.
fn kill(number: i32) -> Result<Option<OwnedFd>> {
    let attempt = || format!("kill process {number} of the lab");
    let Some(pid) = Pid::from_raw(number) else { return Ok(None) };
    let handle = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => handle,
        Err(Errno::SRCH) => return Ok(None),
        Err(error) => return Err(error).attempt(attempt),
    };
    if !cgroups::holds(number) {
        return Ok(None);
    }
    match pidfd_send_signal(&handle, Signal::KILL) {
        Ok(()) | Err(Errno::SRCH) => Ok(Some(handle)),
        Err(error) => Err(error).attempt(attempt),
    }
}

fn made_directories() -> Vec<String> {
    let text = fs::read_to_string(paths::state().join("lab.json")).unwrap_or_default();
    let value: Value = serde_json::from_str(&text).unwrap_or_default();
    let made = value["made_directories"].as_array().into_iter().flatten();
    made.filter_map(|path| path.as_str())
        .filter(|path| space::HIDDEN.contains(path))
        .map(str::to_owned)
        .collect()
}

fn remove_groups() -> Result<()> {
    for group in cgroups::lab_groups()? {
        for one in cgroups::subtree(&group) {
            remove_group(&one)?;
        }
    }
    Ok(())
}

fn remove_group(group: &Path) -> Result<()> {
    wait_until(&format!("remove {}", group.display()), GROUP_LIMIT, || match fs::remove_dir(group) {
        Ok(()) => Ok(Look::Ready(())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Look::Ready(())),
        Err(error) if error.raw_os_error() == Some(Errno::BUSY.raw_os_error()) => {
            Ok(Look::NotYet(error.to_string()))
        }
        Err(source) => Err(Error::Io { attempt: format!("remove {}", group.display()), source }),
    })
}
