//! ProvisioningGreen: installs green, or looks at an existing one, until all members are one cluster.

use crate::conditions::{Truth, set};
use crate::context::{Context, cannot_see};
use crate::effect::Effect;
use crate::fact::{Fact, Want, every, fresh};
use crate::side::Side;
use crate::step::{Reason, Step};
use crate::world::{PodView, Reading, StatefulSetView};
use api::conditions::GREEN_AVAILABLE;
use api::status::GreenStatus;
use api::{Phase, RabbitMQMigrationStatus};

/// The StatefulSet before its pods, the pods before the broker in them.
pub fn wants() -> Vec<Want> {
    vec![
        every(10, Fact::Services),
        every(10, Fact::StatefulSet(Side::Blue)),
        fresh(Fact::StatefulSet(Side::Green)),
        fresh(Fact::Pods(Side::Green)),
        every(2, Fact::Credentials(Side::Green)),
        every(1, Fact::Broker(Side::Green)),
    ]
}

/// Ensures the template's objects and waits for N of N members in one cluster.
pub fn decide(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus) -> Step {
    let found = match &context.world.stateful_sets.green {
        Reading::Seen(found) => found,
        unknown => return cannot_see(format!("StatefulSet of green: {}", unknown.why_not())),
    };
    draft.green = Some(GreenStatus {
        name: context.plan.green.stateful_set_name.clone(),
        ours: context.plan.template().is_some(),
        served: draft.green.as_ref().is_some_and(|g| g.served),
    });
    if let Some(step) = ensure(context, found) {
        return step;
    }
    match available(context, found) {
        Ok(members) => {
            set(draft, context, GREEN_AVAILABLE, Truth::True, "OneCluster", &members);
            Step::Go(Phase::VerifyingPlacement)
        }
        Err(step) => {
            if let Step::Wait(wait) | Step::Stop(wait) = &step {
                set(draft, context, GREEN_AVAILABLE, Truth::False, wait.reason.as_str(), &wait.detail);
            }
            step
        }
    }
}

fn ensure(context: &Context<'_>, found: &StatefulSetView) -> Option<Step> {
    let name = &context.plan.green.stateful_set_name;
    let Some(digest) = context.plan.template_digest() else {
        return (!found.exists).then(|| {
            Step::wait(
                Reason::GreenFailed,
                format!("there is no StatefulSet {name}; correct spec.green.existing"),
            )
        });
    };
    if found.exists && found.made_by.as_deref() != Some(&context.plan.uid) {
        let detail = format!("StatefulSet {name} is not ours; remove it, or abort and rename the migration");
        return Some(Step::stop(Reason::GreenFailed, detail));
    }
    if context.world.services.seen().is_none() {
        return Some(cannot_see(format!("Services: {}", context.world.services.why_not())));
    }
    let stale = !found.exists || found.template_digest.as_deref() != Some(&digest);
    stale.then(|| Step::act(Effect::EnsureGreen))
}

/// Whether green is one whole cluster, with what to wait for where not.
pub fn available(context: &Context<'_>, found: &StatefulSetView) -> Result<String, Step> {
    let pods = match &context.world.pods.green {
        Reading::Seen(pods) => pods,
        unknown => return Err(cannot_see(format!("pods of green: {}", unknown.why_not()))),
    };
    let starting = |detail: String| Err(Step::wait(Reason::GreenStarting, detail));
    if found.ready < found.replicas || i64::try_from(pods.len()) != Ok(found.replicas) {
        return starting(format!(
            "{} of {} pods of green are ready{}",
            found.ready,
            found.replicas,
            trouble(pods)
        ));
    }
    let broker = match &context.world.brokers.green {
        Reading::Seen(broker) => broker,
        unknown => return starting(format!("green does not answer yet: {}", unknown.why_not())),
    };
    if let Err(why) = broker.one_cluster(pods.len()) {
        return starting(format!("green is not one cluster yet: {why}"));
    }
    if !broker.flags_off.is_empty() {
        return Err(Step::act(Effect::EnableFeatureFlags(Side::Green)));
    }
    if !broker.alarms.is_empty() {
        return Err(Step::wait(
            Reason::GreenFailed,
            format!("alarms on green: {}", broker.alarms.join(", ")),
        ));
    }
    Ok(format!("{} members in one cluster, RabbitMQ {}", pods.len(), broker.version().unwrap_or("?")))
}

fn trouble(pods: &[PodView]) -> String {
    let first = pods.iter().find_map(|pod| pod.trouble.as_ref().map(|why| format!("; {}: {why}", pod.name)));
    first.unwrap_or_default()
}
