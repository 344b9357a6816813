//! Access as `deploy/base` grants it: the operator runs here under the rules that it is shipped with.

use super::call::Call;
use serde::Deserialize;
use std::path::Path;

/// One rule of a role.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rule {
    /// Groups.
    pub api_groups: Vec<String>,
    /// Resources, with subresources.
    pub resources: Vec<String>,
    /// Verbs.
    pub verbs: Vec<String>,
    /// Names, where it is for some alone.
    #[serde(default)]
    pub resource_names: Vec<String>,
}

#[derive(Deserialize)]
struct Document {
    kind: String,
    #[serde(default)]
    rules: Vec<Rule>,
}

/// What the operator may do.
#[derive(Clone, Debug, Default)]
pub struct Grants {
    /// In the namespaces of migrations.
    pub namespaced: Vec<Rule>,
    /// Where those are bound, as the overlay one-namespace does it; everywhere where there is none.
    pub bound_in: Option<String>,
    /// Everywhere.
    pub cluster: Vec<Rule>,
    /// In the operator's own namespace.
    pub own: Vec<Rule>,
    /// `verb resource` that are taken away, whatever is granted.
    pub denied: Vec<String>,
}

impl Grants {
    /// Those of `deploy/base`.
    pub fn shipped() -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/base");
        let mut grants = Self::default();
        for file in ["cluster-role.yaml", "cluster-read-role.yaml", "lease-role.yaml"] {
            let text = std::fs::read_to_string(folder.join(file)).unwrap();
            for part in text.split("\n---\n") {
                let document: Document = serde_saphyr::from_str(&without_comments(part)).unwrap();
                match document.kind.as_str() {
                    "ClusterRole" if file == "cluster-role.yaml" => grants.namespaced.extend(document.rules),
                    "ClusterRole" => grants.cluster.extend(document.rules),
                    "Role" => grants.own.extend(document.rules),
                    _ => {}
                }
            }
        }
        grants
    }

    /// All rules.
    pub fn all(&self) -> impl Iterator<Item = &Rule> {
        self.namespaced.iter().chain(&self.cluster).chain(&self.own)
    }

    /// Whether `call` may be made by an operator in `home`.
    pub fn allow(&self, call: &Call, home: &str) -> bool {
        let grants = |rule: &Rule| {
            rule.api_groups.contains(&call.group)
                && rule.resources.contains(&call.resource)
                && rule.verbs.iter().any(|verb| verb == call.verb)
                && (rule.resource_names.is_empty() || rule.resource_names.contains(&call.name))
        };
        let own = call.namespace == home && self.own.iter().any(grants);
        let is_bound = self.bound_in.as_ref().is_none_or(|namespace| *namespace == call.namespace);
        let granted = self.cluster.iter().any(grants) || (is_bound && self.namespaced.iter().any(grants));
        // Everybody may ask what he may do.
        let asks = call.is_on("create", "selfsubjectaccessreviews");
        asks || (!self.denied.contains(&call.what()) && (own || granted))
    }

    /// Nobody can give what he has not: a role is made only by one who may do all that it allows.
    pub fn holds_what_it_gives(&self, call: &Call, home: &str) -> bool {
        if !call.is_write() || call.verb == "delete" || call.resource != "roles" {
            return true;
        }
        let lent: Vec<Rule> = serde_json::from_value(call.body["rules"].clone()).unwrap();
        lent.iter().flat_map(|rule| each(rule, call)).all(|call| self.allow(&call, home))
    }
}

/// What `rule` allows, as calls in the namespace of `call`.
fn each(rule: &Rule, call: &Call) -> Vec<Call> {
    let mut calls = Vec::new();
    for group in &rule.api_groups {
        for resource in &rule.resources {
            let verbs = ["get", "list", "watch", "create", "update", "patch", "delete"].into_iter();
            calls.extend(verbs.filter(|verb| rule.verbs.iter().any(|lent| lent == verb)).map(|verb| Call {
                verb,
                group: group.clone(),
                resource: resource.clone(),
                ..call.clone()
            }));
        }
    }
    calls
}

/// The document without comments.
fn without_comments(part: &str) -> String {
    part.lines().filter(|line| !line.trim_start().starts_with('#')).collect::<Vec<_>>().join("\n")
}
