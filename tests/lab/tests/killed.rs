//! `lab up` killed at random moments, then `lab down`: the machine is as it was. Needs root, a built lab and no
//! lab that runs: `make lab-killed`.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often it is killed unless KILLS says otherwise.
const KILLS: usize = 10;
/// Where a machine shows what programs leave behind.
const DIRECTORIES: [&str; 10] = [
    "/var/lib",
    "/run",
    "/run/netns",
    "/opt",
    "/etc/cni",
    "/var/lib/cni",
    "/var/lib/kubelet",
    "/run/containerd",
    "/var/log",
    "/dev",
];
/// Settings of the whole machine that parts of a Kubernetes like to change.
const SETTINGS: [&str; 10] = [
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
    "net/ipv4/ip_forward",
    "net/ipv4/conf/all/rp_filter",
    "net/ipv4/conf/all/route_localnet",
    "net/ipv6/conf/all/forwarding",
];
/// The lab's own name: in its state directory, its cache and all that it runs from there.
const NAME: &str = "rabbitmq-migration-lab";
/// The name of its control groups.
const GROUP: &str = "rmqlab";

/// Everything that a lab could leave behind, one line each.
fn machine() -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for line in fs::read_to_string("/proc/self/mountinfo").unwrap().lines() {
        // The first fields are numbers that the kernel gives out.
        lines.insert(format!("mount {}", line.split(' ').skip(3).collect::<Vec<_>>().join(" ")));
    }
    lines.extend(names("/sys/class/net").map(|name| format!("link {name}")));
    for directory in DIRECTORIES {
        lines.extend(names(directory).map(|name| format!("file {directory}/{name}")));
    }
    for setting in SETTINGS {
        let value = fs::read_to_string(Path::new("/proc/sys").join(setting)).unwrap_or_default();
        lines.insert(format!("setting {setting} {}", value.trim()));
    }
    for program in [&["ip", "route"][..], &["iptables-save"], &["nft", "list", "ruleset"]] {
        lines.extend(output(program).into_iter().map(|line| format!("{} {line}", program.join(" "))));
    }
    lines.extend(groups(Path::new("/sys/fs/cgroup"), 0));
    lines.extend(processes());
    lines
}

fn names(directory: &str) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned())
}

/// What a program says, without its comments; nothing where there is no such program.
fn output(program: &[&str]) -> Vec<String> {
    let (name, arguments) = program.split_first().unwrap();
    let Ok(output) = Command::new(name).args(arguments).stderr(Stdio::null()).output() else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

/// The lab's control groups, in every tree.
fn groups(directory: &Path, depth: usize) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut found = Vec::new();
    for entry in below {
        let path = entry.path();
        if entry.file_name().to_string_lossy().contains(GROUP) {
            found.push(format!("group {}", path.display()));
        } else if depth < 2 {
            found.extend(groups(&path, depth + 1));
        }
    }
    found
}

/// Processes of the lab: born in its groups or started from its directories.
fn processes() -> Vec<String> {
    let mut found = Vec::new();
    for pid in names("/proc").filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())) {
        let read = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let (words, group) = (read("cmdline"), read("cgroup"));
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        // What has ended and waits for init to take notice is nothing that a lab leaves.
        let status = String::from_utf8_lossy(&read("status")).into_owned();
        if status.contains("State:\tZ") && status.contains("PPid:\t1\n") {
            continue;
        }
        if words.contains(NAME) || String::from_utf8_lossy(&group).contains(GROUP) {
            found.push(format!("process {words}"));
        }
    }
    found
}

/// A small generator: the seed is printed, so that a run can be repeated.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn lab(word: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lab"));
    command.arg(word).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

#[test]
#[ignore = "takes the lab down: make lab-killed"]
fn a_killed_lab_leaves_nothing_once_it_is_taken_down() {
    assert!(!Path::new("/var/lib").join(NAME).exists(), "a lab runs, or its rest is here: `lab down` first");
    let before = machine();
    let begun = Instant::now();
    assert!(lab("up").status().unwrap().success(), "lab up");
    let whole = begun.elapsed();
    assert!(machine().len() > before.len(), "a lab that cannot be seen proves nothing");
    assert!(lab("down").status().unwrap().success(), "lab down");
    same(&before, "a whole run");
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = number("SEED").unwrap_or(since_epoch.as_secs()).max(1);
    let kills = number("KILLS").map_or(KILLS, |kills| usize::try_from(kills).unwrap());
    println!("lab up takes {whole:?}; {kills} kills, SEED={seed}");
    let mut state = seed;
    for round in 1..=kills {
        let moment = Duration::from_millis(next(&mut state) % u64::try_from(whole.as_millis()).unwrap());
        let mut up = lab("up").spawn().unwrap();
        // The moment itself is what is tested.
        std::thread::sleep(moment);
        let over = up.try_wait().unwrap().is_some();
        up.kill().unwrap();
        up.wait().unwrap();
        let left = machine().difference(&before).count();
        let begun = Instant::now();
        assert!(lab("down").status().unwrap().success(), "lab down after a kill at {moment:?}");
        let word = if over { "it was up already" } else { "killed" };
        println!("round {round}: {word} at {moment:?}, {left} traces, down in {:?}", begun.elapsed());
        same(&before, &format!("a kill at {moment:?} (SEED={seed})"));
    }
}

fn same(before: &BTreeSet<String>, what: &str) {
    let after = machine();
    let more: Vec<_> = after.difference(before).collect();
    let less: Vec<_> = before.difference(&after).collect();
    assert!(more.is_empty() && less.is_empty(), "after {what}: left {more:#?}, gone {less:#?}");
}
