//! The rules of the custom resource definition as a real API server keeps them: the same cases as in the unit
//! ring.

use crate::cluster::{Cluster, NAMESPACE};
use crate::demo;
use crate::error::{Error, Result, expect};
use crate::migration::Migration;
use crate::operator;
use serde_json::{Value, json};
use std::path::Path;

/// The cases.
const CASES: &str = include_str!("../../../../crates/api/tests/cases/rules.json");

/// Tries every case. No operator may run: a rule about a change needs an object that stays as it is.
pub async fn run(cluster: &Cluster, root: &Path) -> Result<()> {
    demo::begin(cluster, root).await?;
    operator::uninstall(cluster).await?;
    operator::install_definitions(cluster, root).await?;
    cluster.make_namespace().await?;
    let table: Value = serde_json::from_str(CASES).map_err(|e| Error::Malformed(e.to_string()))?;
    let cases = table["cases"].as_array().ok_or_else(|| Error::Malformed("rules.json".to_owned()))?;
    let mut refused = 0;
    for case in cases {
        let name = case["name"].as_str().unwrap_or_default();
        let outcome = try_one(cluster, &table["minimal"], case).await;
        match (case["refused"].as_str(), outcome) {
            (None, Ok(())) => {}
            (Some(text), Err(Error::Program { output, .. })) if output.contains(text) => refused += 1,
            (wanted, got) => {
                let wanted =
                    wanted.map_or("it accepted".to_owned(), |text| format!("a refusal with {text:?}"));
                return Err(Error::Expected(format!("case {name}: {wanted}, got {got:?}")));
            }
        }
    }
    expect(refused > 0, "some cases to be refused")?;
    println!("   {} cases of the rules, {refused} refused as they should be", cases.len());
    Ok(())
}

/// Creates or changes the object of one case, without storing the outcome.
async fn try_one(cluster: &Cluster, minimal: &Value, case: &Value) -> Result<()> {
    let mut object = minimal.clone();
    if case["old"].is_null() {
        merge(&mut object, &case["patch"]);
        let create = ["create", "--dry-run=server", "-f", "-"];
        return cluster.kubectl_with(&create, &object.to_string()).await.map(|_| ());
    }
    merge(&mut object, &case["old"]);
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    cluster.kubectl_with(&["create", "-f", "-"], &object.to_string()).await?;
    let outcome = change(cluster, &name, &object["status"], &case["patch"]).await;
    Migration::new(cluster, &name).delete().await?;
    outcome
}

async fn change(cluster: &Cluster, name: &str, status: &Value, patch: &Value) -> Result<()> {
    let patch_with = ["-n", NAMESPACE, "patch", "rmqm", name, "--type=merge", "-p"];
    if !status.is_null() {
        let status = json!({"status": status}).to_string();
        cluster.kubectl(&[&patch_with[..], &[status.as_str(), "--subresource=status"]].concat()).await?;
    }
    let patch = patch.to_string();
    cluster.kubectl(&[&patch_with[..], &[patch.as_str(), "--dry-run=server"]].concat()).await.map(|_| ())
}

/// A JSON merge patch (RFC 7396): null takes away.
fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        into.clone_from(patch);
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    let Value::Object(object) = into else { return };
    for (key, value) in patch {
        if value.is_null() {
            object.remove(key);
        } else {
            merge(object.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::merge;
    use serde_json::json;

    #[test]
    fn null_takes_away_and_lists_are_replaced() {
        let mut object = json!({"a": {"b": 1, "c": 2}, "d": [1]});
        merge(&mut object, &json!({"a": {"b": null, "e": {"f": 3}}, "d": [2, 3]}));
        assert_eq!(object, json!({"a": {"c": 2, "e": {"f": 3}}, "d": [2, 3]}));
    }
}
