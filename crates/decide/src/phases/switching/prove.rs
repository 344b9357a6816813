//! The proof that the old side is empty: nobody is connected, `basic.get` says empty on every queue, what it
//! returned was carried over, and totals stay zero for a while.

use crate::conditions::{Truth, set};
use crate::context::{Context, cannot_see};
use crate::effect::{Effect, QueueRef};
use crate::phases::switching::fence::closed_since;
use crate::phases::switching::{note_stage, stage};
use crate::side::{Heading, Side};
use crate::step::{Reason, Step};
use crate::world::{Emptiness, QueueTotals, Reading};
use api::RabbitMQMigrationStatus;
use api::conditions::BLUE_DRAINED;
use jiff::Timestamp;

/// Totals lag by up to 4.5 s on quorum queues (a 5 s tick), so they must have been zero for three ticks.
pub const WINDOW_MILLIS: i64 = 15_000;
/// Samples that the window must hold.
const SAMPLES: usize = 3;

/// Carries what is left, then waits for the slow proof.
pub fn decide(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus, heading: Heading) -> Option<Step> {
    let from = heading.from;
    // Only in this stage queues are asked: an older answer may be from before the side was opened again.
    let asked = context.status.switching.as_ref().is_some_and(|s| s.stage == stage::PROOF);
    note_stage(draft, stage::PROOF);
    if !asked {
        return Some(Step::wait(Reason::Working, format!("queues of {from} are asked next")));
    }
    let answers = match context.world.emptiness.of(from) {
        Reading::Seen(answers) => answers,
        unknown => return Some(cannot_see(format!("whether {from} is empty: {}", unknown.why_not()))),
    };
    let with = |wanted: Emptiness| -> Vec<QueueRef> {
        answers.iter().filter(|(_, answer)| *answer == wanted).map(|(queue, _)| queue.clone()).collect()
    };
    let stragglers = with(Emptiness::Message);
    if !stragglers.is_empty() {
        return Some(Step::act(Effect::Carry { from, queues: stragglers }));
    }
    let silent = with(Emptiness::NoAnswer);
    if let Some(first) = silent.first() {
        let detail =
            format!("{} queues of {from} do not answer, first {}/{}", silent.len(), first.vhost, first.name);
        return Some(cannot_see(detail));
    }
    slow(context, draft, heading)
}

fn slow(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus, heading: Heading) -> Option<Step> {
    let (samples, held) =
        closed_since(context, heading.from).map_or((0, 0), |closed| empty_for(context, heading.from, closed));
    let proven = samples >= SAMPLES && held >= WINDOW_MILLIS;
    let detail = format!(
        "totals of {} were zero in {samples} listings over {held} ms of {WINDOW_MILLIS} ms",
        heading.from
    );
    if heading.from == Side::Blue {
        set(
            draft,
            context,
            BLUE_DRAINED,
            Truth::of(proven),
            if proven { "Proven" } else { "NotYet" },
            &detail,
        );
    }
    (!proven).then(|| Step::wait(Reason::ProvingEmpty, detail))
}

/// True where a side was seen to be empty, and nobody on it, for long enough that totals cannot lag behind.
pub fn is_proven_empty(context: &Context<'_>, side: Side) -> bool {
    let (samples, held) = empty_for(context, side, Timestamp::MIN);
    samples >= SAMPLES && held >= WINDOW_MILLIS
}

/// How many listings in a row said zero, and over how many milliseconds, since the last connection was seen to
/// be gone, and since `closed`: what was said before that proves nothing.
fn empty_for(context: &Context<'_>, side: Side, closed: Timestamp) -> (usize, i64) {
    let connections = context.world.history.connections.of(side);
    let Some((gone, _)) = connections.newest_first().take_while(|(_, list)| list.is_empty()).last() else {
        return (0, 0);
    };
    let listings = context.world.history.queues.of(side).newest_first();
    let times: Vec<_> = listings
        .take_while(|(at, listing)| *at > closed.max(*gone) && all_zero(listing))
        .map(|(at, _)| *at)
        .collect();
    let held = match (times.first(), times.last()) {
        (Some(newest), Some(oldest)) => newest.as_millisecond() - oldest.as_millisecond(),
        (None, _) | (_, None) => 0,
    };
    (times.len(), held)
}

/// Every queue says 0 as a number and runs. An absent number is unknown, not zero. Streams keep what was read:
/// they are moved by their owners' own means, or not at all.
pub fn all_zero(listing: &[QueueTotals]) -> bool {
    listing.iter().filter(|q| q.kind != "stream").all(|q| {
        q.messages == Some(0)
            && q.ready == Some(0)
            && q.unacked == Some(0)
            && q.state.as_deref().is_none_or(|state| state == "running")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_was_waived_does_not_keep_the_switch_for_ever() {
        let zero = QueueTotals {
            kind: "quorum".to_owned(),
            ready: Some(0),
            unacked: Some(0),
            messages: Some(0),
            ..QueueTotals::default()
        };
        let stream = QueueTotals { kind: "stream".to_owned(), messages: Some(7), ..zero.clone() };
        assert!(all_zero(&[zero.clone(), stream]));
        assert!(!all_zero(&[QueueTotals { messages: None, ..zero }]));
    }
}
