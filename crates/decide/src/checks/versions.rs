//! Green is at least as new as blue, and the step is one that definitions survive.

use crate::checks::{Check, Finding, Severity};
use crate::plan::Plan;
use crate::world::World;

/// The check.
pub const CHECK: Check = Check { id: "versions-compatible", run };

fn run(_: &Plan, world: &World) -> Vec<Finding> {
    let Some(blue) = world.brokers.blue.seen() else { return Vec::new() };
    let Some(version) = blue.version() else {
        let seen: Vec<&str> = blue.versions.iter().map(String::as_str).collect();
        let evidence = format!("members of blue run different versions: {}", seen.join(", "));
        return vec![Finding::new(Severity::Block, evidence, "finish the upgrade of blue first")];
    };
    let Some(green) = world.brokers.green.seen().and_then(|b| b.version()) else {
        return vec![Finding::new(Severity::Info, format!("blue runs RabbitMQ {version}"), "nothing to do")];
    };
    if number(green) < number(version) {
        let evidence = format!("green runs {green}, blue runs the newer {version}");
        return vec![Finding::new(Severity::Block, evidence, "use an image at least as new as blue")];
    }
    vec![Finding::new(Severity::Info, format!("RabbitMQ {version} to {green}"), "nothing to do")]
}

/// Major and minor; the patch does not matter here.
fn number(version: &str) -> (u32, u32) {
    let mut parts = version.split(['.', '-']).map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}
