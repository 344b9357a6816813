//! The long-running programs of the lab: each in a control group of its own, in a space, with a log.

use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::error::{Attempt, Error, Result};
use crate::{birth, cgroups, paths, space};

/// A program that runs as long as the lab does.
#[derive(Debug)]
pub struct Daemon {
    /// Its name: of its control group and its log.
    pub name: String,
    /// The space it runs in.
    pub space: String,
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
}

impl Daemon {
    /// Starts the program unless it runs; its readiness is for the caller to wait for.
    pub fn ensure(&self) -> Result<()> {
        if self.is_running()? {
            return Ok(());
        }
        let log = self.log();
        let attempt = || format!("open {}", log.display());
        let file = OpenOptions::new().create(true).append(true).open(&log).attempt(attempt)?;
        let copy = file.try_clone().attempt(attempt)?;
        let mut command = space::ourselves(&["born", &self.name, &self.space, "--"]);
        command.arg(&self.program).args(&self.arguments).stdin(Stdio::null()).stdout(file).stderr(copy);
        command.spawn().attempt(|| format!("start {}", self.name))?;
        Ok(())
    }

    /// Whether the program itself, not only what it started, is alive.
    pub fn is_running(&self) -> Result<bool> {
        let file = self.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(cgroups::members(&self.name)?.into_iter().any(|pid| space::runs(pid, &file)))
    }

    /// Its log.
    pub fn log(&self) -> PathBuf {
        paths::logs().join(format!("{}.log", self.name))
    }
}

/// Becomes a daemon: joins its control group before anything else, so that no child escapes it.
pub fn be_born(name: &str, space: &str, parent: i32, command: &[OsString]) -> Result<Infallible> {
    birth::be_of_the_lab(name, parent)?;
    space::enter(space)?;
    let (program, arguments) =
        command.split_first().ok_or_else(|| Error::Refused { reason: format!("no program for {name}") })?;
    let error = Command::new(program).args(arguments).env_clear().env("PATH", space::PATH).exec();
    Err(error).attempt(|| format!("start {}", program.display()))
}
