//! The ports that green's broker declares, as its container's list.

use crate::error::ActError;
pub(super) use decide::ports::{AMQP, DISTRIBUTION, EPMD, MANAGEMENT};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Declared ports: number and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ports(BTreeMap<i32, String>);

impl Ports {
    /// Ports for the target ports `wanted`. A name that only blue knows gets blue's number.
    pub fn new<'a>(
        wanted: impl Iterator<Item = &'a String>,
        blue: &BTreeMap<String, i32>,
    ) -> Result<Self, ActError> {
        decide::ports::declared(wanted, blue).map(Self).map_err(|what| ActError::Missing { what })
    }

    /// The container's list of ports.
    pub fn declared(&self) -> Value {
        self.0
            .iter()
            .map(|(port, name)| json!({ "name": name, "containerPort": port, "protocol": "TCP" }))
            .collect()
    }
}
