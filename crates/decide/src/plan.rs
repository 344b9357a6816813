//! The raw spec, turned once into a checked plan. Nobody reads the spec after this.

use crate::names::Names;
use api::spec::{
    Broker, Cutover, Gate, GreenTemplate, Mode, Outcome, RabbitMQMigration, Retirement, Soak, Topology,
    Waiver,
};
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Why a spec cannot be used, though the API server took it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The field.
    pub field: &'static str,
    /// What is wrong, and what may be done.
    pub detail: String,
}

/// What people ordered outside the spec, and what happens to the object itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// The object is being deleted.
    pub deleted: bool,
    /// Value of the abort annotation.
    pub abort: Option<String>,
    /// Value of the pause annotation, or the spec's.
    pub pause: bool,
    /// Value of the retry annotation.
    pub retry: Option<String>,
    /// The digest that is approved, by annotation or spec.
    pub approve: Option<String>,
}

/// How green comes to be.
#[derive(Clone, Debug, PartialEq)]
pub enum GreenPlan {
    /// We make it.
    Template(Box<GreenTemplate>),
    /// It is there.
    Existing,
}

/// A checked plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Namespace of the migration.
    pub namespace: String,
    /// Name of the migration.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// Generation of the spec.
    pub generation: i64,
    /// Names of what we create.
    pub names: Names,
    /// What people ordered.
    pub orders: Orders,
    /// Check or migrate.
    pub mode: Mode,
    /// The end that is wanted.
    pub outcome: Outcome,
    /// Blue.
    pub blue: Broker,
    /// Green: where to find it. For a template these are the names that we give.
    pub green: Broker,
    /// How green comes to be.
    pub green_plan: GreenPlan,
    /// Names of the Services that move.
    pub services: Vec<String>,
    /// Names of the Services that stay.
    pub leave_services: Vec<String>,
    /// The gate.
    pub gate: Gate,
    /// How definitions are followed.
    pub topology: Topology,
    /// How traffic moves.
    pub cutover: Cutover,
    /// The watch after the switch.
    pub soak: Soak,
    /// What happens to blue.
    pub retirement: Retirement,
    /// Checks that may block no longer.
    pub waivers: Vec<Waiver>,
}

impl Plan {
    /// Checks `migration` and makes a plan of it.
    pub fn parse(migration: &RabbitMQMigration) -> Result<Self, Invalid> {
        let metadata = &migration.metadata;
        let spec = &migration.spec;
        let name = metadata.name.clone().unwrap_or_default();
        let uid = metadata.uid.clone().unwrap_or_default();
        let names = Names::new(&name, &uid);
        let (green, green_plan) = match (&spec.green.template, &spec.green.existing) {
            (Some(template), None) => (made_green(&names), GreenPlan::Template(Box::new(template.clone()))),
            (None, Some(existing)) => (existing.clone(), GreenPlan::Existing),
            (Some(_), Some(_)) | (None, None) => {
                return Err(invalid("spec.green", "set exactly one of template, existing"));
            }
        };
        if green.stateful_set_name == spec.blue.stateful_set_name {
            return Err(invalid("spec.green", "green must be another StatefulSet than blue"));
        }
        if spec.services.is_empty() {
            return Err(invalid("spec.services", "name at least one Service that moves"));
        }
        Ok(Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            uid,
            created: metadata.creation_timestamp.as_ref().map(|at| at.0),
            generation: metadata.generation.unwrap_or_default(),
            orders: orders(migration),
            mode: spec.mode,
            outcome: spec.desired_outcome,
            blue: spec.blue.clone(),
            green,
            green_plan,
            services: spec.services.iter().map(|s| s.name.clone()).collect(),
            leave_services: spec.leave_services.clone(),
            gate: spec.gate.clone(),
            topology: spec.topology.clone(),
            cutover: spec.cutover.clone(),
            soak: spec.soak.clone(),
            retirement: spec.retirement.clone(),
            waivers: spec.waivers.clone(),
            names,
            name,
        })
    }

    /// A broker's description.
    pub const fn broker(&self, side: crate::side::Side) -> &Broker {
        match side {
            crate::side::Side::Blue => &self.blue,
            crate::side::Side::Green => &self.green,
        }
    }

    /// The template, where we make green.
    pub fn template(&self) -> Option<&GreenTemplate> {
        match &self.green_plan {
            GreenPlan::Template(template) => Some(template),
            GreenPlan::Existing => None,
        }
    }

    /// Digest of the template, as an annotation on green's StatefulSet: a changed one is applied.
    pub fn template_digest(&self) -> Option<String> {
        let text = serde_json::to_string(self.template()?).unwrap_or_default();
        Some(digest(&[&text]))
    }

    /// True where a waiver names `check`.
    pub fn waives(&self, check: &str) -> bool {
        self.waivers.iter().any(|w| w.check == check)
    }

    /// Digest of all decisions: an approval names it. Rates, latencies and counts are not in it.
    pub fn digest(&self, versions: &str, rewrites: &[String]) -> String {
        let decisions = serde_json::json!({
            "blue": self.blue, "green": self.green, "template": self.template(),
            "services": self.services, "leaveServices": self.leave_services, "gate": self.gate,
            "topology": self.topology, "cutover": self.cutover, "soak": self.soak,
            "retirement": self.retirement, "waivers": self.waivers,
        });
        let mut parts = vec![decisions.to_string(), versions.to_owned()];
        parts.extend(rewrites.iter().cloned());
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        digest(&parts)
    }

    /// Selector keys by which a Service can tell green from blue: those it has already, but never the
    /// release's own label, which a chart puts on blue and green alike.
    pub fn green_selector(
        blue_selector: &BTreeMap<String, String>,
        green_labels: &BTreeMap<String, String>,
    ) -> Option<BTreeMap<String, String>> {
        let usable: BTreeMap<String, String> = blue_selector
            .iter()
            .filter(|(key, _)| key.as_str() != INSTANCE)
            .filter_map(|(key, blue)| {
                let green = green_labels.get(key)?;
                (green != blue).then(|| (key.clone(), green.clone()))
            })
            .collect();
        (!usable.is_empty()).then_some(usable)
    }

    /// The labels that green's pods need so that every moved Service can select them.
    pub fn green_labels<'a>(
        &self,
        selectors: impl Iterator<Item = &'a BTreeMap<String, String>>,
    ) -> BTreeMap<String, String> {
        selectors
            .flat_map(|s| s.keys())
            .filter(|key| key.as_str() != INSTANCE)
            .map(|key| (key.clone(), self.names.green()))
            .collect()
    }
}

/// The release label of charts: the same on all that a release installs, so it tells nobody apart.
pub const INSTANCE: &str = "app.kubernetes.io/instance";

fn invalid(field: &'static str, detail: &str) -> Invalid {
    Invalid { field, detail: detail.to_owned() }
}

/// Where green will be, where we make it.
fn made_green(names: &Names) -> Broker {
    let green = names.green();
    Broker {
        service_name: format!("{green}-headless"),
        credentials_secret: api::spec::CredentialsSecret {
            name: format!("{green}-credentials"),
            password_key: "password".to_owned(),
            username: None,
            username_key: Some("username".to_owned()),
        },
        stateful_set_name: green,
    }
}

fn orders(migration: &RabbitMQMigration) -> Orders {
    let annotation = |key: &str| migration.metadata.annotations.as_ref().and_then(|a| a.get(key)).cloned();
    Orders {
        deleted: migration.metadata.deletion_timestamp.is_some(),
        abort: annotation(api::ABORT),
        pause: migration.spec.paused || annotation(api::PAUSE).is_some_and(|v| v != "false"),
        retry: annotation(api::RETRY),
        approve: annotation(api::APPROVE).or_else(|| migration.spec.approved_plan.clone()),
    }
}

/// A short digest: sixteen hexadecimal digits of SHA-256 over length-prefixed parts.
pub fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part.as_bytes());
    }
    let mut text = hash.finalize().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    text.truncate(16);
    text
}
