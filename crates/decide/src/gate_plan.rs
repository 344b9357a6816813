//! The gate as the plan asks for it: rules, numbers, and how long a window must be.

use crate::gate::{Enforcement, Metric, Percentile, Rule, Settings};
use crate::plan::Plan;
use api::spec::{self, Objective};

/// The plan's objectives as rules of the gate.
pub fn rules(plan: &Plan) -> Vec<Rule> {
    plan.gate.objectives.iter().map(rule).collect()
}

/// The plan's numbers as the gate's settings.
pub fn gate_settings(plan: &Plan) -> Settings {
    Settings {
        minimum_windows: u32::try_from(plan.gate.minimum_windows).unwrap_or(1).max(1),
        minimum_duration_seconds: u64::try_from(plan.gate.minimum_duration_seconds).unwrap_or(0),
        window_seconds: window_seconds(plan),
        ..Settings::default()
    }
}

/// Seconds of a window: as long as the spec says, and at least as long as the highest percentile needs at the
/// plan's rate. A window with fewer messages could never vote.
pub fn window_seconds(plan: &Plan) -> u64 {
    let asked = u64::try_from(plan.gate.window_seconds).unwrap_or(1).max(1);
    let rate = u64::try_from(plan.gate.load.rate_per_second).unwrap_or(1).max(1);
    asked.max(highest_percentile(plan).messages_needed().div_ceil(rate))
}

/// The highest percentile that an objective asks for; the median where there is none.
pub fn highest_percentile(plan: &Plan) -> Percentile {
    let percentiles = plan.gate.objectives.iter().map(|objective| percentile(objective.percentile));
    percentiles.max().unwrap_or(Percentile::P50)
}

fn rule(objective: &Objective) -> Rule {
    let limit = |limit: Option<i32>| limit.and_then(|limit| u32::try_from(limit).ok());
    Rule {
        name: objective.name.clone(),
        percentile: percentile(objective.percentile),
        metric: match objective.metric {
            spec::Metric::EndToEnd => Metric::EndToEnd,
            spec::Metric::Confirm => Metric::Confirm,
        },
        max_millis: limit(objective.max_millis),
        max_percent_of_blue: limit(objective.max_percent_of_blue),
        enforcement: match objective.enforcement {
            spec::Enforcement::Enforced => Enforcement::Enforced,
            spec::Enforcement::Advisory => Enforcement::Advisory,
        },
    }
}

const fn percentile(percentile: spec::Percentile) -> Percentile {
    match percentile {
        spec::Percentile::P50 => Percentile::P50,
        spec::Percentile::P95 => Percentile::P95,
        spec::Percentile::P99 => Percentile::P99,
        spec::Percentile::P999 => Percentile::P999,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::RabbitMQMigration;
    use serde_json::json;

    fn plan(gate: &serde_json::Value) -> Plan {
        let broker = |name: &str| {
            json!({"statefulSetName": name, "serviceName": name,
                "credentialsSecret": {"name": name, "username": "user"}})
        };
        let migration: RabbitMQMigration = serde_json::from_value(json!({
            "apiVersion": "rabbitmq-migration.io/v1alpha1", "kind": "RabbitMQMigration",
            "metadata": {"name": "orders", "namespace": "messaging", "uid": "0a1b2c3d"},
            "spec": {"blue": broker("blue"), "green": {"existing": broker("green")},
                "services": [{"name": "rabbitmq"}], "gate": gate},
        }))
        .unwrap();
        Plan::parse(&migration).unwrap()
    }

    #[test]
    fn the_default_gate_needs_six_seconds_for_p99_at_50_messages_per_second() {
        let plan = plan(&json!({}));
        assert_eq!(window_seconds(&plan), 6);
        let settings = gate_settings(&plan);
        assert_eq!((settings.minimum_windows, settings.minimum_duration_seconds), (24, 600));
        let rules = rules(&plan);
        assert_eq!(rules.len(), 1);
        assert_eq!(rules[0].max_millis, Some(100));
        assert_eq!(rules[0].max_percent_of_blue, Some(150));
    }

    #[test]
    fn a_short_window_is_kept_where_its_messages_suffice() {
        let objective = json!([{"name": "median", "percentile": "P50", "maxMillis": 100}]);
        let gate = json!({"windowSeconds": 1, "objectives": objective});
        assert_eq!(window_seconds(&plan(&gate)), 1);
        let objective = json!([{"name": "tail", "percentile": "P999", "maxMillis": 100}]);
        let gate = json!({"windowSeconds": 1, "objectives": objective, "load": {"ratePerSecond": 500}});
        assert_eq!(window_seconds(&plan(&gate)), 6);
    }
}
