//! Talks to the lab's API server, as its administrator.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::Value;

use crate::error::{Attempt, Error, Result};
use crate::programs::{run, run_with_input};
use crate::setup::Built;
use crate::space::{LAB, enter_network, inside};
use crate::{paths, space};

/// kubectl inside the lab's space, as the administrator.
pub fn command(built: &Built) -> Result<Command> {
    let mut command = inside(LAB, built.kubernetes()?.join("kubectl"));
    set_environment(&mut command);
    Ok(command)
}

/// Creates or updates objects, given as one JSON list or several.
pub fn apply(built: &Built, attempt: &str, objects: &[Value]) -> Result<()> {
    let list = serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": objects });
    let mut command = command(built)?;
    command.args(["apply", "--server-side", "--force-conflicts", "--field-manager=lab", "-f", "-"]);
    run_with_input(attempt, &mut command, &list.to_string()).map(drop)
}

/// Reads objects as JSON.
pub fn get(built: &Built, arguments: &[&str]) -> Result<Value> {
    let attempt = format!("read {}", arguments.join(" "));
    let text = run(&attempt, command(built)?.arg("get").args(arguments).args(["-o", "json"]))?;
    serde_json::from_str(&text)
        .map_err(|error| Error::Malformed { what: arguments.join(" "), detail: error.to_string() })
}

/// Becomes kubectl with the user's arguments.
pub fn become_kubectl(built: &Built, arguments: &[OsString]) -> Result<std::convert::Infallible> {
    enter_network(LAB)?;
    let mut command = Command::new(built.kubernetes()?.join("kubectl"));
    set_environment(&mut command);
    Err(command.args(arguments).exec()).attempt(|| "start kubectl".into())
}

/// Its cache lives and dies with the lab; the user's own configuration is neither read nor written.
fn set_environment(command: &mut Command) {
    command.env("KUBECONFIG", paths::kubeconfig()).env("KUBECACHEDIR", paths::state().join("kubectl-cache"));
    command.env("PATH", std::env::var_os("PATH").unwrap_or_else(|| space::PATH.into()));
}
