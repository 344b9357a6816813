//! Green's rabbitmq.conf: our lines, then the template's, which win.

use super::blueprint::Blueprint;
use super::quantity::bytes;

/// Memory that a broker without a limit is set up for: 1 GiB, as the template's field says.
const UNLIMITED: u64 = 1 << 30;

/// Settings that exclude each other: one of the template's with this beginning replaces ours.
const GROUPS: [&str; 2] = ["vm_memory_high_watermark.", "disk_free_limit."];

/// The text of rabbitmq.conf.
pub(super) fn rabbitmq_conf(green: &Blueprint<'_>) -> String {
    let users = &green.template.config;
    let ours = ours(green).into_iter().filter(|(key, _)| !is_replaced(key, users));
    let mut lines: Vec<String> = ours.map(|(key, value)| format!("{key} = {value}")).collect();
    if !users.trim().is_empty() {
        lines.push("## from spec.green.template.config".to_owned());
        lines.push(users.trim_end().to_owned());
    }
    lines.push(String::new());
    lines.join("\n")
}

fn ours(green: &Blueprint<'_>) -> Vec<(&'static str, String)> {
    let memory =
        green.template.resources.limits.get("memory").and_then(|limit| bytes(limit)).unwrap_or(UNLIMITED);
    // 60 %, RabbitMQ's own default for the part of memory that may be used before publishers are stopped.
    let watermark = memory / 10 * 6;
    // As much disk as memory, so that all of memory can be written out; at most a fifth of the volume.
    let volume = bytes(&green.template.storage.size).unwrap_or(u64::MAX);
    let disk = watermark.min(volume / 5);
    vec![
        ("cluster_name", green.name.to_owned()),
        ("cluster_formation.peer_discovery_backend", "k8s".to_owned()),
        // Every cluster domain completes it.
        ("cluster_formation.k8s.host", "kubernetes.default".to_owned()),
        ("cluster_formation.k8s.address_type", "hostname".to_owned()),
        ("cluster_formation.k8s.service_name", green.headless.to_owned()),
        ("cluster_formation.k8s.hostname_suffix", green.hostname_suffix()),
        ("cluster_formation.target_cluster_size_hint", green.template.replicas.to_string()),
        ("cluster_partition_handling", "pause_minority".to_owned()),
        ("queue_leader_locator", "balanced".to_owned()),
        ("vm_memory_high_watermark.absolute", watermark.to_string()),
        ("disk_free_limit.absolute", disk.to_string()),
        ("loopback_users", "none".to_owned()),
        ("log.console", "true".to_owned()),
        ("log.console.level", "info".to_owned()),
        ("log.file", "false".to_owned()),
    ]
}

/// True where the template sets `key`, or another of its group.
fn is_replaced(key: &str, users: &str) -> bool {
    let group = GROUPS.iter().find(|group| key.starts_with(**group));
    let keys = users.lines().filter_map(|line| line.split_once('=')).map(|(key, _)| key.trim());
    keys.into_iter().any(|set| set == key || group.is_some_and(|group| set.starts_with(*group)))
}

#[cfg(test)]
mod tests {
    use super::super::blueprint::tests::{plan, service};
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn limits_are_absolute_and_follow_memory_and_volume() {
        let plan = plan();
        let green = Blueprint::new(&plan, &[service()], &BTreeMap::new()).unwrap();
        let text = rabbitmq_conf(&green);
        assert!(text.contains("vm_memory_high_watermark.absolute = 1288490184\n"), "{text}");
        assert!(text.contains("disk_free_limit.absolute = 1288490184\n"), "{text}");
        assert!(text.ends_with("## from spec.green.template.config\nchannel_max = 100\n"), "{text}");
    }

    #[test]
    fn the_templates_lines_win() {
        assert!(is_replaced("log.console", "a = b\n log.console=false"));
        assert!(is_replaced("vm_memory_high_watermark.absolute", "vm_memory_high_watermark.relative = 0.5"));
        assert!(!is_replaced("log.console", "# log.console = false\nlog.console.level = error"));
    }
}
