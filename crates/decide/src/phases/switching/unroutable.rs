//! Messages that the new side drops: its counter raises the alarm, a comparison of bindings decides.
//!
//! A missing binding to what should be there stops the pacing at once: each further publisher would lose more.
//! Where all bindings are there the messages led to queues that come and go, and that is only told.

use crate::context::Context;
use crate::phases::switching::overdue;
use crate::record::SwitchRecord;
use crate::rewrites::Pattern;
use crate::side::{Heading, Side};
use crate::step::{Reason, Step, Wait};
use crate::world::BindingView;
use api::RabbitMQMigrationStatus;
use api::spec::DynamicKind;
use std::collections::BTreeSet;

/// Bindings that are named.
const NAMED: usize = 2;

/// Notes how many messages the new side dropped since the record was taken. A restarted node counts anew.
pub fn note(
    context: &Context<'_>,
    draft: &mut RabbitMQMigrationStatus,
    heading: Heading,
    record: &SwitchRecord,
) {
    let Some(switching) = &mut draft.switching else { return };
    let traffic = context.world.traffic.of(heading.to).seen();
    if let (Some(traffic), Some(before)) = (traffic, record.unroutable_before) {
        let dropped = i64::try_from(traffic.unroutable.saturating_sub(before)).unwrap_or(i64::MAX);
        switching.unroutable = Some(switching.unroutable.unwrap_or(0).max(dropped));
    }
}

/// Whether bindings must be compared: messages were dropped, or nobody can tell.
pub fn is_alarmed(status: &RabbitMQMigrationStatus) -> bool {
    status.switching.as_ref().is_some_and(|switching| switching.unroutable != Some(0))
}

/// Stops where a binding is missing; waits for the comparison.
pub fn decide(context: &Context<'_>, draft: &RabbitMQMigrationStatus, heading: Heading) -> Option<Step> {
    if !is_alarmed(draft) {
        return None;
    }
    let missing = match missing(context, heading) {
        Ok(missing) => missing,
        // After the time-out nobody waits for an answer that does not come.
        Err(_) if overdue(context) => return None,
        Err(why) => return Some(Step::wait(Reason::Working, why)),
    };
    if missing.is_empty() {
        return None;
    }
    let (from, to) = (heading.from, heading.to);
    let names: Vec<String> = missing.iter().take(NAMED).map(ToString::to_string).collect();
    let back = if heading == Heading::FORWARD { ", or set spec.desiredOutcome: RolledBack" } else { "" };
    let detail = format!(
        "{} bindings of {from} are missing on {to}: {}; {}. Nobody else is moved until they are declared on \
         {to}{back}",
        missing.len(),
        names.join("; "),
        dropped(context, draft, to)
    );
    Some(Step::stop(Reason::BindingMissing, detail))
}

/// Tells what is dropped beside whatever is waited for.
pub fn told(context: &Context<'_>, draft: &RabbitMQMigrationStatus, heading: Heading, step: Step) -> Step {
    match (step, missing(context, heading)) {
        (Step::Wait(Wait { reason, detail }), Ok(missing)) if is_alarmed(draft) && missing.is_empty() => {
            let dropped = dropped(context, draft, heading.to);
            let why = "all bindings are there, so they led to queues that come and go";
            Step::wait(reason, format!("{detail} ({dropped}: {why})"))
        }
        (step, _) => step,
    }
}

/// What the new side lacks of the old one's bindings, those of queues that come and go left out.
fn missing<'a>(context: &Context<'a>, heading: Heading) -> Result<Vec<&'a BindingView>, String> {
    let bindings = |side: Side| -> Result<&'a BTreeSet<BindingView>, String> {
        let reading = context.world.bindings.of(side);
        reading.seen().ok_or_else(|| format!("bindings of {side}: {}", reading.why_not()))
    };
    let (old, new) = (bindings(heading.from)?, bindings(heading.to)?);
    let queues = context.plan.topology.dynamic.iter().filter(|dynamic| dynamic.kind == DynamicKind::Queue);
    let patterns: Vec<Pattern> = queues.map(|dynamic| Pattern::new(&dynamic.pattern)).collect();
    let passes = |binding: &BindingView| {
        patterns.iter().any(|pattern| pattern.matches(&binding.destination) == Some(true))
    };
    Ok(old.difference(new).filter(|binding| !passes(binding)).collect())
}

/// How many messages were dropped, and how many that is per second.
fn dropped(context: &Context<'_>, draft: &RabbitMQMigrationStatus, side: Side) -> String {
    let Some(switching) = &draft.switching else { return String::new() };
    let Some(count) = switching.unroutable else {
        let traffic = context.world.traffic.of(side);
        return format!("how many messages {side} drops as unroutable is not known: {}", traffic.why_not());
    };
    let seconds = switching.pointed_at.as_ref().map_or(0, |at| context.now.as_second() - at.0.as_second());
    let rate = count / seconds.max(1);
    format!("{side} dropped {count} messages as unroutable, about {rate} a second")
}
