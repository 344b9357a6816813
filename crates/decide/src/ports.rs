//! The ports that green's broker declares: every name that a moved Service uses as its target, and the usual
//! ones. A named target port that no pod declares vanishes from the endpoints without an error.

use std::collections::BTreeMap;

/// Port numbers with the names that charts and people give them; the first name is ours.
const KNOWN: [(i32, &[&str]); 15] = [
    (5672, &["amqp"]),
    (5671, &["amqps", "amqp-tls", "amqp-ssl"]),
    (15672, &["http", "http-stats", "stats", "management", "manager"]),
    (15671, &["https", "management-tls"]),
    (15692, &["prometheus", "metrics"]),
    (15691, &["prometheus-tls", "metrics-tls"]),
    (4369, &["epmd"]),
    (25672, &["dist", "clustering"]),
    (1883, &["mqtt"]),
    (8883, &["mqtts"]),
    (61613, &["stomp"]),
    (61614, &["stomps"]),
    (5552, &["stream"]),
    (15675, &["web-mqtt"]),
    (15674, &["web-stomp"]),
];
/// What is declared in any case.
const ALWAYS: [i32; 5] = [AMQP, MANAGEMENT, 15692, EPMD, DISTRIBUTION];
/// AMQP.
pub const AMQP: i32 = 5672;
/// The management API.
pub const MANAGEMENT: i32 = 15672;
/// Erlang's port mapper.
pub const EPMD: i32 = 4369;
/// Erlang's distribution: what rabbit nodes say to each other.
pub const DISTRIBUTION: i32 = 25672;

/// Ports for the target ports `wanted`, by number. A name that only blue knows gets blue's number. `Err` says
/// what cannot be declared.
pub fn declared<'a>(
    wanted: impl Iterator<Item = &'a String>,
    blue: &BTreeMap<String, i32>,
) -> Result<BTreeMap<i32, String>, String> {
    let mut ports = BTreeMap::new();
    // A number as target needs no name.
    for name in wanted.filter(|target| target.parse::<u16>().is_err()) {
        let number = known(name).or_else(|| blue.get(name).copied());
        let number = number.ok_or_else(|| format!("a number for target port {name}"))?;
        // Server-side apply keys a container's ports by number: it can have one name only.
        match ports.insert(number, name.clone()) {
            Some(other) if other != *name => {
                return Err(format!("one name for port {number}: Services use {other} and {name}"));
            }
            Some(_) | None => {}
        }
    }
    for number in ALWAYS {
        if !ports.contains_key(&number) {
            let usual = usual_name(number);
            let taken = ports.values().any(|name| *name == usual);
            ports.insert(number, if taken { format!("{usual}-{number}") } else { usual.to_owned() });
        }
    }
    Ok(ports)
}

fn known(name: &str) -> Option<i32> {
    KNOWN.iter().find_map(|(number, names)| names.contains(&name).then_some(*number))
}

fn usual_name(number: i32) -> &'static str {
    let names = KNOWN.iter().find_map(|(known, names)| (*known == number).then_some(*names));
    names.and_then(<[_]>::first).copied().unwrap_or("port")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(wanted: &[&str], blue: &[(&str, i32)]) -> Result<Vec<String>, String> {
        let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
        let blue = blue.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect();
        let ports = declared(wanted.iter(), &blue)?;
        Ok(ports.into_iter().map(|(number, name)| format!("{name} {number}")).collect())
    }

    #[test]
    fn names_come_from_services_then_from_custom() {
        let usual = ["epmd 4369", "amqp 5672", "http 15672", "prometheus 15692", "dist 25672"];
        assert_eq!(of(&[], &[]).unwrap(), usual);
        let charted = ["epmd 4369", "amqp 5672", "stats 15672", "metrics 15692", "dist 25672"];
        assert_eq!(of(&["amqp", "stats", "metrics", "15672"], &[]).unwrap(), charted);
        assert!(of(&["special"], &[("special", 7777)]).unwrap().contains(&"special 7777".to_owned()));
    }

    #[test]
    fn what_cannot_be_is_named() {
        assert_eq!(of(&["special"], &[]).unwrap_err(), "a number for target port special");
        let two = "one name for port 15672: Services use stats and http";
        assert_eq!(of(&["stats", "http"], &[]).unwrap_err(), two);
    }
}
