//! Green's disruption budget: a drain never takes the majority.

use super::blueprint::Blueprint;
use serde_json::{Value, json};

/// The budget. A single replica may be taken, since otherwise its Kubernetes node could never be drained.
pub(super) fn disruption_budget(green: &Blueprint<'_>) -> Value {
    let may_go = (green.template.replicas.saturating_sub(1) / 2).max(1);
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": green.metadata(green.name),
        "spec": { "maxUnavailable": may_go, "selector": { "matchLabels": green.selector() } },
    })
}

#[cfg(test)]
mod tests {
    use super::super::blueprint::tests::{is_exactly, plan, service};
    use super::*;
    use k8s_openapi::api::policy::v1::PodDisruptionBudget;
    use std::collections::BTreeMap;

    #[test]
    fn a_majority_stays() {
        let plan = plan();
        let green = Blueprint::new(&plan, &[service()], &BTreeMap::new()).unwrap();
        let budget = disruption_budget(&green);
        is_exactly::<PodDisruptionBudget>(&budget);
        assert_eq!(budget.pointer("/spec/maxUnavailable"), Some(&json!(1)));
    }
}
