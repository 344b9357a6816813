//! Imports a definitions document in phases, so that a refusal is known by phase and limits come last.

use serde_json::value::RawValue;
use std::collections::BTreeMap;

use crate::error::{Cause, Error, Result};
use crate::management::Client;

/// Most objects in one request. 200: small enough to name the culprit's neighbourhood, large enough that fifty
/// thousand queues are 250 requests.
const MOST_OBJECTS: usize = 200;

/// Most bytes in one request. 1 MiB: far below the broker's own limit of 10 MB.
const MOST_BYTES: usize = 1024 * 1024;

/// One phase of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Virtual hosts with metadata.
    Vhosts,
    /// Users with hash, algorithm and their own limits.
    Users,
    /// Permissions.
    Permissions,
    /// Exchanges; before topic permissions, which name them.
    Exchanges,
    /// Topic permissions.
    TopicPermissions,
    /// Queues. Read back after it: success can hide a queue that was not made.
    Queues,
    /// Bindings; from 3.13 on a missing end is a refusal.
    Bindings,
    /// Policies.
    Policies,
    /// Parameters that move nothing and limit nothing.
    Parameters,
    /// Global parameters without `cluster_name`, which is the broker's identity.
    GlobalParameters,
    /// Operator policies and limits of vhosts.
    Limits,
    /// Shovels and federation upstreams, which **start at once**. Not in [`Phase::ORDER`].
    Movers,
}

impl Phase {
    /// All phases but [`Phase::Movers`], each after what it needs.
    pub const ORDER: [Self; 11] = [
        Self::Vhosts,
        Self::Users,
        Self::Permissions,
        Self::Exchanges,
        Self::TopicPermissions,
        Self::Queues,
        Self::Bindings,
        Self::Policies,
        Self::Parameters,
        Self::GlobalParameters,
        Self::Limits,
    ];

    /// The section of the document it reads.
    fn section(self) -> &'static str {
        match self {
            Self::Vhosts => "vhosts",
            Self::Users => "users",
            Self::Permissions => "permissions",
            Self::Exchanges => "exchanges",
            Self::TopicPermissions => "topic_permissions",
            Self::Queues => "queues",
            Self::Bindings => "bindings",
            Self::Policies => "policies",
            Self::Parameters | Self::Limits | Self::Movers => "parameters",
            Self::GlobalParameters => "global_parameters",
        }
    }

    /// Whether an object of its section is its own.
    fn takes(self, object: &RawValue) -> Result<bool, Cause> {
        #[derive(serde::Deserialize)]
        struct Head {
            #[serde(default)]
            component: String,
            #[serde(default)]
            name: serde_json::Value,
        }
        if !matches!(self, Self::Parameters | Self::Limits | Self::Movers | Self::GlobalParameters) {
            return Ok(true);
        }
        let head: Head = serde_json::from_str(object.get())
            .map_err(|_| Cause::Malformed("a parameter without component".into()))?;
        let phase = match (self, head.component.as_str()) {
            (Self::GlobalParameters, _) => return Ok(head.name != "cluster_name"),
            (_, "shovel" | "federation-upstream" | "federation-upstream-set") => Self::Movers,
            (_, "operator_policy" | "vhost-limits") => Self::Limits,
            _ => Self::Parameters,
        };
        Ok(phase == self)
    }
}

/// What one phase sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Imported {
    /// The phase.
    pub phase: Phase,
    /// Objects sent; **not** proof that they exist.
    pub objects: usize,
}

/// Imports a rewritten and unsealed document in [`Phase::ORDER`]. Tag: `administrator`. Not atomic: stops at
/// the first refusal, what was sent before stays; importing again is safe. Cut: as a refusal. Afterwards
/// [`read_back`] and compare.
pub async fn import(client: &Client, document: &[u8]) -> Result<Vec<Imported>> {
    let mut done = Vec::with_capacity(Phase::ORDER.len());
    for phase in Phase::ORDER {
        done.push(import_phase(client, document, phase).await?);
    }
    Ok(done)
}

/// Imports one phase, in requests of a few hundred objects. Contract as [`import`].
pub async fn import_phase(client: &Client, document: &[u8], phase: Phase) -> Result<Imported> {
    let failed = |cause| Error::Import { object: phase.section().to_owned(), cause };
    let objects = objects(document, phase).map_err(failed)?;
    let mut sent = 0;
    for chunk in chunks(&objects) {
        let range = format!("{} {}..{} of {}", phase.section(), sent, sent + chunk.len(), objects.len());
        client.import(&range, &body(phase, chunk)).await?;
        sent += chunk.len();
    }
    Ok(Imported { phase, objects: sent })
}

/// Exports what the broker has now. Tag: `administrator`. Changes nothing. **Holds secrets.**
pub async fn read_back(client: &Client) -> Result<Vec<u8>> {
    client.export_definitions().await
}

/// The phase's objects, borrowed raw.
fn objects(document: &[u8], phase: Phase) -> Result<Vec<&RawValue>, Cause> {
    let sections: BTreeMap<String, &RawValue> =
        serde_json::from_slice(document).map_err(|e| malformed("document", &e))?;
    let Some(section) = sections.get(phase.section()) else { return Ok(Vec::new()) };
    let all: Vec<&RawValue> =
        serde_json::from_str(section.get()).map_err(|e| malformed(phase.section(), &e))?;
    let mut own = Vec::with_capacity(all.len());
    for object in all {
        if phase.takes(object)? {
            own.push(object);
        }
    }
    Ok(own)
}

/// Where the parser stopped; what it read may be a secret.
fn malformed(what: &str, error: &serde_json::Error) -> Cause {
    Cause::Malformed(format!("{what} (line {}, column {})", error.line(), error.column()))
}

/// Splits by number and size; an object larger than the limit goes alone.
fn chunks<'a, 'b>(objects: &'b [&'a RawValue]) -> Vec<&'b [&'a RawValue]> {
    let mut chunks = Vec::new();
    let mut start = 0;
    let mut bytes = 0_usize;
    for (at, object) in objects.iter().enumerate() {
        let size = object.get().len() + 1;
        if at > start && (at - start >= MOST_OBJECTS || bytes.saturating_add(size) > MOST_BYTES) {
            chunks.push(&objects[start..at]);
            (start, bytes) = (at, 0);
        }
        bytes = bytes.saturating_add(size);
    }
    if start < objects.len() {
        chunks.push(&objects[start..]);
    }
    chunks
}

/// A partial document, objects byte for byte.
fn body(phase: Phase, objects: &[&RawValue]) -> Vec<u8> {
    let objects: Vec<&str> = objects.iter().map(|object| object.get()).collect();
    format!("{{\"{}\":[{}]}}", phase.section(), objects.join(",")).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &[u8] = br#"{"vhosts":[{"name":"v", "x":1.50}],
      "parameters":[{"component":"shovel","name":"s","value":{}},{"component":"operator_policy","name":"o"},
      {"component":"vhost-limits","name":"limits"},{"component":"custom","name":"c"}],
      "global_parameters":[{"name":"cluster_name","value":"blue"},{"name":"x","value":1}]}"#;

    fn names(phase: Phase) -> Vec<String> {
        objects(DOCUMENT, phase)
            .unwrap()
            .iter()
            .map(|o| serde_json::from_str::<serde_json::Value>(o.get()).unwrap()["name"].to_string())
            .collect()
    }

    #[test]
    fn each_parameter_has_one_phase_and_the_cluster_name_none() {
        assert_eq!(names(Phase::Movers), ["\"s\""]);
        assert_eq!(names(Phase::Limits), ["\"o\"", "\"limits\""]);
        assert_eq!(names(Phase::Parameters), ["\"c\""]);
        assert_eq!(names(Phase::GlobalParameters), ["\"x\""]);
        assert!(names(Phase::Queues).is_empty());
        assert!(!Phase::ORDER.contains(&Phase::Movers));
    }

    #[test]
    fn objects_travel_byte_for_byte() {
        let vhosts = objects(DOCUMENT, Phase::Vhosts).unwrap();
        assert_eq!(body(Phase::Vhosts, &vhosts), br#"{"vhosts":[{"name":"v", "x":1.50}]}"#);
    }

    #[test]
    fn chunks_are_bounded_and_complete() {
        let small = RawValue::from_string("{}".into()).unwrap();
        let big = RawValue::from_string(format!("\"{}\"", "x".repeat(MOST_BYTES))).unwrap();
        let many: Vec<&RawValue> = std::iter::repeat_n(&*small, 450).collect();
        assert_eq!(chunks(&many).iter().map(|c| c.len()).collect::<Vec<_>>(), [200, 200, 50]);
        let mixed = [&*small, &*big, &*small];
        assert_eq!(chunks(&mixed).iter().map(|c| c.len()).collect::<Vec<_>>(), [1, 1, 1]);
        assert!(chunks(&[]).is_empty());
    }
}
