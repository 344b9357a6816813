//! The Services that move, and all Services that lead to blue.

use super::pods::list_pods;
use super::{Answer, api, call, get_stateful_set, reading};
use crate::act::kubernetes::MANAGER;
use crate::body::Scene;
use ::api::LABEL_MIGRATION;
use decide::side::Side;
use decide::world::{EntranceView, Reading, ServiceView};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{Service, ServicePort};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use kube::api::ListParams;
use std::collections::BTreeMap;

/// Reads the moved Services in the plan's order; one that does not exist has an empty uid.
pub async fn services(scene: &Scene<'_>) -> Reading<Vec<ServiceView>> {
    let api = api::<Service>(scene);
    let reads = scene.plan.services.iter().map(|name| {
        let api = api.clone();
        async move {
            let found = call(&format!("get service {name}"), api.get_opt(name)).await?;
            let missing = ServiceView { name: name.clone(), ..ServiceView::default() };
            Ok(found.map_or(missing, |service| view(&service)))
        }
    });
    reading(try_join_all(reads).await)
}

fn view(service: &Service) -> ServiceView {
    let spec = service.spec.clone().unwrap_or_default();
    let owner = service.owner_references().iter().find(|owner| owner.controller == Some(true));
    ServiceView {
        name: service.name_any(),
        uid: service.uid().unwrap_or_default(),
        selector: spec.selector.unwrap_or_default(),
        target_ports: spec.ports.iter().flatten().map(target_port).collect(),
        manager: selector_manager(service.managed_fields()),
        owner: owner.map(|owner| format!("{}/{}", owner.kind, owner.name)),
    }
}

/// A port's target as text; an absent one is the port's own number.
fn target_port(port: &ServicePort) -> String {
    match &port.target_port {
        Some(IntOrString::String(name)) => name.clone(),
        Some(IntOrString::Int(0)) | None => port.port.to_string(),
        Some(IntOrString::Int(number)) => number.to_string(),
    }
}

/// Who owns the selector. Several may own it while its value is the same for all; then we do if we are among
/// them, else the one that wrote last.
pub(crate) fn selector_manager(fields: &[ManagedFieldsEntry]) -> Option<String> {
    let owns = |entry: &&ManagedFieldsEntry| {
        entry.fields_v1.as_ref().is_some_and(|fields| fields.0.pointer("/f:spec/f:selector").is_some())
    };
    let owners: Vec<_> = fields.iter().filter(owns).collect();
    let ours = owners.iter().find(|entry| entry.manager.as_deref() == Some(MANAGER));
    let newest = owners.iter().max_by_key(|entry| entry.time.as_ref().map(|time| time.0));
    ours.or(newest)?.manager.clone()
}

/// Reads all Services whose selector matches a pod of blue, or will match one.
pub async fn entrances(scene: &Scene<'_>) -> Reading<Vec<EntranceView>> {
    reading(read_entrances(scene).await)
}

async fn read_entrances(scene: &Scene<'_>) -> Answer<Vec<EntranceView>> {
    let name = &scene.plan.blue.stateful_set_name;
    let set = get_stateful_set(scene, Side::Blue).await?;
    let set = set.ok_or_else(|| format!("StatefulSet {name} does not exist"))?;
    // Labels of the live pods too: a Service may select one pod by the label that carries its name.
    let template = set.spec.as_ref().and_then(|spec| spec.template.metadata.clone());
    let mut labels: Vec<_> = list_pods(scene, &set).await?.iter().map(|pod| pod.labels().clone()).collect();
    labels.extend(template.and_then(|metadata| metadata.labels));
    let listed = call("list services", api::<Service>(scene).list(&ListParams::default())).await?;
    let mut entrances: Vec<_> = listed.iter().filter_map(|service| entrance(service, &labels)).collect();
    entrances.sort();
    Ok(entrances)
}

/// The Service as an entrance, where it selects one of the label sets and is not ours.
fn entrance(service: &Service, labels: &[BTreeMap<String, String>]) -> Option<EntranceView> {
    let spec = service.spec.as_ref()?;
    let selector = spec.selector.as_ref().filter(|selector| !selector.is_empty())?;
    let selects = |labels: &BTreeMap<String, String>| selector.iter().all(|(k, v)| labels.get(k) == Some(v));
    let leads = labels.iter().any(selects) && !service.labels().contains_key(LABEL_MIGRATION);
    let headless = spec.cluster_ip.as_deref() == Some("None");
    leads.then(|| EntranceView { name: service.name_any(), headless })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn service(spec: &Value) -> Service {
        serde_json::from_value(json!({ "metadata": { "name": "s" }, "spec": spec })).unwrap()
    }

    fn entry(manager: &str, time: &str, fields: &Value) -> ManagedFieldsEntry {
        serde_json::from_value(json!({ "manager": manager, "time": time, "fieldsV1": fields })).unwrap()
    }

    #[test]
    fn the_selectors_manager_is_the_last_writer_or_us() {
        let selector = json!({ "f:spec": { "f:selector": {} } });
        let helm = entry("helm", "2026-01-01T00:00:00Z", &selector);
        let kubectl = entry("kubectl", "2026-01-02T00:00:00Z", &selector);
        let ours = entry(MANAGER, "2025-01-01T00:00:00Z", &selector);
        let ports = entry("ports", "2026-01-03T00:00:00Z", &json!({ "f:spec": { "f:ports": {} } }));
        assert_eq!(
            selector_manager(&[helm.clone(), kubectl.clone(), ports.clone()]).as_deref(),
            Some("kubectl")
        );
        assert_eq!(selector_manager(&[helm, ours, kubectl]).as_deref(), Some(MANAGER));
        assert_eq!(selector_manager(&[ports]), None);
    }

    #[test]
    fn target_ports_are_text() {
        let spec = json!({ "ports": [
            { "port": 5672, "targetPort": "amqp" }, { "port": 15672 }, { "port": 80, "targetPort": 15692 },
        ]});
        assert_eq!(view(&service(&spec)).target_ports, ["amqp", "15672", "15692"]);
    }

    #[test]
    fn an_entrance_selects_a_pod() {
        let labels: BTreeMap<String, String> =
            [("app", "r"), ("pod", "r-0")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        let labels = [labels];
        assert!(entrance(&service(&json!({ "selector": { "app": "r" } })), &labels).is_some());
        assert!(entrance(&service(&json!({ "selector": { "app": "r", "x": "y" } })), &labels).is_none());
        assert!(entrance(&service(&json!({ "selector": {} })), &labels).is_none());
        assert!(entrance(&service(&json!({})), &labels).is_none());
        let headless =
            entrance(&service(&json!({ "selector": { "pod": "r-0" }, "clusterIP": "None" })), &labels);
        assert_eq!(headless.map(|e| e.headless), Some(true));
    }
}
