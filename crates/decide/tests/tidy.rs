//! Tidy: what a reader may rely on. Registries equal directories, files say what they are and stay readable.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use api::Phase;
use decide::checks::{self, Severity};
use decide::toy::{Settings, Toy};
use decide::world::{QueueTotals, Reading, World};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Lines of a production file, blank ones and comments not counted, above which tidy speaks up.
const LONGEST: usize = 500;

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            found.push(path);
        }
    }
}

fn all_sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    sources(&crates(), &mut found);
    found.sort();
    found
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}

fn files(folder: &str) -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(folder);
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| stem(&path)).filter(|stem| stem != "mod" && stem != "tests").collect()
}

fn source(file: &str) -> String {
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file))
}

#[test]
fn every_check_is_one_file_and_listed() {
    let ids: Vec<&str> = checks::ALL.iter().map(|check| check.id).collect();
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(unique.len(), ids.len(), "two checks share an id: {ids:?}");
    let files = files("checks");
    assert_eq!(files.len(), ids.len(), "one file per check: {files:?}");
    for file in files {
        let text = source(&format!("checks/{file}.rs"));
        let mine: Vec<_> = ids.iter().filter(|id| text.contains(&format!("id: \"{id}\""))).collect();
        assert_eq!(mine.len(), 1, "checks/{file}.rs should make exactly one listed check, makes {mine:?}");
    }
}

#[test]
fn every_guard_phase_and_rule_is_listed() {
    for folder in ["guards", "phases", "rewrites/rules"] {
        let registry = source(&format!("{folder}/mod.rs"));
        // Cleaning is what several phases and guards share.
        for file in files(folder).into_iter().filter(|file| file != "cleanup") {
            assert!(registry.contains(&format!("{file}::")), "{folder}/mod.rs does not use {file}");
        }
    }
}

#[test]
fn every_phase_has_a_way_on_or_is_an_end() {
    for phase in Phase::ALL {
        let successors = decide::phases::successors(phase);
        assert_eq!(successors.is_empty(), phase == Phase::Completed, "{phase}");
    }
}

#[test]
fn every_file_says_what_it_is() {
    let silent: Vec<_> = all_sources().into_iter().filter(|path| !read(path).starts_with("//! ")).collect();
    assert!(silent.is_empty(), "these do not begin with a //! line: {silent:?}");
}

#[test]
fn no_production_file_is_long() {
    let is_test = |path: &PathBuf| {
        let stem = stem(path);
        let in_tests = path.components().any(|part| part.as_os_str() == "tests");
        in_tests || ["tests", "cases", "laws"].contains(&stem.as_str()) || stem.ends_with("_tests")
    };
    let length = |path: &PathBuf| {
        let text = read(path);
        let production = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let code =
            production.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
        code.count()
    };
    let long: Vec<_> =
        all_sources().into_iter().filter(|path| !is_test(path) && length(path) > LONGEST).collect();
    assert!(long.is_empty(), "above {LONGEST} lines: {long:?}");
}

#[test]
fn the_brain_depends_on_little() {
    let manifest = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
    let lines = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    let named =
        lines.take_while(|line| !line.starts_with('[')).filter_map(|line| line.split(['.', ' ', '=']).next());
    let found: BTreeSet<&str> = named.filter(|name| !name.is_empty() && !name.starts_with('#')).collect();
    let allowed: BTreeSet<&str> = ["api", "jiff", "serde", "serde_json", "fancy-regex", "sha2"].into();
    assert_eq!(found, allowed, "a new line here is an architecture decision: DESIGN.md §3");
}

/// Worlds in which checks find something: nothing read, everything unreadable, and much that is wrong.
fn troubled_worlds() -> Vec<World> {
    let plan = decide::toy::plan(&Settings::default()).unwrap();
    let mut toy = Toy::new(Settings { alarm: true, missing_service: true, ..Settings::default() });
    toy.advance(20_000);
    let (mut blind, mut seen) = (World::default(), World::default());
    for fact in decide::toy::every_fact() {
        toy.blind(fact, "no answer in time", &mut blind);
        toy.observe(&plan, fact, false, &mut seen);
    }
    vec![World::default(), blind, seen.clone(), spoiled(seen)]
}

fn spoiled(mut world: World) -> World {
    world.permissions = Reading::Seen(vec!["patch services".to_owned()]);
    world.storage_class = Reading::Seen(None);
    world.users.blue = Reading::Seen(Vec::new());
    let stream = QueueTotals {
        queue: Some(decide::effect::QueueRef { vhost: "/".to_owned(), name: "log".to_owned() }),
        kind: "stream".to_owned(),
        ..QueueTotals::default()
    };
    world.queues.blue = Reading::Seen(vec![stream]);
    world.rehearsal =
        Reading::Seen(decide::world::RehearsalView { refused: false, detail: "logged in".to_owned() });
    if let Reading::Seen(broker) = &mut world.brokers.blue {
        broker.user_limits = Some(false);
        broker.versions.insert("3.11.0".to_owned());
        broker.members.pop_last();
    }
    if let Reading::Seen(found) = &mut world.stateful_sets.green {
        found.exists = true;
        found.made_by = Some("another uid".to_owned());
    }
    if let Reading::Seen(services) = &mut world.services {
        for service in services {
            service.owner = Some("RabbitmqCluster/x".to_owned());
            service.target_ports.push("nobodys".to_owned());
        }
    }
    if let Reading::Seen(entrances) = &mut world.entrances {
        entrances.push(decide::world::EntranceView { name: "forgotten".to_owned(), headless: false });
    }
    world
}

#[test]
fn every_blocking_finding_says_what_can_be_done() {
    let plan = decide::toy::plan(&Settings { missing_service: true, ..Settings::default() }).unwrap();
    let mut blocked = BTreeSet::new();
    for world in troubled_worlds() {
        for (severity, finding) in checks::run(&plan, &world) {
            assert!(!finding.evidence.trim().is_empty(), "{} found nothing", finding.check);
            assert!(
                !finding.remedy.trim().is_empty(),
                "{} has no remedy: {}",
                finding.check,
                finding.evidence
            );
            if severity == Severity::Block {
                blocked.insert(finding.check);
            }
        }
    }
    // Two that never block: they tell how blue stores its data, and what cannot be placed needs other nodes.
    let never = ["blue-storage", "placement-possible"];
    let silent: Vec<&str> =
        checks::ALL.iter().map(|c| c.id).filter(|id| !blocked.contains(*id) && !never.contains(id)).collect();
    assert!(silent.is_empty(), "no case makes these block: {silent:?}");
}
