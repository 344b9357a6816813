//! SyncingTopology: blue's definitions, rewritten, are brought to green and compared. 204 is no proof.

use crate::conditions::{Truth, set};
use crate::context::{Context, cannot_see};
use crate::effect::Effect;
use crate::fact::{Fact, Want, every, fresh};
use crate::side::Side;
use crate::step::{Reason, Step};
use crate::world::Reading;
use api::conditions::TOPOLOGY_IN_SYNC;
use api::spec::{Approval, OnChange};
use api::status::TopologyStatus;
use api::{Phase, RabbitMQMigrationStatus};

/// The waiver by which a person consents to the rewrites.
pub const CONSENT: &str = "definitions-rewritten";

/// Both brokers first: versions decide the rewrites.
pub fn wants() -> Vec<Want> {
    vec![
        every(10, Fact::Pods(Side::Blue)),
        every(10, Fact::Pods(Side::Green)),
        every(30, Fact::Credentials(Side::Blue)),
        every(30, Fact::Credentials(Side::Green)),
        every(30, Fact::Broker(Side::Blue)),
        every(30, Fact::Broker(Side::Green)),
        every(5, Fact::Epoch(Side::Blue)),
        every(5, Fact::Epoch(Side::Green)),
        fresh(Fact::Definitions),
    ]
}

/// Imports until nothing differs.
pub fn decide(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus) -> Step {
    if let Some(step) = own_epoch(context) {
        return step;
    }
    follow(context, draft).unwrap_or(Step::Go(Phase::Probing))
}

/// From here on we work on the brokers as the user of our epoch: the receiver refuses a former leader.
pub fn own_epoch(context: &Context<'_>) -> Option<Step> {
    Side::BOTH.into_iter().find_map(|side| match context.world.epochs.of(side) {
        Reading::Seen(epoch) if epoch.current && epoch.older == 0 => None,
        Reading::Seen(_) => Some(Step::act(Effect::EnsureEpochUser(side))),
        unknown => Some(cannot_see(format!("the operator's user on {side}: {}", unknown.why_not()))),
    })
}

/// Follows blue's definitions: what is left to do, or nothing where both sides agree.
pub fn follow(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus) -> Option<Step> {
    let view = match &context.world.definitions {
        Reading::Seen(view) => view,
        unknown => {
            let detail = format!("definitions cannot be compared: {}", unknown.why_not());
            set(draft, context, TOPOLOGY_IN_SYNC, Truth::Unknown, Reason::TopologyUnknown.as_str(), &detail);
            return Some(Step::wait(Reason::TopologyUnknown, detail));
        }
    };
    let first_import = draft.topology.as_ref().is_none_or(|t| t.imported.is_empty());
    draft.topology = Some(TopologyStatus {
        imported: view
            .imported
            .clone()
            .unwrap_or_else(|| draft.topology.as_ref().map(|t| t.imported.clone()).unwrap_or_default()),
        counts: view.counts.clone(),
        rewrites: view.rewrites.clone(),
        differences: view.differences.clone(),
    });
    if !view.blocked.is_empty() {
        let detail =
            format!("green would refuse these as they are; correct them on blue: {}", list(&view.blocked));
        set(draft, context, TOPOLOGY_IN_SYNC, Truth::False, Reason::RewriteNeedsConsent.as_str(), &detail);
        return Some(Step::wait(Reason::RewriteNeedsConsent, detail));
    }
    // With manual approval the digest covers the rewrites, so that approving is consenting.
    let automatic = context.plan.cutover.approval == Approval::Automatic;
    if automatic && !view.needs_consent.is_empty() && !context.plan.waives(CONSENT) {
        let detail = format!(
            "{} rewrites change what your definitions mean: {}. Waive {CONSENT} with a reason to consent",
            view.needs_consent.len(),
            list(&view.needs_consent)
        );
        set(draft, context, TOPOLOGY_IN_SYNC, Truth::False, Reason::RewriteNeedsConsent.as_str(), &detail);
        return Some(Step::wait(Reason::RewriteNeedsConsent, detail));
    }
    if view.differences.is_empty() {
        let detail = format!("green holds {}", view.counts);
        set(draft, context, TOPOLOGY_IN_SYNC, Truth::True, "Equal", &detail);
        return None;
    }
    let detail = format!("{} differences: {}", view.differences.len(), list(&view.differences));
    set(draft, context, TOPOLOGY_IN_SYNC, Truth::False, Reason::TopologyDiffers.as_str(), &detail);
    if !first_import && context.plan.topology.on_change == OnChange::Block {
        let detail = format!("blue's definitions changed and topology.onChange is Block; {detail}");
        return Some(Step::wait(Reason::TopologyDiffers, detail));
    }
    if view.imported.as_deref() != Some(&view.digest) {
        return Some(Step::act(Effect::ImportDefinitions));
    }
    let why = view.import_error.as_ref().map(|why| format!("; the import said: {why}")).unwrap_or_default();
    Some(Step::wait(Reason::TopologyDiffers, format!("after the import {detail}{why}; correct them by hand")))
}

fn list(items: &[String]) -> String {
    let shown: Vec<&str> = items.iter().take(3).map(String::as_str).collect();
    let more = items.len().saturating_sub(shown.len());
    if more == 0 { shown.join("; ") } else { format!("{} and {more} more", shown.join("; ")) }
}
