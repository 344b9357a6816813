//! The plugin decides nothing and talks to no broker: its manifest could not even name who does.

use std::collections::BTreeSet;

#[test]
fn it_depends_on_neither_brain_nor_broker() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let manifest = std::fs::read_to_string(path).unwrap();
    let lines = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    let names =
        lines.take_while(|line| !line.starts_with('[')).filter_map(|line| line.split(['.', ' ', '=']).next());
    let found: BTreeSet<&str> = names.filter(|name| !name.is_empty() && !name.starts_with('#')).collect();
    let allowed: BTreeSet<&str> = [
        "api",
        "clap",
        "futures",
        "jiff",
        "kube",
        "rustls",
        "serde-saphyr",
        "serde_json",
        "thiserror",
        "tokio",
    ]
    .into();
    assert_eq!(found, allowed, "a new line here is an architecture decision");
    for other in ["decide", "rabbit", "probe", "operator", "lapin", "reqwest"] {
        assert!(!manifest.lines().any(|line| line.starts_with(other)), "the plugin must not know {other}");
    }
}
