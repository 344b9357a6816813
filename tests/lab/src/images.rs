//! The images of the lab: the brokers from Debian packages, the pause image from busybox.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Attempt, Result};
use crate::oci::{self, Image};
use crate::programs::{contained, run_long};
use crate::progress::Step;
use crate::recipe::{
    CUSTOMIZE_HOOK, ENTRYPOINT, ESSENTIAL_HOOK, IMAGE_FORMAT, PAUSE_IMAGE, RABBIT_IMAGES, RabbitImage, key,
};

/// The real server scripts come first: the wrapper in /usr/sbin refuses any uid but its own and root.
const RABBIT_PATH: &str =
    "PATH=/usr/lib/rabbitmq/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The static busybox that the pause image holds.
const BUSYBOX: &str = "/bin/busybox";

/// The archives of all images, with the images' names, whether or not they are there yet.
pub fn archives(cache: &Path) -> Vec<(String, PathBuf)> {
    let pause = (PAUSE_IMAGE.to_owned(), cache.join(pause_file()));
    let brokers = RABBIT_IMAGES.iter().map(|image| (image.name(), cache.join(image.file())));
    std::iter::once(pause).chain(brokers).collect()
}

/// Makes the images that are not in the cache.
pub fn ensure(cache: &Path, work: &Path) -> Result<()> {
    let pause = cache.join(pause_file());
    if !pause.is_file() {
        make_pause(&pause, work)?;
    }
    for image in &RABBIT_IMAGES {
        if !cache.join(image.file()).is_file() {
            make_broker(image, cache, work)?;
        }
    }
    Ok(())
}

/// Packs one static program into an image.
pub fn pack(image: &Image, program: &Path, path_in_image: &str, out: &Path) -> Result<()> {
    let layer = out.with_extension("layer.tmp");
    let made = out.with_extension("tmp");
    let result = oci::write_single_file_layer(program, path_in_image, &layer)
        .and_then(|()| oci::write(image, &layer, &made))
        .and_then(|()| fs::rename(&made, out).attempt(|| format!("put {} in place", out.display())));
    // Either is absent when an earlier step failed; that failure is what is reported.
    let _ = (fs::remove_file(&layer), fs::remove_file(&made));
    result
}

fn pause_file() -> String {
    format!("pause-{}.tar", key([PAUSE_IMAGE, IMAGE_FORMAT]))
}

fn make_pause(target: &Path, work: &Path) -> Result<()> {
    let words = ["/bin/busybox", "tail", "-f", "/dev/null"];
    let entrypoint = words.map(str::to_owned).to_vec();
    let image = Image { name: PAUSE_IMAGE.into(), entrypoint, ..Image::default() };
    let made = work.join("pause.tar");
    pack(&image, Path::new(BUSYBOX), "bin/busybox", &made)?;
    fs::rename(&made, target).attempt(|| "put the pause image in place".into())
}

fn make_broker(image: &RabbitImage, cache: &Path, work: &Path) -> Result<()> {
    let mut step =
        Step::start(format!("make the image of RabbitMQ {} from Debian {}", image.version, image.suite));
    let root = work.join(format!("rabbitmq-{}.root.tar", image.version));
    let log = cache.join(format!("rabbitmq-{}.log", image.version));
    let attempt = format!("make the root file system of RabbitMQ {}", image.version);
    run_long(&mut step, &attempt, &mut mmdebstrap(image, work, &root)?, &log)?;
    let environment = [
        RABBIT_PATH,
        "HOME=/var/lib/rabbitmq",
        "LANG=C.UTF-8",
        "RABBITMQ_HOME=/usr/lib/rabbitmq",
        "RABBITMQ_LOGS=-",
    ];
    let packed = Image {
        name: image.name(),
        entrypoint: vec!["docker-entrypoint.sh".into()],
        arguments: vec!["rabbitmq-server".into()],
        environment: environment.map(str::to_owned).to_vec(),
    };
    let made = work.join(image.file());
    oci::write(&packed, &root, &made)?;
    fs::remove_file(&root).attempt(|| format!("remove {}", root.display()))?;
    fs::rename(&made, cache.join(image.file())).attempt(|| format!("put {} in place", image.name()))?;
    step.done();
    Ok(())
}

/// The command that makes a root file system. It bind-mounts /dev and /proc into it, hence contained.
fn mmdebstrap(image: &RabbitImage, work: &Path, root: &Path) -> Result<Command> {
    let hook = |name: &str, text: &str| {
        let path = work.join(name);
        fs::write(&path, text).attempt(|| format!("write {}", path.display()))?;
        Ok(path)
    };
    let essential = hook("essential-hook.sh", ESSENTIAL_HOOK)?;
    let customize = hook("customize-hook.sh", CUSTOMIZE_HOOK)?;
    let entrypoint = hook("docker-entrypoint.sh", ENTRYPOINT)?;
    let mut command = contained("mmdebstrap");
    command.args(["--mode=root", "--variant=minbase"]);
    command.args(["--include=rabbitmq-server,ca-certificates", "--aptopt=Acquire::Retries \"3\""]);
    for left_out in ["doc", "man", "info", "locale", "lintian"] {
        command.arg(format!("--dpkgopt=path-exclude=/usr/share/{left_out}/*"));
    }
    command.arg(format!("--essential-hook=sh {} \"$1\"", essential.display()));
    command.arg(format!("--customize-hook=sh {} \"$1\"", customize.display()));
    command.arg(image.suite).arg(root);
    command.env("TMPDIR", work).env("LAB_VERSION", image.version).env("LAB_ENTRYPOINT", entrypoint);
    Ok(command)
}
