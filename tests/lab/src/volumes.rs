//! The disks of the zones: directories, offered as local volumes that only their zone can mount.

use std::fs;

use serde_json::{Value, json};

use crate::base::STORAGE_CLASS;
use crate::error::{Attempt, Result};
use crate::programs::run;
use crate::setup::Built;
use crate::topology::NODES;
use crate::{kubectl, paths, removal};

/// Two clusters of three need two per zone; runs to and fro, a third cluster and leftovers need more.
const PER_ZONE: u32 = 8;
/// A claim may ask for this much; nothing enforces it.
const CAPACITY: &str = "10Gi";

/// Makes all disks that are not there, and offers those anew whose claim is gone.
pub fn ensure(built: &Built) -> Result<()> {
    recycle(built)?;
    let mut objects = Vec::new();
    for (zone, number) in all() {
        let directory = paths::volumes(zone).join(number.to_string());
        fs::create_dir_all(&directory).attempt(|| format!("make {}", directory.display()))?;
        objects.push(object(zone, number));
    }
    kubectl::apply(built, "offer the zones' disks", &objects)
}

/// Empties the disks whose claim is gone and offers them anew; returns their names.
pub fn recycle(built: &Built) -> Result<Vec<String>> {
    let volumes = kubectl::get(built, &["persistentvolumes"])?;
    let gone: Vec<_> = all().filter(|(zone, number)| is_gone(&volumes, &name(zone, *number))).collect();
    let mut offered = Vec::new();
    for (zone, number) in gone {
        let name = name(zone, number);
        let mut delete = kubectl::command(built)?;
        run(&format!("withdraw {name}"), delete.args(["delete", "persistentvolume", &name, "--wait=true"]))?;
        removal::empty(&paths::volumes(zone).join(number.to_string()))?;
        kubectl::apply(built, &format!("offer {name}"), &[object(zone, number)])?;
        offered.push(name);
    }
    Ok(offered)
}

fn all() -> impl Iterator<Item = (&'static str, u32)> {
    NODES.into_iter().flat_map(|node| (1..=PER_ZONE).map(move |number| (node.zone, number)))
}

fn name(zone: &str, number: u32) -> String {
    format!("{zone}-{number}")
}

fn is_gone(volumes: &Value, name: &str) -> bool {
    let items = volumes["items"].as_array().into_iter().flatten();
    items
        .filter(|volume| volume["metadata"]["name"] == name)
        .any(|volume| matches!(volume["status"]["phase"].as_str(), Some("Released" | "Failed")))
}

fn object(zone: &str, number: u32) -> Value {
    let zone_label = "topology.kubernetes.io/zone";
    let term = json!({ "matchExpressions": [{ "key": zone_label, "operator": "In", "values": [zone] }] });
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": { "name": name(zone, number), "labels": { zone_label: zone } },
        "spec": {
            "capacity": { "storage": CAPACITY },
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": STORAGE_CLASS,
            "local": { "path": paths::volumes(zone).join(number.to_string()) },
            "nodeAffinity": { "required": { "nodeSelectorTerms": [term] } },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_released_and_failed_disks_of_that_name_are_gone() {
        let volume =
            |name: &str, phase: &str| json!({ "metadata": { "name": name }, "status": { "phase": phase } });
        let list = json!({ "items": [volume("lab-a-1", "Released"), volume("lab-a-2", "Bound")] });
        assert!(is_gone(&list, "lab-a-1"));
        assert!(!is_gone(&list, "lab-a-2"));
        assert!(!is_gone(&list, "lab-a-3"));
    }
}
