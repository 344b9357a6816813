//! Only `record` writes status, and what was computed from an older object is refused (invariant 6).

use crate::scene::{Leader, MIGRATIONS, migration, put_migration, server, spec};
use operator::settings::Timing;
use std::path::{Path, PathBuf};

const NOBODY: [&str; 3] = ["127.99.1.1", "127.99.1.2", "127.99.1.3"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// By name: whoever writes a status needs one of kube's functions for it, or a request of his own.
#[test]
fn no_other_file_writes_status() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    let writes =
        ["replace_status(", "patch_status(", "patch_subresource(", "replace_subresource(", "client.request"];
    let of = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        code.filter(|line| writes.iter().any(|word| line.contains(word))).count()
    };
    let found: Vec<(String, usize)> = files
        .iter()
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), of(path)))
        .filter(|(_, count)| *count > 0)
        .collect();
    assert_eq!(found, [("record.rs".to_owned(), 1)]);
}

#[tokio::test]
async fn a_status_from_an_older_object_is_refused_and_nothing_follows_it() {
    let server = server(NOBODY);
    put_migration(&server, &spec(), None);
    let leader = Leader::new(&server, "a", Timing::default()).await;
    leader.claim(&server).await;
    let outcome = leader.pass_interrupted(&server).await;
    let error = outcome.unwrap_err();
    assert_eq!(error.to_string(), "write the status of orders");
    let writes: Vec<_> =
        server.calls().iter().filter(|c| c.is_write()).map(|c| format!("{} {}", c.what(), c.code)).collect();
    assert_eq!(writes, ["update rabbitmqmigrations/status 409"], "no event tells what was not stored");
    assert!(migration(&server).status.is_none());
    assert!(!leader.shared.metrics.text().unwrap().contains("phase=\""), "no metric either");

    leader.pass(&server).await.unwrap();
    assert!(migration(&server).status.is_some(), "the next pass begins from what is there");
}

/// The migration is written whole, so it is asked what else of it was changed: nothing.
#[tokio::test]
async fn a_pass_writes_no_spec() {
    let server = server(NOBODY);
    put_migration(&server, &spec(), None);
    let before = migration(&server).spec;
    let leader = Leader::new(&server, "a", Timing::default()).await;
    leader.claim(&server).await;
    leader.pass(&server).await.unwrap();
    let after = migration(&server);
    assert_eq!(after.spec, before);
    assert_eq!(after.metadata.generation, Some(1));
    for call in server.calls().iter().filter(|call| call.is_on("patch", MIGRATIONS)) {
        let keys: Vec<_> = call.body.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["metadata"], "the claim touches metadata alone");
    }
}
