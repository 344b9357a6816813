//! A whole migration under load.

use crate::brokers::nothing_of_ours;
use crate::cluster::Cluster;
use crate::demo;
use crate::error::Result;
use std::path::PathBuf;

/// Runs the demo, which expects a clean ledger, and looks for what is left of ours on both brokers.
pub async fn run(cluster: Cluster, root: PathBuf) -> Result<()> {
    demo::run(&cluster, &root).await?;
    nothing_of_ours(&cluster, "rabbitmq-0", &crate::shop::administrator()).await?;
    let green = crate::shop::green_administrator(&cluster, demo::GREEN).await?;
    nothing_of_ours(&cluster, &format!("{}-0", demo::GREEN), &green).await
}
