//! Every queue is of a type that a handover can move.

use crate::checks::{Check, Finding, Severity};
use crate::plan::Plan;
use crate::world::World;
use crate::world::{QueueTotals, Reading};

/// The check.
pub const CHECK: Check = Check { id: "queue-types-supported", run };

fn run(_: &Plan, world: &World) -> Vec<Finding> {
    let queues = match &world.queues.blue {
        Reading::Seen(queues) => queues,
        unknown => return vec![Finding::unknown(format!("queues of blue: {}", unknown.why_not()))],
    };
    let names = |bad: &dyn Fn(&QueueTotals) -> bool| -> Vec<String> {
        let named = queues.iter().filter(|q| bad(q)).filter_map(|q| q.queue.as_ref());
        named.map(|q| format!("{}/{}", q.vhost, q.name)).collect()
    };
    let streams = names(&|q| q.kind == "stream");
    let exclusive = names(&|q| q.exclusive);
    let mut findings = Vec::new();
    if !streams.is_empty() {
        findings.push(Finding::new(
            Severity::Block,
            format!("{} streams cannot be moved: {}", streams.len(), first(&streams)),
            "move them by your own means and waive this check; their messages stay on blue",
        ));
    }
    if !exclusive.is_empty() {
        findings.push(Finding::new(
            Severity::Warn,
            format!("{} exclusive queues die with their connections: {}", exclusive.len(), first(&exclusive)),
            "their owners make new ones on green when they reconnect; what was in them is lost, as at any close",
        ));
    }
    findings
}

fn first(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(5).map(String::as_str).collect();
    shown.join(", ")
}
