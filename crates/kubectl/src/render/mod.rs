//! A migration's status as a tree that fits a terminal. Pure: the same object and time give the same text.

mod parts;
mod span;
mod tree;

use api::{Phase, RabbitMQMigration};
use jiff::Timestamp;
use tree::{Node, Paint};

/// How it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Columns that a line may have.
    pub width: usize,
    /// Whether colors and cursor movements may be used.
    pub color: bool,
}

impl Default for Look {
    /// The terminal that everybody has.
    fn default() -> Self {
        Self { width: 80, color: false }
    }
}

/// The status of `migration`, as it is at `now`.
pub fn render(migration: &RabbitMQMigration, now: Timestamp, look: Look) -> String {
    let Some(status) = &migration.status else {
        let parts = vec![Node::text("no status yet: no operator has looked at it")];
        return tree::draw(&title(migration, "new"), &parts, look);
    };
    let phase = status.phase.unwrap_or_default();
    let lasts = status.phase_since.as_ref().map(|since| format!(" for {}", span::since(now, since)));
    let serving = status.serving_side.as_deref().unwrap_or("Unknown").to_lowercase();
    let serving = if serving == "unknown" {
        "which side serves is unknown".to_owned()
    } else {
        format!("{serving} serves")
    };
    let title = title(migration, &format!("{phase}{}, {serving}", lasts.unwrap_or_default()));
    let mut parts = parts::object(migration, now);
    parts.extend(parts::wait(migration, status, now));
    parts.extend(parts::sides(status));
    parts.extend(parts::switching(status));
    parts.extend(parts::ledger(status));
    parts.extend(parts::gate(status));
    parts.extend(parts::findings(status));
    // What only matters until the Services are pointed.
    if phase.is_before_switch() {
        parts.extend(parts::placement(status));
        parts.extend(parts::topology(status));
        parts.extend(parts::plan(status));
    }
    parts.extend(parts::conditions(status));
    parts.extend(parts::way_out(status));
    parts.extend(parts::history(status, now));
    tree::draw(&title, &parts, look)
}

fn title(migration: &RabbitMQMigration, state: &str) -> Node {
    let metadata = &migration.metadata;
    let name = metadata.name.as_deref().unwrap_or_default();
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let phase = migration.status.as_ref().and_then(|status| status.phase);
    let paint = match phase {
        Some(Phase::Completed) => Paint::Good,
        Some(Phase::Failed) => Paint::Bad,
        Some(_) | None => Paint::Plain,
    };
    Node::text(format!("{name} in {namespace}: {state}")).painted(paint)
}
