//! What the loss of each zone does to the majority.

use super::answer::{Findings, ReplicaPlacement, ZoneLoss};
use super::keys::NO_ZONE;

/// Draws up the what-if table. A replica whose zone is not known survives nothing.
pub(super) fn zone_losses(
    replicas: &[ReplicaPlacement],
    nodes_in: impl Fn(&str) -> Option<String>,
) -> Vec<ZoneLoss> {
    let mut zones: Vec<&String> = replicas.iter().filter_map(|replica| replica.zone.as_ref()).collect();
    zones.sort();
    zones.dedup();
    zones.into_iter().map(|zone| loss(zone, replicas, &nodes_in)).collect()
}

fn loss(zone: &str, replicas: &[ReplicaPlacement], zone_of: &impl Fn(&str) -> Option<String>) -> ZoneLoss {
    let survivors =
        replicas.iter().filter(|replica| replica.zone.as_deref().is_some_and(|other| other != zone)).count();
    let elsewhere = |replica: &&ReplicaPlacement| {
        replica.eligible_nodes.iter().any(|node| zone_of(node).is_some_and(|other| other != zone))
    };
    let lost = replicas.iter().filter(|replica| replica.zone.as_deref() == Some(zone));
    ZoneLoss {
        zone: zone.to_owned(),
        survivors,
        of: replicas.len(),
        quorum: survivors >= majority(replicas.len()),
        could_move: lost.filter(elsewhere).map(|replica| replica.ordinal).collect(),
    }
}

/// The members a quorum needs.
pub(super) const fn majority(members: usize) -> usize {
    members / 2 + 1
}

/// What the table means.
pub(super) fn judged(losses: &[ZoneLoss], replicas: &[ReplicaPlacement]) -> Findings {
    let mut findings = Findings::default();
    let all_located = replicas.iter().all(|replica| replica.zone.is_some());
    let fatal = losses.iter().filter(|loss| !loss.quorum);
    for loss in fatal {
        let text = format!(
            "the loss of zone {} leaves {} of {} replicas, quorum needs {}",
            loss.zone,
            loss.survivors,
            loss.of,
            majority(loss.of)
        );
        if loss.zone == NO_ZONE {
            let why = "the nodes carry no zone, so nobody can say what the loss of one would do";
            findings.unknowns.push(why.to_owned());
        } else if all_located {
            findings.problems.push(text);
        } else {
            findings.unknowns.push(text);
        }
    }
    if all_located && losses.len() == 2 && losses.iter().all(|loss| loss.zone != NO_ZONE) {
        findings.problems.push(
            "not zone-fault tolerant: of two zones one always holds what a majority cannot do without"
                .to_owned(),
        );
    }
    if replicas.is_empty() {
        findings.unknowns.push("there are no replicas to look at".to_owned());
    }
    findings
}
