//! Where each moved Service leads: whose pods are behind each port, and who answers the handshake through it.

use super::pods::read_pods;
use super::{Answer, api, call, reading};
use crate::body::{Memory, Scene};
use decide::side::Side;
use decide::world::{PodView, PortRoute, Reading, RouteView};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{Service, ServicePort};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use kube::api::ListParams;
use std::collections::BTreeSet;
use std::time::Duration;

/// Label of an EndpointSlice with the name of its Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// How long a handshake may take. Brokers in one Kubernetes cluster answer within milliseconds.
const HANDSHAKE: Duration = Duration::from_secs(1);
/// AMQP's port.
const AMQP: i32 = 5672;

/// Reads the route of every moved Service. The endpoints are read before the handshakes: what answers is at
/// least as new as what is selected.
pub async fn routes(scene: &Scene<'_>, memory: &mut Memory) -> Reading<Vec<RouteView>> {
    let known =
        Sides { blue: uids(memory.world.pods.blue.seen()), green: uids(memory.world.pods.green.seen()) };
    reading(read(scene, known).await)
}

/// The uids of the pods of both sides.
#[derive(Clone, Debug, Default)]
struct Sides {
    blue: BTreeSet<String>,
    green: BTreeSet<String>,
}

fn uids(pods: Option<&Vec<PodView>>) -> BTreeSet<String> {
    pods.into_iter().flatten().map(|pod| pod.uid.clone()).collect()
}

async fn read(scene: &Scene<'_>, known: Sides) -> Answer<Vec<RouteView>> {
    let slices = slices(scene).await?;
    // A pod that nobody knows may be new since the pods were read: look once more before calling it a
    // stranger.
    let sides = if has_stranger(&slices, &known) { read_sides(scene).await? } else { known };
    try_join_all(scene.plan.services.iter().map(|name| route(scene, name, &slices, &sides))).await
}

async fn slices(scene: &Scene<'_>) -> Answer<Vec<EndpointSlice>> {
    let selector = format!("{SERVICE_NAME} in ({})", scene.plan.services.join(","));
    let params = ListParams::default().labels(&selector);
    Ok(call("list endpointslices", api::<EndpointSlice>(scene).list(&params)).await?.items)
}

async fn read_sides(scene: &Scene<'_>) -> Answer<Sides> {
    let blue = read_pods(scene, Side::Blue).await?;
    let green = read_pods(scene, Side::Green).await?;
    Ok(Sides { blue: uids(Some(&blue)), green: uids(Some(&green)) })
}

fn has_stranger(slices: &[EndpointSlice], sides: &Sides) -> bool {
    let pods = slices.iter().flat_map(|slice| &slice.endpoints).filter_map(pod_uid);
    pods.into_iter().any(|uid| !sides.blue.contains(uid) && !sides.green.contains(uid))
}

fn pod_uid(endpoint: &Endpoint) -> Option<&str> {
    endpoint.target_ref.as_ref()?.uid.as_deref()
}

async fn route(scene: &Scene<'_>, name: &str, all: &[EndpointSlice], sides: &Sides) -> Answer<RouteView> {
    let service = call(&format!("get service {name}"), api::<Service>(scene).get_opt(name)).await?;
    let Some(service) = service else {
        return Ok(RouteView { service: name.to_owned(), ..RouteView::default() });
    };
    let own: Vec<_> =
        all.iter().filter(|s| s.labels().get(SERVICE_NAME).is_some_and(|v| v == name)).collect();
    let answered_by = match amqp_address(&service) {
        Some(address) => {
            rabbit::amqp::handshake(&address, HANDSHAKE).await.ok().and_then(|id| id.cluster_name)
        }
        None => None,
    };
    Ok(RouteView { service: name.to_owned(), ports: ports(&service, &own, sides), answered_by })
}

/// Ready endpoints per port of the Service; a port without any is listed with zeros.
fn ports(service: &Service, slices: &[&EndpointSlice], sides: &Sides) -> Vec<PortRoute> {
    let declared = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
    declared
        .map(|port| {
            let port = port.name.clone().unwrap_or_default();
            let (mut blue, mut green, mut others) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
            for endpoint in slices.iter().filter(|slice| has_port(slice, &port)).flat_map(|s| ready(s)) {
                let (uid, address) = (pod_uid(endpoint), endpoint.addresses.first());
                match uid {
                    // One pod may stand in two slices, for IPv4 and IPv6.
                    Some(uid) if sides.blue.contains(uid) => blue.insert(uid.to_owned()),
                    Some(uid) if sides.green.contains(uid) => green.insert(uid.to_owned()),
                    Some(uid) => others.insert(uid.to_owned()),
                    None => others.insert(address.cloned().unwrap_or_default()),
                };
            }
            PortRoute { port, blue: blue.len(), green: green.len(), others: others.len() }
        })
        .collect()
}

/// True where the slice serves the port: one that no endpoint resolves (a target port by a name that no pod
/// declares) is in no slice.
fn has_port(slice: &EndpointSlice, name: &str) -> bool {
    let ports = slice.ports.iter().flatten();
    ports.into_iter().any(|port| port.port.is_some() && port.name.as_deref().unwrap_or_default() == name)
}

/// Endpoints that take new connections. An absent condition means ready, says Kubernetes.
fn ready(slice: &EndpointSlice) -> impl Iterator<Item = &Endpoint> {
    let is_ready = |e: &&Endpoint| e.conditions.as_ref().and_then(|c| c.ready).unwrap_or(true);
    slice.endpoints.iter().filter(is_ready)
}

/// Address of the Service's AMQP port: its cluster IP, or its DNS name where it has none.
fn amqp_address(service: &Service) -> Option<String> {
    let spec = service.spec.as_ref()?;
    let port = spec.ports.iter().flatten().find(|port| is_amqp(port))?;
    let ip = spec.cluster_ip.as_deref().filter(|ip| !ip.is_empty() && *ip != "None");
    if let Some(ip) = ip {
        let ip = if ip.contains(':') { format!("[{ip}]") } else { ip.to_owned() };
        return Some(format!("{ip}:{}", port.port));
    }
    // Without a cluster IP nothing translates ports: the pods' own port is the one to call.
    let number = match &port.target_port {
        Some(IntOrString::Int(number)) => *number,
        Some(IntOrString::String(_)) => AMQP,
        None => port.port,
    };
    Some(format!("{}.{}.svc:{number}", service.name_any(), service.namespace().unwrap_or_default()))
}

/// True for the port that speaks plain AMQP: by its target, its number, or its name.
fn is_amqp(port: &ServicePort) -> bool {
    match &port.target_port {
        Some(IntOrString::Int(number)) if *number != 0 => *number == AMQP,
        Some(IntOrString::String(name)) if name == "amqp" => true,
        Some(_) | None => port.port == AMQP || port.name.as_deref() == Some("amqp"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn slice(port: &Value, endpoints: &Value) -> EndpointSlice {
        serde_json::from_value(json!({ "addressType": "IPv4", "ports": [port], "endpoints": endpoints }))
            .unwrap()
    }

    fn service(spec: &Value) -> Service {
        serde_json::from_value(json!({ "metadata": { "name": "s", "namespace": "n" }, "spec": spec }))
            .unwrap()
    }

    fn endpoint(uid: &str, ready: Option<bool>) -> Value {
        json!({ "addresses": ["10.0.0.1"], "conditions": { "ready": ready },
            "targetRef": { "kind": "Pod", "uid": uid } })
    }

    #[test]
    fn ready_pods_are_counted_per_port_and_side() {
        let sides = Sides { blue: ["b".to_owned()].into(), green: ["g".to_owned()].into() };
        let endpoints = json!([endpoint("b", Some(true)), endpoint("g", Some(false)), endpoint("x", None),
                { "addresses": ["10.9.9.9"] }]);
        let amqp = slice(&json!({ "name": "amqp", "port": 5672 }), &endpoints);
        let again = amqp.clone();
        let service = service(&json!({ "ports": [
            { "name": "amqp", "port": 5672 }, { "name": "http", "port": 15672 },
        ]}));
        let want = [
            PortRoute { port: "amqp".to_owned(), blue: 1, green: 0, others: 2 },
            PortRoute { port: "http".to_owned(), blue: 0, green: 0, others: 0 },
        ];
        assert_eq!(ports(&service, &[&amqp, &again], &sides), want);
        assert!(has_stranger(&[amqp], &sides));
    }

    #[test]
    fn the_amqp_port_is_found() {
        let named = json!({ "clusterIP": "10.1.1.1", "ports": [
            { "name": "stats", "port": 80, "targetPort": "stats" },
            { "name": "a", "port": 5000, "targetPort": "amqp" },
        ]});
        let headless = json!({ "clusterIP": "None", "ports": [{ "port": 5671, "targetPort": 5672 }] });
        let six = json!({ "clusterIP": "fd00::1", "ports": [{ "port": 5672 }] });
        let none = json!({ "clusterIP": "10.1.1.1", "ports": [{ "port": 15672 }] });
        let cases = [
            (named, Some("10.1.1.1:5000")),
            (headless, Some("s.n.svc:5672")),
            (six, Some("[fd00::1]:5672")),
            (none, None),
        ];
        for (spec, want) in cases {
            assert_eq!(amqp_address(&service(&spec)).as_deref(), want);
        }
    }
}
