//! What we will call green and its ports is possible: names within their limits, one name per port.

use crate::checks::{Check, Finding, Severity};
use crate::plan::Plan;
use crate::ports::declared;
use crate::world::{Reading, World};

/// The check.
pub const CHECK: Check = Check { id: "green-names-fit", run };

/// A label's value has 63 characters, and the StatefulSet's controller writes its name, a dash and ten digits of
/// a hash into one. Pods, Services and host names of that length fit then, too.
const LONGEST: usize = 63 - 11;

fn run(plan: &Plan, world: &World) -> Vec<Finding> {
    if plan.template().is_none() {
        return Vec::new();
    }
    name(plan).into_iter().chain(ports(world)).collect()
}

/// Green's headless Service has green's name in front, and a Service's name is a DNS label.
fn name(plan: &Plan) -> Option<Finding> {
    let name = plan.green.stateful_set_name.as_str();
    let evidence = if name.len() > LONGEST {
        format!("green's StatefulSet {name} would have {} characters, more than {LONGEST}", name.len())
    } else if !name.starts_with(|c: char| c.is_ascii_lowercase()) || name.contains('.') {
        format!("green's Services cannot be named after {name}: a dot, or no letter at the beginning")
    } else {
        return None;
    };
    let longest = LONGEST.saturating_sub(name.len().saturating_sub(plan.name.len()));
    let remedy = format!(
        "make the migration anew under a name of at most {longest} characters that begins with a letter and has \
         no dot"
    );
    Some(Finding::new(Severity::Block, evidence, remedy))
}

/// Every target port of the moved Services has a number and a name of its own on green.
fn ports(world: &World) -> Option<Finding> {
    let (services, blue) = match (&world.services, &world.stateful_sets.blue) {
        (Reading::Seen(services), Reading::Seen(blue)) => (services, blue),
        (services, blue) => {
            let why = if services.seen().is_none() { services.why_not() } else { blue.why_not() };
            return Some(Finding::unknown(format!("target ports of the Services: {why}")));
        }
    };
    let targets = services.iter().flat_map(|service| &service.target_ports);
    let why = declared(targets, &blue.ports).err()?;
    let evidence = format!("green's pods cannot declare {why}");
    let remedy = "let the moved Services use numbers as targetPort, or names that blue's containers declare, one \
                  for each number";
    Some(Finding::new(Severity::Block, evidence, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{ServiceView, StatefulSetView};

    fn found(name: &str, targets: &[&str]) -> Vec<String> {
        let migration = serde_json::json!({
            "apiVersion": "rabbitmq-migration.io/v1alpha1", "kind": "RabbitMQMigration",
            "metadata": {"name": name, "namespace": "n", "uid": "0000-1111"},
            "spec": {
                "blue": {"statefulSetName": "rabbitmq", "serviceName": "rabbitmq-headless",
                    "credentialsSecret": {"name": "rabbitmq", "username": "user"}},
                "green": {"template": {"image": "rabbitmq:4.0-management",
                    "storage": {"className": "zonal", "size": "10Gi"}}},
                "services": [{"name": "rabbitmq"}],
            },
        });
        let plan = Plan::parse(&serde_json::from_value(migration).unwrap()).unwrap();
        let service = ServiceView {
            target_ports: targets.iter().map(|target| (*target).to_owned()).collect(),
            ..ServiceView::default()
        };
        let mut world = World { services: Reading::Seen(vec![service]), ..World::default() };
        let ports = [("special".to_owned(), 7777)].into();
        world.stateful_sets.blue = Reading::Seen(StatefulSetView { ports, ..StatefulSetView::default() });
        run(&plan, &world).into_iter().map(|finding| finding.evidence).collect()
    }

    #[test]
    fn names_have_their_limits() {
        assert!(found(&"m".repeat(46), &["amqp"]).is_empty());
        assert!(found(&"m".repeat(47), &["amqp"])[0].contains("53 characters, more than 52"));
        assert!(found("orders.v2", &[])[0].contains("cannot be named after orders.v2-green"));
        assert!(found("2nd", &[])[0].contains("cannot be named after 2nd-green"));
    }

    #[test]
    fn each_port_has_one_name_and_a_number() {
        assert!(found("orders", &["amqp", "stats", "special", "9999"]).is_empty());
        assert!(found("orders", &["nobodys"])[0].contains("a number for target port nobodys"));
        assert!(found("orders", &["stats", "http"])[0].contains("one name for port 15672"));
    }

    #[test]
    fn what_cannot_be_read_is_unknown() {
        let plan = crate::toy::plan(&crate::toy::Settings::default()).unwrap();
        let findings = run(&plan, &World::default());
        assert_eq!(findings.first().map(|finding| finding.severity), Some(Severity::Unknown));
    }
}
