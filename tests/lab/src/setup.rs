//! Builds everything that the lab runs, once: each build lands in the cache under the hash of its recipe.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Attempt, Error, Result};
use crate::lock::Lock;
use crate::prerequisites::{self, NeedGo};
use crate::programs::{contained, run_long};
use crate::progress::Step;
use crate::recipe::{CLUSTER, GO_SETS, GoSet};
use crate::{images, paths, removal, seed};

/// What setup has built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The directories of Go programs.
    programs: Vec<PathBuf>,
    /// The image archives, with the images' names.
    pub images: Vec<(String, PathBuf)>,
    /// The images unpacked.
    pub seed: PathBuf,
}

impl Built {
    /// The path of a program.
    pub fn bin(&self, name: &str) -> PathBuf {
        let found = self.programs.iter().map(|directory| directory.join(name)).find(|path| path.is_file());
        found.unwrap_or_else(|| PathBuf::from(name))
    }

    /// The directory of kubectl and the other Kubernetes programs.
    pub fn kubernetes(&self) -> Result<PathBuf> {
        paths::cache().map(|cache| cache.join(CLUSTER.directory()))
    }

    /// One word that differs when anything built differs.
    pub fn fingerprint(&self) -> String {
        let programs = self.programs.iter().map(PathBuf::as_path);
        let all = programs.chain(self.images.iter().map(|(_, file)| file.as_path()));
        let names: Vec<_> = all.filter_map(|path| path.file_name()?.to_str()).collect();
        crate::recipe::key(names)
    }
}

/// What is built, whether or not it is there yet.
pub fn built() -> Result<Built> {
    let cache = paths::cache()?;
    let programs = GO_SETS.iter().map(|set| cache.join(set.directory())).collect();
    let images = images::archives(&cache);
    let seed = seed::directory(&cache, &images);
    Ok(Built { programs, images, seed })
}

/// Makes sure that everything is built.
pub fn ensure() -> Result<Built> {
    let cache = paths::cache()?;
    fs::create_dir_all(&cache).attempt(|| format!("make {}", cache.display()))?;
    let lock = Lock::take(&cache.join("lock"))?;
    let complete = GO_SETS.iter().all(|set| cache.join(set.directory()).is_dir());
    prerequisites::ensure(if complete { NeedGo::No } else { NeedGo::Yes })?;
    let work = fresh_work_directory(&cache)?;
    for set in GO_SETS {
        build_go(set, &cache, &work)?;
    }
    images::ensure(&cache, &work)?;
    seed::ensure(&work, &built()?)?;
    removal::remove_tree(&work)?;
    drop(lock);
    built()
}

/// The directory of half-made things; what a setup that was cut short left there goes first.
fn fresh_work_directory(cache: &Path) -> Result<PathBuf> {
    let work = cache.join("work");
    removal::remove_tree(&work)?;
    fs::create_dir_all(&work).attempt(|| format!("make {}", work.display()))?;
    Ok(work)
}

fn build_go(set: &GoSet, cache: &Path, work: &Path) -> Result<()> {
    let target = cache.join(set.directory());
    if target.is_dir() {
        return Ok(());
    }
    let mut step = Step::start(format!("build {} (the first time takes minutes)", set.name));
    let (source, out) = (work.join(format!("{}-source", set.name)), work.join(format!("{}-bin", set.name)));
    for directory in [&source, &out] {
        fs::create_dir_all(directory).attempt(|| format!("make {}", directory.display()))?;
    }
    for (name, text) in set.files {
        fs::write(source.join(name), text).attempt(|| format!("write {name} of {}", set.name))?;
    }
    let mut go = contained("go");
    go.current_dir(&source).env("CGO_ENABLED", "0").env("GOWORK", "off");
    go.args(["build", "-mod=readonly", "-ldflags", &GoSet::linker_flags(), "-o"]).arg(&out);
    go.args(set.programs.iter().map(|(package, _)| package));
    run_long(&mut step, &format!("build {}", set.name), &mut go, &cache.join(format!("{}.log", set.name)))?;
    for (package, program) in set.programs {
        name_program(&out, package, program)?;
    }
    fs::rename(&out, &target).attempt(|| format!("put {} in place", set.name))?;
    step.done();
    Ok(())
}

/// Go names a program after the last word of its package that is not a version; some need a better name.
fn name_program(out: &Path, package: &str, program: &str) -> Result<()> {
    let wanted = out.join(program);
    if wanted.is_file() {
        return Ok(());
    }
    let made = package.split('/').rfind(|word| !is_version(word)).unwrap_or(package);
    let made = out.join(made);
    if !made.is_file() {
        let detail = format!("{} is not there", made.display());
        return Err(Error::Malformed { what: format!("what Go built of {package}"), detail });
    }
    fs::rename(&made, &wanted).attempt(|| format!("name {program}"))
}

fn is_version(word: &str) -> bool {
    word.strip_prefix('v').is_some_and(|digits| digits.parse::<u32>().is_ok())
}
