//! Conflict: two migrations of one blue, green or Service. The older one works, the other writes nothing.

use crate::context::{Context, cannot_see};
use crate::plan::Plan;
use crate::step::{Reason, Step};
use crate::world::{OtherMigration, Reading};
use api::spec::Mode;
use api::{Phase, RabbitMQMigrationStatus};

/// Stops in Preflight, before anything is written. Later on it is the others who stop.
pub fn decide(context: &Context<'_>, _: &mut RabbitMQMigrationStatus) -> Option<Step> {
    if !applies(context.plan, context.phase()) {
        return None;
    }
    let others = match &context.world.others {
        Reading::Seen(others) => others,
        unknown => return Some(cannot_see(format!("other migrations: {}", unknown.why_not()))),
    };
    let blocking = others.iter().filter_map(|other| Some((other, blocks(context.plan, other)?)));
    let (other, shared) = blocking.min_by_key(|(other, _)| (other.created, &other.uid))?;
    let why = if is_older(context.plan, other) { "is older" } else { "has begun already" };
    Some(Step::stop(
        Reason::Conflict,
        format!(
            "migration {} uses {shared} too and {why} (phase {}): nothing is done here until it has ended; wait \
             for it, abort or delete it, or delete this one",
            other.name, other.phase
        ),
    ))
}

/// Whether others are looked for: only before anything is written, and not where nothing will be.
pub fn applies(plan: &Plan, phase: Phase) -> bool {
    phase == Phase::Preflight && plan.mode == Mode::Migrate
}

/// What another migration and this one both use, where the other one goes first.
fn blocks(plan: &Plan, other: &OtherMigration) -> Option<String> {
    let begun = other.phase != Phase::Preflight;
    if is_over(other) || (other.checks_only && !begun) || !(begun || is_older(plan, other)) {
        return None;
    }
    let ours = [&plan.blue.stateful_set_name, &plan.green.stateful_set_name];
    let broker = ours.into_iter().find(|name| other.stateful_sets.contains(*name));
    let service = plan.services.iter().find(|name| other.services.contains(*name));
    broker.map(|name| format!("StatefulSet {name}")).or(service.map(|name| format!("Service {name}")))
}

fn is_older(plan: &Plan, other: &OtherMigration) -> bool {
    (other.created, &other.uid) < (plan.created, &plan.uid)
}

/// One that ended and cleaned up holds nothing any more.
fn is_over(other: &OtherMigration) -> bool {
    let cleaned = [Reason::RolledBackAsAsked, Reason::Aborted, Reason::RolledBackOnFailure];
    let rests = cleaned.iter().any(|reason| other.waits_for.as_deref() == Some(reason.as_str()));
    other.phase == Phase::Completed || (other.phase == Phase::RolledBack && rests)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::{Settings, plan, stamp};

    fn other(seconds: i64) -> OtherMigration {
        OtherMigration {
            name: "other".to_owned(),
            uid: "7".to_owned(),
            created: Some(stamp(seconds * 1000)),
            phase: Phase::Preflight,
            waits_for: None,
            checks_only: false,
            stateful_sets: ["rabbitmq".to_owned(), "other-green".to_owned()].into(),
            services: ["elsewhere".to_owned()].into(),
        }
    }

    fn blocked(other: &OtherMigration) -> Option<String> {
        let plan = Plan { created: Some(stamp(10_000)), ..plan(&Settings::default()).unwrap() };
        blocks(&plan, other)
    }

    #[test]
    fn the_older_one_goes_first() {
        assert_eq!(blocked(&other(9)).as_deref(), Some("StatefulSet rabbitmq"));
        assert_eq!(blocked(&other(11)), None);
        // Ours begins with a 0.
        assert_eq!(blocked(&other(10)), None);
        assert!(blocked(&OtherMigration { uid: "00".to_owned(), ..other(10) }).is_some());
    }

    #[test]
    fn one_that_has_begun_goes_first_though_it_is_younger() {
        assert!(blocked(&OtherMigration { phase: Phase::Switching, ..other(11) }).is_some());
        assert!(
            blocked(&OtherMigration { phase: Phase::Switching, checks_only: true, ..other(11) }).is_some()
        );
    }

    #[test]
    fn only_what_both_use_matters() {
        let elsewhere = OtherMigration { stateful_sets: ["x".to_owned()].into(), ..other(9) };
        assert_eq!(blocked(&elsewhere), None);
        let services = ["rabbitmq".to_owned()].into();
        assert_eq!(blocked(&OtherMigration { services, ..elsewhere }).as_deref(), Some("Service rabbitmq"));
        let green = ["orders-green".to_owned()].into();
        assert!(blocked(&OtherMigration { stateful_sets: green, ..other(9) }).is_some());
    }

    #[test]
    fn one_that_ended_holds_nothing_once_it_is_cleaned_up() {
        assert_eq!(blocked(&OtherMigration { phase: Phase::Completed, ..other(9) }), None);
        let back = OtherMigration { phase: Phase::RolledBack, ..other(9) };
        assert!(blocked(&back).is_some());
        assert!(
            blocked(&OtherMigration { waits_for: Some("CannotSee".to_owned()), ..back.clone() }).is_some()
        );
        assert_eq!(blocked(&OtherMigration { waits_for: Some("Aborted".to_owned()), ..back }), None);
        assert_eq!(blocked(&OtherMigration { checks_only: true, ..other(9) }), None);
    }
}
