//! Which nodes a volume can be used on: affinity, zone labels, and the translation of in-tree kinds.

use super::keys::{
    BETA_REGION, BETA_ZONE, HOSTNAME, NO_ZONE, REGION, ZONE, names_zones, stable_twin, translated_zone,
};
use super::selector::{Selected, select};
use super::view::{NodeView, Operator, Requirement, Source, Term, VolumeView};

/// Whether a volume can be used on a node. Pods have a say of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fit {
    /// It can.
    Yes,
    /// By its labels it can, but the scheduler compares other keys for its kind, and those do not match.
    DependsOnTranslation(String),
    /// It cannot, and why.
    No(String),
    /// Cannot be said, and why.
    Unknown(String),
}

impl Fit {
    /// Says whether the plain labels match.
    pub const fn matches_labels(&self) -> bool {
        match self {
            Self::Yes | Self::DependsOnTranslation(_) => true,
            Self::No(_) | Self::Unknown(_) => false,
        }
    }
}

/// Compares a volume with a node as kube-scheduler would.
pub fn fits(volume: &VolumeView, node: &NodeView) -> Fit {
    if let Some(why) = zone_label_conflict(volume, node) {
        return Fit::No(why);
    }
    let plain = affine(volume.node_affinity.as_deref(), node);
    let Some(translated) = translated_terms(volume) else {
        return plain;
    };
    match (plain, affine(Some(&translated), node)) {
        (_, Fit::Yes) => Fit::Yes,
        (Fit::Yes, Fit::No(why) | Fit::Unknown(why) | Fit::DependsOnTranslation(why)) => {
            Fit::DependsOnTranslation(format!("depends on translation to CSI: {why}"))
        }
        (plain @ (Fit::No(_) | Fit::Unknown(_) | Fit::DependsOnTranslation(_)), _) => plain,
    }
}

/// The zones a volume names, by affinity and labels; empty means it names none.
pub(super) fn named_zones(volume: &VolumeView) -> Vec<String> {
    let terms = volume.node_affinity.iter().flatten();
    let expressions = terms.flat_map(|term| &term.expressions);
    let by_affinity = expressions
        .filter(|requirement| requirement.operator == Operator::In && names_zones(&requirement.key))
        .flat_map(|requirement| requirement.values.iter().cloned());
    let labels = [ZONE, BETA_ZONE].into_iter().filter_map(|key| volume.labels.get(key));
    let by_label = labels.filter_map(|value| label_set(value)).flatten();
    let shown = |zone: String| if zone.is_empty() { NO_ZONE.to_owned() } else { zone };
    let mut zones: Vec<String> = by_affinity.chain(by_label).map(shown).collect();
    zones.sort();
    zones.dedup();
    zones
}

/// Says whether a volume is one machine's own disk.
pub(super) fn is_tied_to_machine(volume: &VolumeView) -> bool {
    let terms = volume.node_affinity.iter().flatten();
    volume.source == Source::Local
        || terms.flat_map(|term| &term.expressions).any(|requirement| requirement.key == HOSTNAME)
}

fn affine(terms: Option<&[Term]>, node: &NodeView) -> Fit {
    match terms.map(|terms| select(terms, node)) {
        None | Some(Selected::Yes) => Fit::Yes,
        Some(Selected::No(why)) => Fit::No(format!("node affinity: {why}")),
        Some(Selected::Malformed(why)) => Fit::Unknown(format!("cannot tell: {why}")),
    }
}

/// The scheduler's VolumeZone check: the volume's zone and region labels against the node's.
fn zone_label_conflict(volume: &VolumeView, node: &NodeView) -> Option<String> {
    let keys = [ZONE, REGION, BETA_ZONE, BETA_REGION];
    // A node without any of the four passes.
    if !keys.iter().any(|key| node.labels.contains_key(*key)) {
        return None;
    }
    keys.into_iter().find_map(|key| {
        let label = volume.labels.get(key)?;
        let allowed = label_set(label)?;
        let stable = stable_twin(key).and_then(|stable| node.labels.get(stable));
        let found = node.labels.get(key).or(stable);
        if found.is_some_and(|found| allowed.contains(found)) {
            return None;
        }
        let found = found.map_or("no such label".to_owned(), |found| format!("{found:?}"));
        Some(format!("the volume's own label {key} is {label:?}, the node has {found}"))
    })
}

/// Splits `a__b`. The scheduler ignores a label with an empty part.
fn label_set(label: &str) -> Option<Vec<String>> {
    let parts: Vec<String> = label.split("__").map(|part| part.trim().to_owned()).collect();
    if parts.iter().any(String::is_empty) { None } else { Some(parts) }
}

/// What csi-translation-lib makes of an in-tree volume; none for kinds that it leaves alone.
fn translated_terms(volume: &VolumeView) -> Option<Vec<Term>> {
    let driver_key = translated_zone(&volume.source)?;
    let terms = volume.node_affinity.clone().unwrap_or_default();
    let names_zone = |term: &Term| term.expressions.iter().any(|one| is_plain_zone(&one.key));
    if terms.iter().any(names_zone) {
        return Some(terms.into_iter().map(|term| rekeyed(term, driver_key)).collect());
    }
    let label = volume.labels.get(ZONE).or_else(|| volume.labels.get(BETA_ZONE));
    match label.and_then(|label| label_set(label)) {
        Some(zones) => Some(with_zone(terms, driver_key, &zones)),
        None => volume.node_affinity.clone(),
    }
}

fn is_plain_zone(key: &str) -> bool {
    key == ZONE || key == BETA_ZONE
}

fn rekeyed(term: Term, driver_key: &str) -> Term {
    let rekey = |requirement: Requirement| {
        let key = match requirement.key.as_str() {
            ZONE | BETA_ZONE => driver_key.to_owned(),
            BETA_REGION => REGION.to_owned(),
            _ => requirement.key,
        };
        Requirement { key, ..requirement }
    };
    Term { expressions: term.expressions.into_iter().map(rekey).collect(), fields: term.fields }
}

fn with_zone(terms: Vec<Term>, driver_key: &str, zones: &[String]) -> Vec<Term> {
    let zone = Requirement { key: driver_key.to_owned(), operator: Operator::In, values: zones.to_vec() };
    if terms.is_empty() {
        return vec![Term { expressions: vec![zone], fields: Vec::new() }];
    }
    let add = |term: Term| {
        let expressions = term.expressions.into_iter().chain([zone.clone()]).collect();
        Term { expressions, fields: term.fields }
    };
    terms.into_iter().map(add).collect()
}
