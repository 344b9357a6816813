//! Turns mirrored classic queues into quorum queues, since mirroring is gone in 4.0.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::context::{Context, Treatment};
use super::super::draft::{Draft, Step};
use super::super::object::{Object, text, with_arguments};
use super::super::outcome::{Change, Decision};
use super::super::policy::{Effective, Kind, Layer, Policies, why_not_quorum};
use super::super::section::{ObjectRef, Section};

pub(super) const ID: &str = "mirrored-queues-to-quorum";

/// What every client of a converted queue should know, once per vhost.
const CHANGES: &str = "queues become quorum queues: messages are always persisted, after 20 deliveries they are \
                       dropped or dead-lettered (from 4.0), no global QoS, no exclusive consumers, consumer \
                       timeout 30 min; a client that declares them without x-queue-type gets 406 unless the \
                       vhost's default_queue_type is quorum or green relaxes its checks on redeclaration";

pub(super) fn apply<'a>(draft: Draft<'a>, cx: &Context) -> Draft<'a> {
    let policies = Policies::on_blue(&draft, Layer::User);
    let before = draft.changes.len();
    let draft = draft.each(Section::Queues, ID, |queue| step(queue, &policies, cx));
    let mut converted: BTreeMap<String, u32> = BTreeMap::new();
    let new = draft.changes.iter().skip(before).filter(|change| change.decision == Decision::Info);
    for vhost in new.filter_map(|change| change.object.vhost.clone()) {
        let count = converted.entry(vhost).or_default();
        *count = count.saturating_add(1);
    }
    converted.into_iter().fold(draft, |draft, (vhost, count)| {
        draft.say(Change {
            rule: ID.to_owned(),
            object: ObjectRef { section: Section::Vhosts, vhost: None, name: vhost },
            what: format!("{count} {CHANGES}"),
            decision: Decision::NeedsConsent,
        })
    })
}

/// Why a queue is to be converted, or what hinders knowing.
enum Wish {
    Not,
    Because(String),
    Unclear(String),
}

fn step(queue: &Object, policies: &Policies, cx: &Context) -> Step {
    if Kind::of_queue(queue) != Kind::Classic {
        return Step::keep();
    }
    let (vhost, name) = (text(queue, "vhost"), text(queue, "name"));
    let treatment = cx.treatment(vhost, name);
    let wish = match treatment {
        Some(Treatment::Quorum) => Wish::Because("chosen by name".to_owned()),
        // Before 4.0 green still mirrors.
        Some(Treatment::KeepClassic | Treatment::MakeDurable | Treatment::Drop) | None
            if !cx.green_is_at_least(4, 0) =>
        {
            Wish::Not
        }
        Some(Treatment::KeepClassic | Treatment::MakeDurable | Treatment::Drop) | None => {
            mirrored(&policies.effective(vhost, name, Kind::Classic))
        }
    };
    match wish {
        Wish::Not => Step::keep(),
        Wish::Unclear(why) => Step::keep().note(Decision::NeedsConsent, why),
        Wish::Because(why) if treatment == Some(Treatment::KeepClassic) => Step::keep()
            .note(Decision::NeedsConsent, format!("stays classic by choice and loses its mirrors ({why})")),
        Wish::Because(why) => match why_not_quorum(queue) {
            Some(hindrance) => Step::keep().note(
                Decision::NeedsConsent,
                format!("{why}, cannot be a quorum queue since {hindrance}: stays classic, on one node"),
            ),
            None => {
                Step::edit(converted(queue)).note(Decision::Info, format!("{why}: becomes a quorum queue"))
            }
        },
    }
}

fn mirrored(effective: &Effective<'_>) -> Wish {
    let mirrors = |definition: &Object| definition.contains_key("ha-mode");
    match effective {
        Effective::One(policy) if mirrors(&policy.definition) => {
            Wish::Because(format!("mirrored by policy {}", policy.name))
        }
        Effective::Tie(one, other) if mirrors(&one.definition) || mirrors(&other.definition) => {
            Wish::Unclear(format!(
                "policies {} and {} have the same priority and one mirrors: stays classic unless chosen by name",
                one.name, other.name
            ))
        }
        Effective::Nothing | Effective::One(_) | Effective::Tie(_, _) => Wish::Not,
        Effective::Unknown(policy) => Wish::Unclear(format!(
            "the pattern of policy {} cannot be evaluated, so nobody knows if it is mirrored: stays classic unless \
             chosen by name",
            policy.name
        )),
    }
}

fn converted(queue: &Object) -> Object {
    let mut queue = with_arguments(queue, |arguments| {
        arguments.insert("x-queue-type".to_owned(), Value::from("quorum"));
    });
    if queue.contains_key("type") {
        queue.insert("type".to_owned(), Value::from("quorum"));
    }
    queue
}
