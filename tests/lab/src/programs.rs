//! Runs other programs and reports their last words when they fail.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::error::{Attempt, Error, Result};
use crate::progress::Step;

/// How many bytes of a failed program's output are quoted.
const LAST_WORDS: usize = 1500;
/// How often a long-running program is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Runs a program to its end and returns its standard output; a failure quotes its standard error.
pub fn run(attempt: &str, command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().attempt(|| start_attempt(attempt, command))?;
    succeeded(attempt, &output)
}

/// Runs a program that reads the given text, and returns its standard output.
pub fn run_with_input(attempt: &str, command: &mut Command, input: &str) -> Result<String> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().attempt(|| start_attempt(attempt, command))?;
    if let Some(mut pipe) = child.stdin.take() {
        // A program that ends early closes its input; its status tells more than the broken pipe.
        let _ = pipe.write_all(input.as_bytes());
    }
    succeeded(attempt, &child.wait_with_output().attempt(|| attempt.to_owned())?)
}

/// Runs a program for minutes: its output goes to a file, the step's heartbeat goes on.
pub fn run_long(step: &mut Step, attempt: &str, command: &mut Command, log: &Path) -> Result<()> {
    let file = File::create(log).attempt(|| format!("create {}", log.display()))?;
    let copy = file.try_clone().attempt(|| format!("share {}", log.display()))?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(copy)
        .spawn()
        .attempt(|| start_attempt(attempt, command))?;
    loop {
        match child.try_wait().attempt(|| attempt.to_owned())? {
            Some(status) if status.success() => return Ok(()),
            Some(_) => {
                let detail = format!("{} (all of it: {})", last_words_of(log), log.display());
                return Err(Error::Program { attempt: attempt.to_owned(), detail });
            }
            None => {
                step.beat();
                std::thread::sleep(LOOK);
            }
        }
    }
}

/// A program that ends with us, and all it started with it; its mounts are its own. However a build is cut off,
/// nothing of it goes on writing or stays mounted.
pub fn contained(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "unshare", "--mount", "--propagation", "private"]);
    command.args(["--pid", "--fork", "--kill-child", "--mount-proc", "--", program]);
    command
}

/// The end of a file, for an error message.
pub fn last_words_of(path: &Path) -> String {
    std::fs::read(path).map_or_else(|error| error.to_string(), |bytes| last_words(&bytes))
}

fn start_attempt(attempt: &str, command: &Command) -> String {
    format!("{attempt}: start {}", command.get_program().display())
}

fn succeeded(attempt: &str, output: &Output) -> Result<String> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let words = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
    let detail = format!("{}, {}", output.status, last_words(words));
    Err(Error::Program { attempt: attempt.to_owned(), detail })
}

fn last_words(bytes: &[u8]) -> String {
    let start = bytes.len().saturating_sub(LAST_WORDS);
    String::from_utf8_lossy(bytes.get(start..).unwrap_or_default()).trim().to_owned()
}
