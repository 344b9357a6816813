//! Whether the kernel throttles our container: `nr_throttled` of its `cpu.stat`, cgroup v2 or v1. Does I/O.

use std::fs;
use std::path::{Path, PathBuf};

use crate::summary::Throttling;

/// Reads how often our own cgroup was throttled.
#[derive(Debug)]
pub(crate) struct Throttle {
    stat: Option<PathBuf>,
}

impl Throttle {
    /// Finds `cpu.stat`; nowhere is fine, throttling is then unknown.
    pub fn detect() -> Self {
        Self::detect_in(Path::new("/sys/fs/cgroup"), Path::new("/proc/self/cgroup"))
    }

    fn detect_in(mount: &Path, cgroups: &Path) -> Self {
        let cgroups = fs::read_to_string(cgroups).unwrap_or_default();
        let stat = candidates(mount, &cgroups).into_iter().find(|path| read(path).is_some());
        Self { stat }
    }

    /// Throttled periods so far.
    pub fn periods(&self) -> Option<u64> {
        read(self.stat.as_deref()?)
    }
}

/// Throttling from window to window.
pub(crate) struct Gauge {
    throttle: Throttle,
    /// The window that runs.
    pub window: u64,
    periods: Option<u64>,
}

impl Gauge {
    /// Takes the first reading.
    pub fn new() -> Self {
        let throttle = Throttle::detect();
        let periods = throttle.periods();
        Self { throttle, window: 0, periods }
    }

    /// Throttling since the last reading.
    pub fn read(&mut self) -> Throttling {
        let now = self.throttle.periods();
        let before = std::mem::replace(&mut self.periods, now);
        match (before, now) {
            (Some(before), Some(now)) if now > before => Throttling::Periods(now - before),
            (Some(_), Some(_)) => Throttling::None,
            _ => Throttling::Unknown,
        }
    }
}

/// Our group below the mount, then the mount itself: in a container with its own cgroup namespace both are
/// the same; without one, the path is the host's and only the mount exists.
fn candidates(mount: &Path, cgroups: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in cgroups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let path = path.trim_start_matches('/');
        if controllers.is_empty() {
            found.push(mount.join(path).join("cpu.stat"));
        } else if controllers.split(',').any(|controller| controller == "cpu") {
            found.push(mount.join(controllers).join(path).join("cpu.stat"));
            found.push(mount.join("cpu").join(path).join("cpu.stat"));
        }
    }
    found.extend(["cpu.stat", "cpu/cpu.stat", "cpu,cpuacct/cpu.stat"].map(|name| mount.join(name)));
    found
}

fn read(stat: &Path) -> Option<u64> {
    let text = fs::read_to_string(stat).ok()?;
    text.lines().find_map(|line| line.strip_prefix("nr_throttled "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_found_where_they_live() {
        let mount = Path::new("/m");
        let v2 = candidates(mount, "0::/kubepods/pod1\n");
        assert_eq!(v2[0], Path::new("/m/kubepods/pod1/cpu.stat"));
        let v1 = candidates(mount, "4:cpu,cpuacct:/docker/x\n3:memory:/docker/x\n");
        assert_eq!(v1[0], Path::new("/m/cpu,cpuacct/docker/x/cpu.stat"));
        assert!(v1.iter().all(|path| !path.ends_with("memory/docker/x/cpu.stat")));
        assert!(v1.contains(&Path::new("/m/cpu/cpu.stat").to_path_buf()));
    }

    #[test]
    fn absent_is_unknown_not_zero() {
        let nowhere = Path::new("/nonexistent");
        assert_eq!(Throttle::detect_in(nowhere, nowhere).periods(), None);
    }

    #[test]
    fn the_count_is_read() {
        let dir = std::env::temp_dir().join(format!("probe-throttle-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("cpu.stat"), "usage_usec 5\nnr_periods 9\nnr_throttled 3\n").unwrap();
        assert_eq!(Throttle::detect_in(&dir, Path::new("/nonexistent")).periods(), Some(3));
        fs::remove_dir_all(&dir).unwrap();
    }
}
