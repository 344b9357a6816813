//! Label keys that say where a node or a volume is.

use super::view::{NodeView, Source};

/// The stable zone key.
pub(super) const ZONE: &str = "topology.kubernetes.io/zone";
/// The stable region key.
pub(super) const REGION: &str = "topology.kubernetes.io/region";
/// The zone key of before 1.17.
pub(super) const BETA_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
/// The region key of before 1.17.
pub(super) const BETA_REGION: &str = "failure-domain.beta.kubernetes.io/region";
/// Azure's own key; empty on nodes outside any zone.
pub(super) const AZURE_ZONE: &str = "topology.disk.csi.azure.com/zone";
/// What every Azure node carries some label of.
const AZURE_PREFIX: &str = "kubernetes.azure.com/";
/// The host's key: a volume tied to it lives and dies with one machine.
pub(super) const HOSTNAME: &str = "kubernetes.io/hostname";
/// How an empty zone is shown.
pub(super) const NO_ZONE: &str = "no zone";

/// The stable twin of a beta key.
pub(super) fn stable_twin(key: &str) -> Option<&'static str> {
    match key {
        BETA_ZONE => Some(ZONE),
        BETA_REGION => Some(REGION),
        _ => None,
    }
}

/// Says whether a key names zones, by its last part: drivers have keys of their own.
pub(super) fn names_zones(key: &str) -> bool {
    key == BETA_ZONE || (key.starts_with("topology.") && key.ends_with("/zone"))
}

/// The key that the scheduler compares instead of the zone key, for the kinds it translates to CSI.
pub(super) fn translated_zone(source: &Source) -> Option<&'static str> {
    match source {
        Source::AwsElasticBlockStore => Some("topology.ebs.csi.aws.com/zone"),
        Source::AzureDisk => Some(AZURE_ZONE),
        Source::GcePersistentDisk => Some("topology.gke.io/zone"),
        Source::Cinder => Some("topology.cinder.csi.openstack.org/zone"),
        Source::Csi(_) | Source::Local | Source::Other => None,
    }
}

/// Where a node is, as far as its labels can be believed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Zone {
    /// A zone.
    Named(String),
    /// An Azure fault domain: racks of one data center, not a zone.
    FaultDomain(String),
    /// The node says that it is in no zone, or says nothing.
    None,
}

/// Reads a node's zone. On Azure an unzoned node carries its fault domain under the general zone key.
pub(super) fn zone_of(node: &NodeView) -> Zone {
    let general = node.labels.get(ZONE).or_else(|| node.labels.get(BETA_ZONE));
    let azure = node.labels.get(AZURE_ZONE);
    match (general, azure) {
        (Some(zone), Some(disk)) if disk.is_empty() && !zone.is_empty() => Zone::FaultDomain(zone.clone()),
        (Some(zone), _) if zone.is_empty() => Zone::None,
        (Some(zone), None) if is_number(zone) && is_azure(node) => Zone::FaultDomain(zone.clone()),
        (Some(zone), _) => Zone::Named(zone.clone()),
        (None, Some(disk)) if !disk.is_empty() => Zone::Named(disk.clone()),
        (None, Some(_) | None) => Zone::None,
    }
}

impl Zone {
    /// How it is shown: a fault domain is no zone.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Named(zone) => zone.clone(),
            Self::FaultDomain(_) | Self::None => NO_ZONE.to_owned(),
        }
    }
}

fn is_number(zone: &str) -> bool {
    !zone.is_empty() && zone.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_azure(node: &NodeView) -> bool {
    node.labels.keys().any(|key| key.starts_with(AZURE_PREFIX))
}
