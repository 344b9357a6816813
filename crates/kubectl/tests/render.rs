//! Golden: statuses as an operator wrote them, drawn. `RENDER=write` writes the drawings anew.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use api::{RabbitMQMigration, RabbitMQMigrationStatus};
use jiff::Timestamp;
use kubectl::render::{Look, render};
use std::path::{Path, PathBuf};

/// A migration, and when somebody looked at it.
fn load(path: &Path) -> (RabbitMQMigration, Timestamp) {
    let text = std::fs::read_to_string(path).unwrap();
    let mut stored: serde_json::Value = serde_json::from_str(&text).unwrap();
    let now = stored["now"].as_str().unwrap().parse().unwrap();
    (serde_json::from_value(stored["migration"].take()).unwrap(), now)
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/statuses");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = entries.filter(|p| p.extension().is_some_and(|e| e == "json")).collect();
    found.sort();
    assert!(found.len() >= 10, "statuses are missing");
    found
}

fn widest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

#[test]
fn statuses_are_drawn_as_they_were() {
    for path in files() {
        let (migration, now) = load(&path);
        let drawn = render(&migration, now, Look::default());
        let golden = path.with_extension("out");
        if std::env::var("RENDER").as_deref() == Ok("write") {
            std::fs::write(&golden, drawn).unwrap();
            continue;
        }
        let wanted = std::fs::read_to_string(&golden).unwrap_or_default();
        assert_eq!(wanted, drawn, "{}: RENDER=write takes it over", golden.display());
    }
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for path in files() {
        let (migration, now) = load(&path);
        for width in [60, 80, 120] {
            let drawn = render(&migration, now, Look { width, color: false });
            assert!(widest(&drawn) <= width, "{} at {width}:\n{drawn}", path.display());
        }
    }
}

/// Without the escape sequences of colors.
fn plain(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |kept, part| kept + part.split_once('m').map_or("", |(_, rest)| rest))
}

#[test]
fn colors_change_nothing_but_color() {
    for path in files() {
        let (migration, now) = load(&path);
        let colored = render(&migration, now, Look { color: true, ..Look::default() });
        assert!(colored.contains("\x1b["), "{} has no colors", path.display());
        assert_eq!(plain(&colored), render(&migration, now, Look::default()), "{}", path.display());
    }
}

#[test]
fn what_others_wrote_does_not_steer_the_terminal() {
    let (mut migration, now) = load(&files()[0]);
    let status = migration.status.as_mut().unwrap();
    status.findings[0].evidence = "queue \x1b]0;owned\x07 and\r\x1b[2Jmore".to_owned();
    status.wait.as_mut().unwrap().detail = "\u{9b}31m".to_owned();
    let drawn = render(&migration, now, Look::default());
    let steering: Vec<char> = drawn.chars().filter(|c| c.is_control() && *c != '\n').collect();
    assert!(steering.is_empty(), "{steering:?}");
    assert!(drawn.contains("owned"), "what was written is still shown:\n{drawn}");
}

#[test]
fn an_object_that_nobody_looked_at_says_so() {
    let (mut migration, now) = load(&files()[0]);
    migration.status = None;
    let drawn = render(&migration, now, Look::default());
    assert!(drawn.contains("no operator has looked at it"), "{drawn}");
    // An empty status is no zero: nothing is claimed of sides, gate or ledger.
    migration.status = Some(RabbitMQMigrationStatus::default());
    let drawn = render(&migration, now, Look::default());
    assert!(drawn.contains("which side serves is unknown"), "{drawn}");
    for word in ["Blue", "Gate", "Canary", "lost", "Backlog"] {
        assert!(!drawn.contains(word), "claims {word}:\n{drawn}");
    }
}

#[test]
fn a_status_that_is_older_than_the_spec_says_so() {
    let (mut migration, now) = load(&files()[0]);
    migration.metadata.generation = Some(7);
    let drawn = render(&migration, now, Look::default());
    assert!(drawn.contains("generation 7 is newer than this status, which is of 1"), "{drawn}");
}

/// What counts what was left out is shown like the rest.
#[test]
fn what_was_left_out_is_told() {
    let (mut migration, now) = load(&files()[0]);
    let status = migration.status.as_mut().unwrap();
    let finding = status.findings[0].clone();
    status.findings = vec![finding; 60];
    migration.status = Some(status.bounded());
    let drawn = render(&migration, now, Look::default());
    assert!(drawn.contains("and 37 more") || drawn.contains("and 13 more"), "{drawn}");
}
