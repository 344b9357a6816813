//! A lock on a file that may be removed by its holder without letting two in.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::error::{Attempt, Result};

/// A held lock; it ends with this value or with the process.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// Takes the lock, waiting for its present holder; says so once when there is one.
    pub fn take(path: &Path) -> Result<Self> {
        loop {
            let file = open(path)?;
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                eprintln!("lab: waiting for another lab program that holds {}", path.display());
                flock(&file, FlockOperation::LockExclusive).attempt(|| format!("lock {}", path.display()))?;
            }
            // The holder before us may have removed the file: then this lock guards nothing.
            if is_still_at(&file, path)? {
                return Ok(Self { path: path.to_owned(), _file: file });
            }
        }
    }

    /// Removes the file while holding its lock.
    pub fn remove(self) -> Result<()> {
        std::fs::remove_file(&self.path).attempt(|| format!("remove {}", self.path.display()))
    }
}

fn open(path: &Path) -> Result<File> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .attempt(|| format!("open {}", path.display()))
}

fn is_still_at(file: &File, path: &Path) -> Result<bool> {
    let held = file.metadata().attempt(|| format!("look at {}", path.display()))?;
    Ok(std::fs::metadata(path).is_ok_and(|now| now.ino() == held.ino() && now.dev() == held.dev()))
}
