//! What is on a broker, looked at from outside: its definitions, and whether anything of ours is left.

use crate::cluster::Cluster;
use crate::error::{Error, Result, expect};
use crate::shop::{broker, management};
use rabbit::Credentials;
use serde_json::Value;

/// A broker's definitions; the order within a section means nothing.
pub async fn definitions(cluster: &Cluster, pod: &str, credentials: &Credentials) -> Result<Value> {
    let bytes = export(cluster, pod, credentials).await?;
    let mut value: Value =
        serde_json::from_slice(&bytes).map_err(|e| Error::Malformed(format!("definitions of {pod}: {e}")))?;
    for section in value.as_object_mut().into_iter().flat_map(|sections| sections.values_mut()) {
        if let Value::Array(items) = section {
            items.sort_by_key(Value::to_string);
        }
    }
    Ok(value)
}

/// Expects nothing of ours on a broker: no vhost, no user, no limit of 0.
pub async fn nothing_of_ours(cluster: &Cluster, pod: &str, credentials: &Credentials) -> Result<()> {
    let bytes = export(cluster, pod, credentials).await?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    expect(!text.contains("rmqm."), format!("nothing of ours in the definitions of {pod}"))?;
    let fenced = text.contains("\"max-connections\":0");
    expect(!fenced, format!("no user of {pod} to be fenced"))
}

async fn export(cluster: &Cluster, pod: &str, credentials: &Credentials) -> Result<Vec<u8>> {
    let side = management(cluster, pod, credentials).await?;
    side.export_definitions().await.map_err(broker("export definitions"))
}
