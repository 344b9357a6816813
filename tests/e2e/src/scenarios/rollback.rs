//! The operator is deleted in the switch and a person leaves by hand; then a new operator, and rollback in
//! Soaking under load: traffic goes back to blue and nothing is lost.

use crate::brokers::definitions;
use crate::cluster::Cluster;
use crate::demo;
use crate::error::{Result, expect};
use crate::migration::{self, Migration};
use crate::scenarios::{kills, manual_exit, quick_gate};
use crate::shop;
use crate::show::Show;
use api::Phase;
use serde_json::json;
use std::path::PathBuf;

/// Switches by hand, soaks a little, asks for blue again.
pub async fn run(cluster: Cluster, root: PathBuf) -> Result<()> {
    let mut show = Show::default();
    demo::begin_under_load(&cluster, &root).await?;
    let before = definitions(&cluster, "rabbitmq-0", &shop::administrator()).await?;
    let mut patch = quick_gate();
    if let Some(spec) = patch.as_object_mut() {
        spec.insert("soak".to_owned(), json!({"durationSeconds": 3600}));
    }
    cluster.apply(&migration::manifest(&cluster, &patch).await?).await?;
    let migration = Migration::new(&cluster, "orders");
    manual_exit::run(&cluster, &root, &migration, &mut show).await?;
    migration.wait_for(Phase::Soaking, 300, &mut |s| show.status(s)).await?;
    shop::reset_gaps(&cluster).await?;
    show.say("going back: spec.desiredOutcome: RolledBack");
    migration.patch(json!({"spec": {"desiredOutcome": "RolledBack"}})).await?;
    let status = migration
        .wait_until("blue to serve again, all cleaned", 180, &mut |s| show.status(s), &|s| {
            s.phase == Some(Phase::RolledBack) && migration::condition(s, api::conditions::READY) == "True"
        })
        .await?;
    expect(status.serving_side.as_deref() == Some("Blue"), "blue to serve")?;
    kills::audit(&cluster, &mut show).await?;
    let after = definitions(&cluster, "rabbitmq-0", &shop::administrator()).await?;
    expect(before == after, "blue's definitions to be as they were before")
}
