//! Objects that come and go: followed and counted, never compared.

use super::context::Context;
use super::draft::{Draft, Item};
use super::object::{Object, argument, flag, is_server_named, text};
use super::outcome::Classes;
use super::policy::{Kind, Layer, Pattern, Policies};
use super::section::Section;

/// Why an object comes and goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Exclusive,
    ServerNamed,
    AutoDelete,
    Expiring,
    Dynamic,
}

/// Tells classes apart; knows blue's policies and the user's patterns.
pub(super) struct Census {
    policies: [Policies; 2],
    dynamic: Vec<(Section, Pattern)>,
}

impl Census {
    /// Reads the policies of a draft.
    pub(super) fn of(draft: &Draft<'_>, cx: &Context) -> Self {
        let dynamic = cx.dynamic.iter().map(|class| (class.section, Pattern::new(&class.pattern)));
        Self {
            policies: [Layer::User, Layer::Operator].map(|layer| Policies::on_blue(draft, layer)),
            dynamic: dynamic.collect(),
        }
    }

    /// Counts a draft's objects.
    pub(super) fn counted(&self, draft: &Draft<'_>) -> Classes {
        let found = Section::ALL.into_iter().flat_map(|section| {
            let objects = draft.items(section).filter_map(Item::on_blue);
            objects.filter_map(move |object| self.class(section, &object))
        });
        found.fold(Classes::default(), plus)
    }

    /// Says which class an object is of, if any.
    pub(super) fn class(&self, section: Section, object: &Object) -> Option<Class> {
        if self.is_dynamic(section, object) {
            return Some(Class::Dynamic);
        }
        match section {
            Section::Queues => self.class_of_queue(object),
            Section::Users
            | Section::Vhosts
            | Section::Permissions
            | Section::TopicPermissions
            | Section::Parameters
            | Section::GlobalParameters
            | Section::Policies
            | Section::Exchanges
            | Section::Bindings => None,
        }
    }

    fn class_of_queue(&self, queue: &Object) -> Option<Class> {
        if flag(queue, "exclusive", false) {
            Some(Class::Exclusive)
        } else if is_server_named(queue) {
            Some(Class::ServerNamed)
        } else if flag(queue, "auto_delete", false) {
            Some(Class::AutoDelete)
        } else if argument(queue, "x-expires").is_some() || self.expires_by_policy(queue) {
            Some(Class::Expiring)
        } else {
            None
        }
    }

    fn expires_by_policy(&self, queue: &Object) -> bool {
        let kind = Kind::of_queue(queue);
        self.policies.iter().any(|policies| {
            let effective = policies.effective(text(queue, "vhost"), text(queue, "name"), kind);
            effective.definition().is_some_and(|definition| definition.contains_key("expires"))
        })
    }

    /// A permission comes and goes with its user, so it is asked by the user's name too.
    fn is_dynamic(&self, section: Section, object: &Object) -> bool {
        let is_permission = matches!(section, Section::Permissions | Section::TopicPermissions);
        let name = if is_permission { text(object, "user") } else { text(object, "name") };
        let concerns = |of: Section| of == section || (of == Section::Users && is_permission);
        self.dynamic.iter().any(|(of, pattern)| concerns(*of) && pattern.matches(name) == Some(true))
    }
}

fn plus(classes: Classes, class: Class) -> Classes {
    let Classes { exclusive, server_named, auto_delete, expiring, dynamic } = classes;
    match class {
        Class::Exclusive => Classes { exclusive: exclusive.saturating_add(1), ..classes },
        Class::ServerNamed => Classes { server_named: server_named.saturating_add(1), ..classes },
        Class::AutoDelete => Classes { auto_delete: auto_delete.saturating_add(1), ..classes },
        Class::Expiring => Classes { expiring: expiring.saturating_add(1), ..classes },
        Class::Dynamic => Classes { dynamic: dynamic.saturating_add(1), ..classes },
    }
}
