//! Writes configuration files.

use std::fs;
use std::path::Path;

use crate::error::{Attempt, Result};

/// Writes a file unless it says the same already: kube-proxy ends when its configuration is written to.
pub fn put(path: &Path, text: &str) -> Result<()> {
    if fs::read(path).is_ok_and(|present| present == text.as_bytes()) {
        return Ok(());
    }
    fs::write(path, text).attempt(|| format!("write {}", path.display()))
}
