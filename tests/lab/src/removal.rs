//! Removes directories without ever leaving their file system.
//!
//! One recursive delete through a bind mount of /dev takes the machine's devices with it. So: mounts below are
//! undone first, a mount that stays stops everything, and each directory must be on the file system of the one
//! above it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::mount::{UnmountFlags, unmount};

use crate::error::{Attempt, Error, Result};
use crate::mounts;

/// Removes a directory with all that is in it; it need not exist.
pub fn remove_tree(root: &Path) -> Result<()> {
    let Some(device) = device_of(root)? else { return Ok(()) };
    unmount_below(root)?;
    remove(root, device)
}

/// Removes all that is in a directory, but not the directory.
pub fn empty(directory: &Path) -> Result<()> {
    let Some(device) = device_of(directory)? else { return Ok(()) };
    unmount_below(directory)?;
    remove_content(directory, device)
}

fn unmount_below(root: &Path) -> Result<()> {
    for point in mounts::below(root)? {
        unmount(&point, UnmountFlags::NOFOLLOW).attempt(|| format!("unmount {}", point.display()))?;
    }
    match mounts::below(root)?.first() {
        None => Ok(()),
        Some(point) => Err(Error::Refused {
            reason: format!(
                "{} is still mounted: nothing below {} is removed",
                point.display(),
                root.display()
            ),
        }),
    }
}

fn remove(path: &Path, device: u64) -> Result<()> {
    let found = fs::symlink_metadata(path).attempt(|| format!("look at {}", path.display()))?;
    if !found.is_dir() {
        return fs::remove_file(path).attempt(|| format!("remove {}", path.display()));
    }
    if found.dev() != device {
        let reason = format!("{} is on another file system: it is not removed", path.display());
        return Err(Error::Refused { reason });
    }
    remove_content(path, device)?;
    fs::remove_dir(path).attempt(|| format!("remove {}", path.display()))
}

fn remove_content(directory: &Path, device: u64) -> Result<()> {
    let attempt = || format!("list {}", directory.display());
    for entry in fs::read_dir(directory).attempt(attempt)? {
        remove(&entry.attempt(attempt)?.path(), device)?;
    }
    Ok(())
}

fn device_of(path: &Path) -> Result<Option<u64>> {
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(Some(found.dev())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Io { attempt: format!("look at {}", path.display()), source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_removed_and_what_it_points_at_stays() {
        let base = std::env::temp_dir().join(format!("lab-removal-{}", std::process::id()));
        let (inside, outside) = (base.join("inside"), base.join("outside"));
        fs::create_dir_all(inside.join("deep/er")).unwrap();
        fs::create_dir_all(&outside).unwrap();
        fs::write(outside.join("kept"), "x").unwrap();
        std::os::unix::fs::symlink(&outside, inside.join("deep/link")).unwrap();
        remove_tree(&inside).unwrap();
        assert!(!inside.exists() && outside.join("kept").exists());
        remove_tree(&base).unwrap();
        assert!(!base.exists());
    }
}
