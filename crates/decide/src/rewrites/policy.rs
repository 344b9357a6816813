//! Which policy is effective for a queue or exchange: highest priority, PCRE search, scope.

use std::collections::HashMap;

use fancy_regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::draft::{Draft, Item};
use super::object::{Object, argument, flag, text};
use super::section::Section;

/// Steps a pattern may go back. Names have at most 255 bytes, so honest patterns take a few hundred; a hostile
/// one, tried on tens of thousands of queues, must not hold up the pass.
const BACKTRACKS: usize = 20_000;

/// A pattern as RabbitMQ searches it: lookaround, not anchored.
pub(crate) struct Pattern(Option<Regex>);

impl Pattern {
    /// Compiles; a pattern that does not compile matches nobody knows what.
    pub(crate) fn new(pattern: &str) -> Self {
        Self(RegexBuilder::new(pattern).backtrack_limit(BACKTRACKS).build().ok())
    }

    /// Says whether it matches; none when that cannot be said.
    pub(crate) fn matches(&self, name: &str) -> Option<bool> {
        self.0.as_ref()?.is_match(name).ok()
    }

    /// Says whether it compiled.
    pub(super) const fn is_usable(&self) -> bool {
        self.0.is_some()
    }
}

/// What a policy may apply to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// An exchange.
    Exchange,
    /// A classic queue.
    Classic,
    /// A quorum queue.
    Quorum,
    /// A stream.
    Stream,
    /// A queue of a type we do not know.
    OtherQueue,
}

impl Kind {
    /// A queue's kind by its argument, else by the type the broker wrote, else classic.
    pub(super) fn of_queue(queue: &Object) -> Self {
        let by_argument = argument(queue, "x-queue-type").and_then(Value::as_str);
        match by_argument.unwrap_or_else(|| text(queue, "type")) {
            "" | "classic" | "rabbit_classic_queue" => Self::Classic,
            "quorum" | "rabbit_quorum_queue" => Self::Quorum,
            "stream" | "rabbit_stream_queue" => Self::Stream,
            _ => Self::OtherQueue,
        }
    }

    fn is_in_scope(self, apply_to: &str) -> bool {
        match self {
            Self::Exchange => matches!(apply_to, "" | "all" | "exchanges"),
            Self::Classic => matches!(apply_to, "" | "all" | "queues" | "classic_queues"),
            Self::Quorum => matches!(apply_to, "" | "all" | "queues" | "quorum_queues"),
            Self::Stream => matches!(apply_to, "" | "all" | "queues" | "streams"),
            Self::OtherQueue => matches!(apply_to, "" | "all" | "queues"),
        }
    }
}

/// A policy, ready to be matched.
pub(super) struct Policy {
    pub(super) vhost: String,
    pub(super) name: String,
    pub(super) definition: Object,
    priority: i64,
    apply_to: String,
    pattern: Pattern,
}

/// Which policy is effective.
pub(super) enum Effective<'p> {
    /// None matches.
    Nothing,
    /// This one.
    One(&'p Policy),
    /// Several of one priority say different things; which one wins is not defined.
    Tie(&'p Policy, &'p Policy),
    /// The pattern of this one cannot be evaluated, and it might win.
    Unknown(&'p Policy),
}

impl Effective<'_> {
    /// The definition, where it is known.
    pub(super) fn definition(&self) -> Option<&Object> {
        match self {
            Self::One(policy) => Some(&policy.definition),
            Self::Nothing | Self::Tie(_, _) | Self::Unknown(_) => None,
        }
    }
}

/// Whose policies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Layer {
    /// Users' policies.
    User,
    /// Operator policies, which RabbitMQ merges over users'.
    Operator,
}

/// The policies of one layer, per vhost, the highest priority first.
pub(super) struct Policies(HashMap<String, Vec<Policy>>);

impl Policies {
    /// As blue has them, without ours.
    pub(super) fn on_blue(draft: &Draft<'_>, layer: Layer) -> Self {
        Self::of(draft.items(section(layer)).filter_map(Item::on_blue), layer)
    }

    /// As they stand.
    pub(super) fn now(draft: &Draft<'_>, layer: Layer) -> Self {
        Self::of(draft.now(section(layer)), layer)
    }

    /// Finds the effective policy for a queue or exchange.
    pub(super) fn effective(&self, vhost: &str, name: &str, kind: Kind) -> Effective<'_> {
        self.effective_among(vhost, name, kind, |_| true)
    }

    /// Finds the effective policy among some.
    pub(super) fn effective_among(
        &self,
        vhost: &str,
        name: &str,
        kind: Kind,
        among: impl Fn(&Policy) -> bool,
    ) -> Effective<'_> {
        let policies = self.0.get(vhost).into_iter().flatten();
        let mut winner: Option<&Policy> = None;
        for policy in policies.filter(|policy| among(policy) && kind.is_in_scope(&policy.apply_to)) {
            if winner.is_some_and(|winner| winner.priority > policy.priority) {
                break;
            }
            match (policy.pattern.matches(name), winner) {
                (Some(false), _) => {}
                (None, _) => return Effective::Unknown(policy),
                (Some(true), None) => winner = Some(policy),
                (Some(true), Some(first)) if first.definition == policy.definition => {}
                (Some(true), Some(first)) => return Effective::Tie(first, policy),
            }
        }
        winner.map_or(Effective::Nothing, Effective::One)
    }

    fn of(objects: impl Iterator<Item = Object>, layer: Layer) -> Self {
        let mut by_vhost: HashMap<String, Vec<Policy>> = HashMap::new();
        for policy in objects.filter_map(|object| read(&object, layer)) {
            by_vhost.entry(policy.vhost.clone()).or_default().push(policy);
        }
        for policies in by_vhost.values_mut() {
            policies.sort_by_key(|policy| std::cmp::Reverse(policy.priority));
        }
        Self(by_vhost)
    }
}

/// Where a layer's policies are kept.
pub(super) const fn section(layer: Layer) -> Section {
    match layer {
        Layer::User => Section::Policies,
        Layer::Operator => Section::Parameters,
    }
}

/// The body of a policy object: pattern, definition, scope, priority. None when it is no policy.
pub(super) fn body(object: &Object, layer: Layer) -> Option<&Object> {
    match layer {
        Layer::User => Some(object),
        Layer::Operator if text(object, "component") == "operator_policy" => object.get("value")?.as_object(),
        Layer::Operator => None,
    }
}

/// The policy object with another definition.
pub(super) fn with_definition(object: &Object, layer: Layer, definition: Object) -> Object {
    let mut body = body(object, layer).cloned().unwrap_or_default();
    body.insert("definition".to_owned(), Value::Object(definition));
    match layer {
        Layer::User => body,
        Layer::Operator => {
            let mut object = object.clone();
            object.insert("value".to_owned(), Value::Object(body));
            object
        }
    }
}

/// The definition of a policy object; none when it is no policy.
pub(super) fn definition(object: &Object, layer: Layer) -> Option<Object> {
    let body = body(object, layer)?;
    Some(body.get("definition").and_then(Value::as_object).cloned().unwrap_or_default())
}

/// Says whether a queue could be replicated: durable, shared, lasting, and named by its user.
pub(super) fn why_not_quorum(queue: &Object) -> Option<&'static str> {
    if flag(queue, "exclusive", false) {
        Some("it is exclusive")
    } else if flag(queue, "auto_delete", false) {
        Some("it is auto-delete")
    } else if !flag(queue, "durable", true) {
        Some("it is not durable")
    } else if super::object::is_server_named(queue) {
        Some("its name was given by the server")
    } else {
        None
    }
}

fn read(object: &Object, layer: Layer) -> Option<Policy> {
    let body = body(object, layer)?;
    Some(Policy {
        vhost: text(object, "vhost").to_owned(),
        name: text(object, "name").to_owned(),
        definition: definition(object, layer)?,
        priority: body.get("priority").and_then(Value::as_i64).unwrap_or(0),
        apply_to: text(body, "apply-to").to_owned(),
        pattern: Pattern::new(text(body, "pattern")),
    })
}
