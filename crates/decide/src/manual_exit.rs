//! The commands by which a person without the operator reaches a stable side.

use crate::plan::Plan;
use crate::record::{OriginalService, SwitchRecord};
use crate::side::Side;

/// Commands that finish what the heading began: the Services to one side, that side unfenced, and every
/// client that is still on the other one closed, so that it comes over. `kubectl` with rights on Services and
/// `pods/exec` is all they need. Messages that are left on the other side, which has `members` members, are listed
/// by the last command.
pub fn commands(plan: &Plan, record: &SwitchRecord, members: i64) -> Vec<String> {
    let from = record.from.unwrap_or(Side::Blue);
    let to = from.other();
    let namespace = &plan.namespace;
    let mut commands = Vec::new();
    let exec = |side: Side| {
        format!("kubectl -n {namespace} exec {}-0 -- rabbitmqctl", plan.broker(side).stateful_set_name)
    };
    let limits = || record.limits.iter().filter(|limit| limit.side == to);
    let unlimited: Vec<String> = limits()
        .filter(|limit| limit.max_connections.is_none())
        .map(|limit| shell_word(&limit.user))
        .collect();
    if !unlimited.is_empty() {
        let users = unlimited.join(" ");
        commands.push(format!(
            "for u in {users}; do {} clear_user_limits \"$u\" max-connections; done",
            exec(to)
        ));
    }
    for limit in limits() {
        if let Some(original) = limit.max_connections.filter(|limit| *limit != 0) {
            let user = shell_word(&limit.user);
            let value = shell_word(&format!("{{\"max-connections\":{original}}}"));
            commands.push(format!("{} set_user_limits {user} {value}", exec(to)));
        }
    }
    commands.extend(record.services.iter().map(|service| point(namespace, service, to)));
    // Each member closes its own only, and without --global those of the default vhost only.
    let set = &plan.broker(from).stateful_set_name;
    let pods: Vec<String> = (0..members).map(|member| format!("{set}-{member}")).collect();
    commands.push(format!(
        "for p in {}; do kubectl -n {namespace} exec \"$p\" -- rabbitmqctl close_all_connections --global \
         'manual exit'; done",
        pods.join(" ")
    ));
    // Without a vhost it would list the default one only.
    commands.push(format!(
        "{0} -q list_vhosts --no-table-headers | while read -r v; do \
         {0} -q list_queues --no-table-headers -p \"$v\" name messages; done",
        exec(from)
    ));
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

#[cfg(all(test, feature = "toy"))]
mod tests {
    use super::*;
    use crate::record::OriginalLimit;

    #[test]
    fn everybody_gets_his_own_limit_back_and_every_vhost_is_meant() {
        let plan = crate::toy::plan(&crate::toy::Settings::default()).unwrap();
        let limit = |side, user: &str, max_connections| OriginalLimit {
            side,
            user: user.to_owned(),
            max_connections,
        };
        let limits = vec![
            limit(Side::Green, "free", None),
            limit(Side::Green, "few", Some(7)),
            limit(Side::Green, "barred", Some(0)),
            limit(Side::Blue, "other-side", None),
        ];
        let record = SwitchRecord { from: Some(Side::Blue), limits, ..SwitchRecord::default() };
        let commands = commands(&plan, &record, 3).join("\n");
        assert!(commands.contains("for u in free; do"), "{commands}");
        assert!(commands.contains("set_user_limits few '{\"max-connections\":7}'"), "{commands}");
        assert!(!commands.contains("barred") && !commands.contains("other-side"), "{commands}");
        let blue = &plan.blue.stateful_set_name;
        assert!(commands.contains(&format!("for p in {blue}-0 {blue}-1 {blue}-2; do")), "{commands}");
        assert!(commands.contains("close_all_connections --global 'manual exit'"), "{commands}");
        assert!(commands.contains("list_queues --no-table-headers -p"), "{commands}");
    }

    #[test]
    fn a_quote_in_a_user_name_stays_one_word() {
        assert_eq!(shell_word("o'brien"), "'o'\\''brien'");
        assert_eq!(shell_word("shop-orders"), "shop-orders");
    }
}
