//! The objects every lab starts with: the storage class and the rights of components that have none built in.

use serde_json::{Value, json};

use crate::error::Result;
use crate::kubectl;
use crate::setup::Built;

/// The storage class of disks that belong to a zone.
pub const STORAGE_CLASS: &str = "zonal";

/// Creates them.
pub fn apply(built: &Built) -> Result<()> {
    kubectl::apply(built, "create the storage class and the components' rights", &objects())
}

fn objects() -> Vec<Value> {
    let rules = json!([
        { "apiGroups": [""], "resources": ["endpoints", "services", "pods", "namespaces"], "verbs": ["list", "watch"] },
        { "apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"] },
    ]);
    vec![
        json!({
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": { "name": STORAGE_CLASS },
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": { "name": "lab-coredns" },
            "rules": rules,
        }),
        binding("lab-coredns", "lab-coredns", "coredns"),
        binding("lab-proxy", "system:node-proxier", "system:kube-proxy"),
    ]
}

fn binding(name: &str, role: &str, user: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
    })
}
