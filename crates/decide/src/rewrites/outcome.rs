//! What comes out of a rewrite: the document for green, and everything that was changed or left out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::section::{ObjectRef, Section};

/// What a change asks of people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decision {
    /// Nothing: means the same on green.
    Info,
    /// Consent: something behaves differently, or may be lost.
    NeedsConsent,
    /// Nothing: left out because green must not have it.
    Dropped,
    /// A correction on blue or a choice in the spec: green would refuse it as it is.
    Blocks,
}

/// One thing done to one object, or found about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The rewrite, kebab-case.
    pub rule: String,
    /// The object.
    pub object: ObjectRef,
    /// What and why, in one sentence, without values that may be secret.
    pub what: String,
    /// What it asks of people.
    pub decision: Decision,
}

/// An object left out for now, to be put onto green at the switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The object.
    pub object: ObjectRef,
    /// Its text as green can take it then, seals included.
    pub raw: String,
}

/// How many queues are of a kind that comes and goes: followed and counted, not compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Classes {
    /// Exclusive queues.
    pub exclusive: u32,
    /// Queues named by the server.
    pub server_named: u32,
    /// Queues deleted with their last consumer.
    pub auto_delete: u32,
    /// Queues that expire when unused, by argument or policy.
    pub expiring: u32,
    /// Objects of `topology.dynamic`.
    pub dynamic: u32,
}

/// Green's definitions, and how they differ from blue's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rewritten {
    /// The definitions for green; objects without a change are byte-equal to blue's.
    pub document: Vec<u8>,
    /// SHA-256 of the document, in hexadecimal.
    pub digest: String,
    /// Everything done, in the order of the rewrites.
    pub changes: Vec<Change>,
    /// Shovels, upstreams and federation policies that wait for the switch.
    pub held: Vec<Held>,
    /// Objects per section of the document.
    pub counts: BTreeMap<Section, usize>,
    /// Queues that come and go.
    pub classes: Classes,
}

/// Why definitions cannot be rewritten at all. Nothing may be written to green.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Malformed {
    /// Not JSON by RFC 8259, or a key twice; the text says where.
    Json {
        /// What is wrong, with line and column.
        detail: String,
    },
    /// The export of one vhost: no users, no permissions, objects without a vhost.
    SingleVhost {
        /// The vhost it was taken from, if it says so.
        vhost: Option<String>,
    },
    /// A section is not a list of objects.
    Section {
        /// The section's key.
        key: String,
    },
    /// An object lacks what identifies it.
    Object {
        /// The section's key.
        key: String,
        /// Its place in the list, from 0.
        position: usize,
        /// The field that is missing or of the wrong kind.
        field: String,
    },
    /// An object lives in a vhost that the definitions do not have: green answers 400.
    VhostAbsent {
        /// The object.
        object: ObjectRef,
    },
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Json { detail } => write!(f, "the definitions are not strict JSON: {detail}"),
            Self::SingleVhost { vhost } => {
                let of = vhost.as_ref().map(|vhost| format!(" {vhost}")).unwrap_or_default();
                write!(
                    f,
                    "this is the export of one vhost{of}: users and permissions are missing, take the export \
                     of the whole cluster"
                )
            }
            Self::Section { key } => write!(f, "{key} is not a list of objects"),
            Self::Object { key, position, field } => {
                write!(f, "object {position} of {key} has no usable {field}")
            }
            Self::VhostAbsent { object } => write!(f, "{object}: the definitions have no such vhost"),
        }
    }
}

impl std::error::Error for Malformed {}

/// An object that is on both sides and not the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The object.
    pub object: ObjectRef,
    /// The fields that differ, without their values.
    pub fields: Vec<String>,
}

/// How green's definitions stand beside what was meant for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// Meant for green and not there.
    pub missing: Vec<ObjectRef>,
    /// There, and different.
    pub different: Vec<Difference>,
    /// On green, and nobody meant it.
    pub extra: Vec<ObjectRef>,
    /// Objects that are equal.
    pub equal: usize,
    /// Objects that come and go, left out of the comparison.
    pub not_compared: usize,
    /// Whether nothing is missing, different or extra.
    pub in_sync: bool,
    /// The same in one line.
    pub summary: String,
}
