//! Every CEL rule of the CRD has cases that it accepts and cases that it refuses.
//!
//! The table is `cases/rules.json`, so that it can also be played on a real API server. Here an interpreter of
//! the makers of kube applies the schema's defaults and walks the schema as the API server does.

use crate::walk::{schema, violations, walk};
use kube_cel::{ValidationError, Validator, apply_defaults};
use serde_json::Value;
use std::collections::BTreeSet;

const TABLE: &str = include_str!("../cases/rules.json");

/// One rule: where it stands in the schema, its message and its expression.
type Rule = (String, String, String);

fn rules(schema: &Value) -> Vec<Rule> {
    let mut found = Vec::new();
    walk(schema, "", &mut |at, node| {
        for rule in node["x-kubernetes-validations"].as_array().into_iter().flatten() {
            let text = |key: &str| rule[key].as_str().unwrap_or_default().to_owned();
            found.push((at.to_owned(), text("message"), text("rule")));
        }
    });
    found
}

struct Case {
    name: String,
    at: String,
    rule: String,
    old: Option<Value>,
    new: Value,
    refused: Option<String>,
}

/// The table; the objects with their patches applied.
fn cases() -> Vec<Case> {
    let table: Value = serde_json::from_str(TABLE).unwrap();
    let case = |case: &Value| {
        let text = |key: &str| case[key].as_str().map(str::to_owned);
        let old = case.get("old").map(|patch| merged(&table["minimal"], patch));
        Case {
            name: text("name").unwrap(),
            at: text("at").unwrap(),
            rule: text("rule").unwrap(),
            new: merged(old.as_ref().unwrap_or(&table["minimal"]), &case["patch"]),
            old,
            refused: text("refused"),
        }
    };
    table["cases"].as_array().unwrap().iter().map(case).collect()
}

/// JSON merge patch, RFC 7396.
fn merged(target: &Value, patch: &Value) -> Value {
    let Value::Object(fields) = patch else { return patch.clone() };
    let mut result = target.as_object().cloned().unwrap_or_default();
    for (key, field) in fields {
        if field.is_null() {
            result.remove(key);
        } else {
            let before = result.get(key).cloned().unwrap_or_default();
            result.insert(key.clone(), merged(&before, field));
        }
    }
    Value::Object(result)
}

fn judge(schema: &Value, case: &Case) -> Vec<ValidationError> {
    let answer = Validator::new().validate(schema, &case.new, case.old.as_ref());
    answer.err().map(kube_cel::ValidationErrors::into_vec).unwrap_or_default()
}

/// Values that stand at a place of the schema: a rule without one is not evaluated.
fn reached<'a>(value: &'a Value, at: &str) -> Vec<&'a Value> {
    at.split('.').filter(|part| !part.is_empty()).fold(vec![value], |found, part| {
        let fields = found.into_iter().filter_map(|value| value.get(part.trim_end_matches("[]")));
        if part.ends_with("[]") {
            fields.flat_map(|list| list.as_array().into_iter().flatten()).collect()
        } else {
            fields.collect()
        }
    })
}

#[test]
fn every_case_is_judged_as_the_table_says() {
    let (schema, rules) = (schema(), rules(schema()));
    for case in cases() {
        let name = &case.name;
        let rule = rules.iter().find(|(at, message, _)| *at == case.at && *message == case.rule);
        let (_, _, expression) =
            rule.unwrap_or_else(|| panic!("{name}: no rule at {:?} says {:?}", case.at, case.rule));
        let defaulted = apply_defaults(schema, &case.new);
        assert!(!reached(&defaulted, &case.at).is_empty(), "{name}: nothing stands at {}", case.at);
        assert!(
            !expression.contains("oldSelf") || case.old.is_some(),
            "{name}: without `old` this rule is not evaluated"
        );
        let errors = judge(schema, &case);
        match &case.refused {
            None => assert!(errors.is_empty(), "{name}: refused: {errors:?}"),
            Some(text) => {
                // One refusal, and by the rule that the case is for: another one's would hide a dead rule.
                let told: Vec<_> = errors.iter().map(|e| (&e.rule, e.message.contains(text))).collect();
                assert_eq!(told, [(expression, true)], "{name}: {errors:?}");
            }
        }
    }
}

#[test]
fn every_rule_has_cases_of_both_kinds() {
    let cases = cases();
    for (at, message, expression) in rules(schema()) {
        assert!(!message.is_empty(), "a rule at {at:?} has no message: {expression}");
        let mine = cases.iter().filter(|case| case.at == at && case.rule == message);
        let kinds: BTreeSet<bool> = mine.map(|case| case.refused.is_some()).collect();
        assert_eq!(kinds.len(), 2, "needs an accepted and a refused case: {at:?}, {message}");
    }
}

/// Else a real API server would answer a case for another reason than the rule.
#[test]
fn no_case_breaks_anything_but_its_rule() {
    let schema = schema();
    let mut names = BTreeSet::new();
    for case in cases() {
        let broken = violations(schema, &case.new, "");
        assert!(broken.is_empty(), "{}: {broken:?}", case.name);
        let typed: Result<api::RabbitMQMigration, _> = serde_json::from_value(case.new);
        assert!(typed.is_ok(), "{}: {typed:?}", case.name);
        assert!(names.insert(case.name.clone()), "two cases have the name {}", case.name);
    }
}

/// Unknown functions and wrong types show only when a rule runs, and a rule that cannot run refuses all.
#[test]
fn no_rule_fails_to_run() {
    let schema = schema();
    for case in cases() {
        for error in judge(schema, &case) {
            assert_eq!(error.kind, kube_cel::ErrorKind::ValidationFailure, "{}: {error:?}", case.name);
        }
    }
}
