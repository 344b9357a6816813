//! Virtual hosts.

use std::collections::BTreeMap;

use reqwest::Method;
use serde::{Deserialize, Serialize};

use super::http::Client;
use super::json as field;
use crate::error::Result;

/// One virtual host.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Vhost {
    /// Its name.
    pub name: String,
    /// Its description.
    #[serde(default, deserialize_with = "field::text")]
    pub description: Option<String>,
    /// Its tags.
    #[serde(default, deserialize_with = "field::tags")]
    pub tags: Vec<String>,
    /// Queue type of plain declares; `None` also where the broker writes `undefined`.
    #[serde(default, deserialize_with = "field::text")]
    pub default_queue_type: Option<String>,
    /// State by node: `running`, `stopped`, `nodedown`.
    #[serde(default)]
    pub cluster_state: BTreeMap<String, String>,
}

impl Vhost {
    /// The running nodes on which it stands still: nobody can connect to it there.
    pub fn stopped_on(&self) -> impl Iterator<Item = &str> {
        self.cluster_state.iter().filter(|(_, state)| *state == "stopped").map(|(node, _)| node.as_str())
    }
}

/// What a virtual host is created with; what is `None` is not sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct VhostSpec {
    /// Description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Comma-separated tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<String>,
    /// Queue type of plain declares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_queue_type: Option<String>,
}

impl Client {
    /// Lists vhosts that we may see. Tag: `management` (all of them with `monitoring`). Changes nothing.
    pub async fn vhosts(&self) -> Result<Vec<Vhost>> {
        self.list("vhosts", &["api", "vhosts"]).await
    }

    /// Reads one vhost; `None` where there is none of that name. Tag: `management`. Changes nothing.
    pub async fn vhost(&self, name: &str) -> Result<Option<Vhost>> {
        match self.get(&format!("vhost {name}"), &["api", "vhosts", name]).await {
            Ok(vhost) => Ok(Some(vhost)),
            Err(error) if error.kind() == crate::Kind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Starts a vhost on every node on which it stands still, and tells on how many. A creation that is cut off
    /// leaves one that is there and runs nowhere (seen on 3.10.8 after the caller was killed), and creating it
    /// again does not start it. Tag: `administrator`. Idempotent.
    pub async fn start_vhost(&self, vhost: &Vhost) -> Result<usize> {
        let mut started = 0;
        for node in vhost.stopped_on() {
            let object = format!("vhost {} on {node}", vhost.name);
            let segments = ["api", "vhosts", &vhost.name, "start", node];
            self.change_slowly(&object, Method::POST, &segments, &serde_json::json!({})).await?;
            started += 1;
        }
        Ok(started)
    }

    /// Creates a vhost or changes its metadata. Tag: `administrator`. Idempotent.
    pub async fn put_vhost(&self, name: &str, spec: &VhostSpec) -> Result<()> {
        self.change_slowly(&format!("vhost {name}"), Method::PUT, &["api", "vhosts", name], spec).await
    }

    /// Deletes a vhost **with all it holds**; one that is not there is fine. Tag: `administrator`.
    pub async fn delete_vhost(&self, name: &str) -> Result<()> {
        self.remove_slowly(&format!("vhost {name}"), &["api", "vhosts", name]).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_vhost_parses() {
        let vhosts: Vec<Vhost> = serde_json::from_str(
            r#"[{"cluster_state":{"rabbit@b-0":"running"},"default_queue_type":"undefined","description":"",
            "metadata":{"description":"","tags":[]},"name":"orders","tags":[],"tracing":false}]"#,
        )
        .unwrap();
        assert_eq!(vhosts[0].default_queue_type, None);
        assert_eq!(vhosts[0].cluster_state["rabbit@b-0"], "running");
        assert_eq!(serde_json::to_string(&VhostSpec::default()).unwrap(), "{}");
    }

    #[test]
    fn only_what_stands_still_is_started() {
        let vhost: Vhost = serde_json::from_str(
            r#"{"name":"v","cluster_state":{"r@0":"running","r@1":"stopped","r@2":"nodedown"}}"#,
        )
        .unwrap();
        assert_eq!(vhost.stopped_on().collect::<Vec<_>>(), ["r@1"]);
    }
}
