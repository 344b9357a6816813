//! A containerd root with all images unpacked, made once: each node starts from links to it.
//!
//! Unpacking for three nodes costs a dozen seconds of each `up`, and removing that many files as much of each
//! `down`; linking costs nothing. Links are safe because nothing writes to an unpacked layer or a stored blob in
//! place, and removing one removes the link; containerd's databases are copied for real. So a running lab needs its
//! cache.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::error::{Attempt, Result};
use crate::programs::run;
use crate::progress::{Look, Step, wait_until};
use crate::recipe::key;
use crate::setup::Built;
use crate::{load, removal};

/// The program whose root it is.
const CONTAINERD: &str = "/usr/bin/containerd";
/// containerd starts within a second.
const LIMIT: Duration = Duration::from_secs(30);

/// Makes the seed of what is built unless it is in the cache.
pub fn ensure(work: &Path, built: &Built) -> Result<()> {
    if built.seed.is_dir() {
        return Ok(());
    }
    let step = Step::start("unpack the images");
    let base = work.join("seed");
    let root = base.join("root");
    fs::create_dir_all(&root).attempt(|| format!("make {}", root.display()))?;
    let socket = base.join("containerd.sock");
    let mut containerd = start(&base)?;
    let filled = fill(&socket, &built.images);
    stop(&mut containerd)?;
    filled?;
    fs::rename(&root, &built.seed).attempt(|| "put the unpacked images in place".into())?;
    step.done();
    Ok(())
}

/// Gives a containerd that has no root yet one that holds the seed's images.
pub fn plant(seed: &Path, root: &Path) -> Result<()> {
    if root.exists() {
        return Ok(());
    }
    let half = root.with_extension("half");
    removal::remove_tree(&half)?;
    plant_directory(seed, &half)?;
    fs::rename(&half, root).attempt(|| format!("put {} in place", root.display()))
}

/// Directories are made anew, down to what containerd makes and removes as one piece; that is a link.
fn plant_directory(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).attempt(|| format!("make {}", to.display()))?;
    for path in list(from)? {
        let Some(name) = path.file_name() else { continue };
        let copy = to.join(name);
        let planted = match piece(from, &path) {
            Piece::Directory => {
                plant_directory(&path, &copy)?;
                continue;
            }
            Piece::Database => fs::copy(&path, &copy).map(drop),
            // A hard link looks like the blob itself; between two file systems there is none.
            Piece::Blob => fs::hard_link(&path, &copy).or_else(|_| symlink(&path, &copy)),
            Piece::Layer => symlink(&path, &copy),
        };
        planted.attempt(|| format!("link {} to {}", copy.display(), path.display()))?;
    }
    Ok(())
}

/// What a path in the seed is to containerd.
enum Piece {
    Directory,
    Database,
    Blob,
    Layer,
}

fn piece(parent: &Path, path: &Path) -> Piece {
    if path.is_dir() {
        return if parent.ends_with("snapshots") { Piece::Layer } else { Piece::Directory };
    }
    if path.extension().is_some_and(|end| end == "db") { Piece::Database } else { Piece::Blob }
}

/// The seed's place in the cache. Another containerd may keep its root in another way: its size and time, cheaper
/// to read than its version, are part of the name.
pub fn directory(cache: &Path, images: &[(String, PathBuf)]) -> PathBuf {
    let program = fs::metadata(CONTAINERD).map(|found| format!("{} {}", found.len(), found.mtime()));
    let files = images.iter().filter_map(|(_, file)| file.file_name()?.to_str());
    cache.join(format!("unpacked-{}", key(files.chain([program.unwrap_or_default().as_str()]))))
}

/// Its mounts are in a namespace of its own and it dies with us: however setup ends, nothing is left.
fn start(base: &Path) -> Result<Child> {
    let config = base.join("containerd.toml");
    let text = format!(
        "version = 2\nroot = \"{0}/root\"\nstate = \"{0}/state\"\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n\
         [grpc]\n  address = \"{0}/containerd.sock\"\n[ttrpc]\n  address = \"{0}/containerd.sock.ttrpc\"\n\
         [plugins.\"io.containerd.internal.v1.opt\"]\n  path = \"{0}/opt\"\n",
        base.display()
    );
    fs::write(&config, text).attempt(|| format!("write {}", config.display()))?;
    let log = base.join("containerd.log");
    let file = fs::File::create(&log).attempt(|| format!("create {}", log.display()))?;
    let mut command = Command::new("setpriv");
    command.args([
        "--pdeathsig",
        "KILL",
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "--",
        "containerd",
    ]);
    command.arg("--config").arg(&config).stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
    command.spawn().attempt(|| "start a containerd to unpack images".into())
}

fn fill(socket: &Path, images: &[(String, PathBuf)]) -> Result<()> {
    wait_until("see the unpacking containerd answer", LIMIT, || {
        Ok(match run("ask containerd", load::ctr(socket).arg("version")) {
            Ok(_) => Look::Ready(()),
            Err(error) => Look::NotYet(error.to_string()),
        })
    })?;
    images.iter().try_for_each(|(_, file)| load::import(socket, file))
}

/// Asks it to end, so that its databases are whole.
fn stop(containerd: &mut Child) -> Result<()> {
    let attempt = || "stop the unpacking containerd".to_owned();
    if let Some(pid) = i32::try_from(containerd.id()).ok().and_then(Pid::from_raw) {
        // Gone already is fine: what it failed at has been or will be reported.
        let _ = kill_process(pid, Signal::TERM);
    }
    containerd.wait().attempt(attempt).map(drop)
}

fn list(directory: &Path) -> Result<Vec<PathBuf>> {
    let attempt = || format!("list {}", directory.display());
    fs::read_dir(directory)
        .attempt(attempt)?
        .map(|entry| entry.map(|entry| entry.path()).attempt(attempt))
        .collect()
}
