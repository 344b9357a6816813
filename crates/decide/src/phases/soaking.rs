//! Soaking: green serves; its alarms, members, the route and the ledger are watched for the soak time. A Service
//! that somebody takes back is the switch's to mend: whoever came to blue meanwhile has to be moved again.

use crate::conditions::{Truth, set};
use crate::context::{Context, cannot_see, is_asked_back, seen};
use crate::fact::{Fact, Want, every, fresh};
use crate::phases::switching::{self, note_ledger, note_serving};
use crate::plan::Plan;
use crate::side::{Heading, Side};
use crate::step::{Reason, Step};
use crate::world::RouteView;
use api::conditions::REVERSIBLE;
use api::spec::{Outcome, SoakFailure};
use api::{Phase, RabbitMQMigrationStatus};

/// Green is asked every few seconds; what going back would need is read too.
pub fn wants(plan: &Plan, status: &RabbitMQMigrationStatus) -> Vec<Want> {
    let mut wants = vec![
        // Clients are refused on blue if somebody takes a Service back.
        every(1, Fact::Services),
        every(5, Fact::Credentials(Side::Blue)),
        every(5, Fact::Credentials(Side::Green)),
        every(5, Fact::StatefulSet(Side::Blue)),
        every(5, Fact::StatefulSet(Side::Green)),
        every(5, Fact::Pods(Side::Blue)),
        every(5, Fact::Pods(Side::Green)),
        every(10, Fact::Epoch(Side::Blue)),
        every(5, Fact::Epoch(Side::Green)),
        every(5, Fact::Broker(Side::Green)),
        every(10, Fact::Broker(Side::Blue)),
        every(2, Fact::Routes),
        fresh(Fact::Probe),
    ];
    wants.extend(switching::entry_wants(Heading::BACK, is_asked_back(plan, status)));
    wants.push(every(10, Fact::Queues(Side::Blue)));
    wants
}

/// Goes back where that is asked for, watches, and retires blue when the soak time is over.
pub fn decide(context: &Context<'_>, draft: &mut RabbitMQMigrationStatus) -> Step {
    note_serving(context, draft);
    note_ledger(context, draft);
    let detail = "until retirement; going back moves green's messages to blue by a Handover";
    set(draft, context, REVERSIBLE, Truth::True, "BlueStands", detail);
    if context.plan.outcome == Outcome::RolledBack {
        return switching::enter(context, draft, Heading::BACK);
    }
    if switching::reopens(context, draft) {
        return Step::Go(Phase::Switching);
    }
    if let Some(trouble) = trouble(context) {
        return match context.plan.soak.on_failure {
            SoakFailure::Rollback => switching::enter(context, draft, Heading::BACK),
            SoakFailure::Pause => {
                let help = "set spec.desiredOutcome: RolledBack to go back";
                Step::stop(Reason::SoakFailed, format!("{trouble}; {help}"))
            }
        };
    }
    let left = i64::from(context.plan.soak.duration_seconds) - context.phase_seconds();
    if left > 0 {
        let ledger = draft.ledger.as_ref().map(|l| l.summary.clone()).unwrap_or_default();
        return Step::wait(Reason::Soaking, format!("{left} s of soaking are left; {ledger}"));
    }
    // No timer turns unknown into a pass: there is no way back from the next phase.
    let green = seen(&context.world.brokers.green, "green").map(|_| ());
    let services = seen(&context.world.services, "Services").map(|_| ());
    if let Err(why) = green.and(seen(&context.world.routes, "routes").map(|_| ())).and(services) {
        return cannot_see(format!("the soak time is over, but {why}"));
    }
    Step::Go(Phase::Retiring)
}

/// What is wrong with green, if anything. What cannot be read is no trouble yet: it is waited for.
fn trouble(context: &Context<'_>) -> Option<String> {
    if let Some(broker) = context.world.brokers.green.seen() {
        if !broker.alarms.is_empty() {
            return Some(format!("alarms on green: {}", broker.alarms.join(", ")));
        }
        let pods = context.world.pods.green.seen();
        if let Some(Err(why)) = pods.map(|pods| broker.one_cluster(pods.len())) {
            return Some(format!("green is not one whole cluster: {why}"));
        }
    }
    if let Some(ledger) = context.world.ledger.seen()
        && (ledger.lost > 0 || ledger.duplicated_unexplained > 0)
    {
        let (lost, twice) = (ledger.lost, ledger.duplicated_unexplained);
        return Some(format!("the canary lost {lost} messages and got {twice} twice without explanation"));
    }
    let strayed = |routes: &[RouteView]| {
        let astray = routes.iter().find(|r| r.ports.iter().any(|p| p.blue > 0));
        astray.map(|r| format!("Service {} leads to blue again", r.service))
    };
    context.world.routes.seen().and_then(|routes| strayed(routes))
}
