//! Node selector terms, as kube-scheduler reads them (component-helpers, `nodeaffinity`).

use std::collections::BTreeMap;

use super::view::{NodeView, Operator, Requirement, Term};

/// The only field a term may name.
const NAME_FIELD: &str = "metadata.name";

/// Whether terms select a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Selected {
    /// They do.
    Yes,
    /// They do not; what the nearest term wanted.
    No(String),
    /// A term is malformed and no other selects the node.
    Malformed(String),
}

/// Matches OR-ed terms. An empty term, and a list without terms, select nothing.
pub(super) fn select(terms: &[Term], node: &NodeView) -> Selected {
    let mut refusal = None;
    let mut malformed = None;
    for term in terms.iter().filter(|term| !term.expressions.is_empty() || !term.fields.is_empty()) {
        match term_selects(term, node) {
            Selected::Yes => return Selected::Yes,
            Selected::No(why) => refusal = Some(joined(refusal, &why)),
            Selected::Malformed(why) => malformed = malformed.or(Some(why)),
        }
    }
    match (malformed, refusal) {
        (Some(why), _) => Selected::Malformed(why),
        (None, Some(why)) => Selected::No(why),
        (None, None) => Selected::No("it has no term that could match any node".to_owned()),
    }
}

fn joined(before: Option<String>, why: &str) -> String {
    match before {
        Some(before) if before == why => before,
        Some(before) => format!("{before}; or {why}"),
        None => why.to_owned(),
    }
}

fn term_selects(term: &Term, node: &NodeView) -> Selected {
    let labels = term.expressions.iter().map(|requirement| holds(requirement, &node.labels));
    let fields = term.fields.iter().map(|requirement| field_holds(requirement, node));
    // A term is parsed as a whole before it is compared: malformed wins over not matching.
    let mut refusal = None;
    for answer in labels.chain(fields) {
        match answer {
            Selected::Yes => {}
            Selected::No(why) => refusal = refusal.or(Some(why)),
            Selected::Malformed(why) => return Selected::Malformed(why),
        }
    }
    refusal.map_or(Selected::Yes, Selected::No)
}

fn holds(requirement: &Requirement, labels: &BTreeMap<String, String>) -> Selected {
    if let Some(why) = malformed(requirement) {
        return Selected::Malformed(why);
    }
    let found = labels.get(&requirement.key);
    let listed = found.is_some_and(|value| requirement.values.contains(value));
    let yes = match &requirement.operator {
        Operator::In => listed,
        Operator::NotIn => !listed,
        Operator::Exists => found.is_some(),
        Operator::DoesNotExist => found.is_none(),
        Operator::Gt => compared(requirement, found).is_some_and(|(label, wanted)| label > wanted),
        Operator::Lt => compared(requirement, found).is_some_and(|(label, wanted)| label < wanted),
        Operator::Other(_) => false,
    };
    if yes { Selected::Yes } else { Selected::No(refusal(requirement, found)) }
}

fn malformed(requirement: &Requirement) -> Option<String> {
    let Requirement { key, operator, values } = requirement;
    let number = || values.first().is_some_and(|value| value.parse::<i64>().is_ok());
    let wrong = match operator {
        Operator::In | Operator::NotIn => values.is_empty().then_some("wants at least one value"),
        Operator::Exists | Operator::DoesNotExist => (!values.is_empty()).then_some("takes no values"),
        Operator::Gt | Operator::Lt => {
            (values.len() != 1 || !number()).then_some("wants exactly one whole number")
        }
        Operator::Other(_) => Some("is no operator we know"),
    };
    let wrong = if key.is_empty() { Some("has no key") } else { wrong };
    wrong.map(|wrong| format!("the requirement {key:?} {} {values:?} {wrong}", word(operator)))
}

fn compared(requirement: &Requirement, found: Option<&String>) -> Option<(i64, i64)> {
    let label = found?.parse().ok()?;
    let wanted = requirement.values.first()?.parse().ok()?;
    Some((label, wanted))
}

fn field_holds(requirement: &Requirement, node: &NodeView) -> Selected {
    let value = match (requirement.key.as_str(), requirement.values.as_slice()) {
        (NAME_FIELD, [value]) => value,
        (NAME_FIELD, _) => {
            return Selected::Malformed("matchFields wants exactly one value".to_owned());
        }
        (other, _) => return Selected::Malformed(format!("matchFields does not know {other}")),
    };
    let found = Some(&node.name);
    match &requirement.operator {
        Operator::In if *value == node.name => Selected::Yes,
        Operator::NotIn if *value != node.name => Selected::Yes,
        Operator::In | Operator::NotIn => Selected::No(refusal(requirement, found)),
        Operator::Exists | Operator::DoesNotExist | Operator::Gt | Operator::Lt | Operator::Other(_) => {
            Selected::Malformed(format!("matchFields does not know {}", word(&requirement.operator)))
        }
    }
}

fn refusal(requirement: &Requirement, found: Option<&String>) -> String {
    let found = found.map_or("no such label".to_owned(), |value| format!("{value:?}"));
    let values = match requirement.values.as_slice() {
        [] => String::new(),
        values => format!(" {}", quoted(values)),
    };
    format!("{} {}{values} is wanted, found {found}", requirement.key, word(&requirement.operator))
}

fn quoted(values: &[String]) -> String {
    let quoted: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
    quoted.join(" or ")
}

fn word(operator: &Operator) -> &str {
    match operator {
        Operator::In => "In",
        Operator::NotIn => "NotIn",
        Operator::Exists => "Exists",
        Operator::DoesNotExist => "DoesNotExist",
        Operator::Gt => "Gt",
        Operator::Lt => "Lt",
        Operator::Other(word) => word,
    }
}
