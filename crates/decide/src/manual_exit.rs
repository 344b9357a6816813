//! The commands by which a person without the operator reaches a stable side.

use crate::plan::Plan;
use crate::record::{OriginalService, SwitchRecord};
use crate::side::Side;

/// Commands that finish what the heading began: the Services to one side, that side unfenced, and every
/// client that is still on the other one closed, so that it comes over. `kubectl` with rights on Services and
/// `pods/exec` is all they need. Messages that are left on the other side are listed by the last command.
pub fn commands(plan: &Plan, record: &SwitchRecord) -> Vec<String> {
    let from = record.from.unwrap_or(Side::Blue);
    let to = from.other();
    let namespace = &plan.namespace;
    let mut commands = Vec::new();
    let exec = |side: Side| {
        format!("kubectl -n {namespace} exec {}-0 -- rabbitmqctl", plan.broker(side).stateful_set_name)
    };
    let fenced: Vec<String> = record
        .limits
        .iter()
        .filter(|limit| limit.side == to && limit.max_connections != Some(0))
        .map(|limit| shell_word(&limit.user))
        .collect();
    if !fenced.is_empty() {
        let users = fenced.join(" ");
        commands.push(format!(
            "for u in {users}; do {} clear_user_limits \"$u\" max-connections; done",
            exec(to)
        ));
    }
    commands.extend(record.services.iter().map(|service| point(namespace, service, to)));
    commands.push(format!("{} close_all_connections 'manual exit'", exec(from)));
    commands.push(format!("{} list_queues --no-table-headers name messages", exec(from)));
    commands
}

/// The command that points one Service.
pub fn point(namespace: &str, service: &OriginalService, to: Side) -> String {
    let selector = service.selector(to);
    let patch = serde_json::json!([{"op": "replace", "path": "/spec/selector", "value": selector}]);
    let patch = shell_word(&patch.to_string());
    format!("kubectl -n {namespace} patch service {} --type json -p {patch}", service.name)
}

/// A word that the shell takes as it is.
fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_in_a_user_name_stays_one_word() {
        assert_eq!(shell_word("o'brien"), "'o'\\''brien'");
        assert_eq!(shell_word("shop-orders"), "shop-orders");
    }
}
