//! Keeps what we start from outliving us by accident: until it is where `down` finds it, it dies with us.

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use crate::cgroups;
use crate::error::{Attempt, Error, Result};

/// From now on the calling process ends when the thread that started it does.
pub fn die_with(parent: i32) -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL)).attempt(|| "tie a process to its parent".into())?;
    // The parent may have ended before the tie.
    if getppid().map(Pid::as_raw_pid) == Some(parent) {
        return Ok(());
    }
    Err(Error::Refused { reason: "the program that started this one is gone".into() })
}

/// Moves the calling process into its control group; only then may it outlive its parent.
pub fn be_of_the_lab(name: &str, parent: i32) -> Result<()> {
    die_with(parent)?;
    cgroups::join(name)?;
    rustix::process::setsid().attempt(|| "leave the session".into())?;
    set_parent_process_death_signal(None).attempt(|| "untie a process from its parent".into())
}
