//! The lab's command line.

use std::convert::Infallible;
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::{Parser, Subcommand};
use lab::error::{Attempt, Error, Result, with_causes};
use lab::network::Cable;
use lab::oci::Image;
use lab::topology::{node, node_of_zone};
use lab::{
    birth, daemon, down, images, kubectl, load, network, paths, prerequisites, setup, signal, space, status,
    throttle, up, volumes,
};

/// A real Kubernetes with three zones on this machine.
#[derive(Debug, Parser)]
#[command(name = "lab", version)]
struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Build everything the lab runs, once per machine and version
    Setup,
    /// Bring the lab up, or what is missing of it
    Up,
    /// Remove the lab, whatever is left of it; builds stay in the cache
    Down,
    /// Tell what runs; fails unless all does
    Status,
    /// Print where things are, as JSON
    Paths,
    /// Run kubectl as the lab's administrator
    #[command(disable_help_flag = true)]
    Kubectl {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Run a program in a node's network and mounts
    Exec {
        node: String,
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
    /// Run a program in the lab's network
    Net {
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
    /// Images of the nodes
    #[command(subcommand)]
    Image(ImageAction),
    /// Cut a zone off, or join it again
    #[command(subcommand)]
    Zone(ZoneAction),
    /// Send a signal to the first process of a pod's container, from outside
    Signal {
        signal: signal::Signal,
        pod: String,
        #[arg(short, long, default_value = "default")]
        namespace: String,
    },
    /// Disks of pods
    #[command(subcommand)]
    Disk(DiskAction),
    /// Volumes of the zones
    #[command(subcommand)]
    Volumes(VolumesAction),
    /// Copy all logs of the lab into a directory
    Logs {
        /// The directory; made if it is not there
        #[arg(long)]
        to: PathBuf,
    },
    #[command(hide = true)]
    Anchor {
        #[arg(long, env = space::PARENT)]
        parent: i32,
        space: String,
    },
    #[command(hide = true)]
    Born {
        #[arg(long, env = space::PARENT)]
        parent: i32,
        name: String,
        space: String,
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
    #[command(hide = true)]
    Enter {
        #[arg(long, env = space::PARENT)]
        parent: i32,
        space: String,
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
}

#[derive(Debug, Subcommand)]
enum ImageAction {
    /// Put an image into all nodes
    Load {
        /// The name that pods use
        name: String,
        /// An OCI image layout in a tar
        file: PathBuf,
    },
    /// Make an image of one static program
    Pack {
        /// The program
        #[arg(long)]
        binary: PathBuf,
        /// The image's name, with tag
        #[arg(long)]
        name: String,
        /// The archive to write
        #[arg(long)]
        out: PathBuf,
        /// The words a container starts; the program itself unless given
        #[arg(long, num_args = 1..)]
        entrypoint: Vec<String>,
    },
}

#[derive(Debug, Subcommand)]
enum ZoneAction {
    /// Cut a zone's node off the network
    Fail { zone: String },
    /// Join it again
    Heal { zone: String },
}

#[derive(Debug, Subcommand)]
enum DiskAction {
    /// Limit a pod's writes per second; 0 removes the limit
    Throttle {
        pod: String,
        iops: u64,
        #[arg(short, long, default_value = "default")]
        namespace: String,
    },
}

#[derive(Debug, Subcommand)]
enum VolumesAction {
    /// Empty the volumes whose claim is gone and offer them anew
    Recycle,
}

fn main() -> ExitCode {
    match run(Arguments::parse().action) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lab: {}", with_causes(&error));
            ExitCode::FAILURE
        }
    }
}

fn run(action: Action) -> Result<()> {
    match action {
        Action::Setup => setup::ensure().map(drop),
        Action::Up => up::up(),
        Action::Down => prerequisites::must_be_root().and_then(|()| down::down()),
        Action::Status => status::status(&setup::built()?),
        Action::Paths => {
            println!("{:#}", status::paths_as_json(&setup::built()?)?);
            Ok(())
        }
        Action::Kubectl { arguments } => never(kubectl::become_kubectl(&setup::built()?, &arguments)),
        Action::Exec { node: name, command } => {
            space::enter(node(&name)?.name)?;
            never(become_program(&command))
        }
        Action::Net { command } => {
            lab::enter_network()?;
            never(become_program(&command))
        }
        Action::Image(action) => image(action),
        Action::Zone(ZoneAction::Fail { zone }) => network::set_cable(node_of_zone(&zone)?, Cable::Cut),
        Action::Zone(ZoneAction::Heal { zone }) => network::set_cable(node_of_zone(&zone)?, Cable::Joined),
        Action::Disk(DiskAction::Throttle { pod, iops, namespace }) => {
            throttle::throttle(&setup::built()?, &namespace, &pod, iops)
        }
        Action::Signal { signal, pod, namespace } => signal::send(&setup::built()?, &namespace, &pod, signal),
        Action::Volumes(VolumesAction::Recycle) => {
            volumes::recycle(&setup::built()?)?.iter().for_each(|name| println!("{name}"));
            Ok(())
        }
        Action::Logs { to } => copy_logs(&to),
        Action::Anchor { parent, space } => never(space::become_anchor(&space, parent)),
        Action::Born { parent, name, space, command } => {
            never(daemon::be_born(&name, &space, parent, &command))
        }
        Action::Enter { parent, space, command } => {
            birth::die_with(parent)?;
            space::enter(&space)?;
            never(become_program(&command))
        }
    }
}

fn image(action: ImageAction) -> Result<()> {
    match action {
        ImageAction::Load { name, file } => load::load(&name, &file),
        ImageAction::Pack { binary, name, out, entrypoint } => {
            let file = binary.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let entrypoint = if entrypoint.is_empty() { vec![format!("/{file}")] } else { entrypoint };
            images::pack(&Image { name, entrypoint, ..Image::default() }, &binary, &file, &out)
        }
    }
}

fn copy_logs(to: &Path) -> Result<()> {
    fs::create_dir_all(to).attempt(|| format!("make {}", to.display()))?;
    let from = paths::logs();
    let attempt = || format!("list {}", from.display());
    for entry in fs::read_dir(&from).attempt(attempt)? {
        let entry = entry.attempt(attempt)?;
        let target = to.join(entry.file_name());
        fs::copy(entry.path(), &target).attempt(|| format!("write {}", target.display()))?;
    }
    Ok(())
}

fn become_program(command: &[OsString]) -> Result<Infallible> {
    let (program, arguments) = command.split_first().ok_or_else(nothing_to_run)?;
    Err(Command::new(program).args(arguments).exec()).attempt(|| format!("start {}", program.display()))
}

fn nothing_to_run() -> Error {
    Error::Refused { reason: "no program to run".into() }
}

fn never(result: Result<Infallible>) -> Result<()> {
    match result {
        Ok(never) => match never {},
        Err(error) => Err(error),
    }
}
