//! Compares what was meant for green with what green has.

use std::collections::HashMap;

use serde_json::Value;

use super::classes::Census;
use super::context::Context;
use super::draft::{Draft, Item};
use super::normal::{Defaults, is_vhost_limits, normal};
use super::object::{Object, identity, text};
use super::outcome::{Comparison, Difference, Malformed};
use super::rules::IDENTITY;
use super::section::{ObjectRef, Section};

/// Objects named in the summary; the lists have all.
const NAMED: usize = 3;

/// Compares by identity and content, whatever the order. What the broker adds by itself, what is ours or
/// green's own, and what comes and goes is left out.
///
/// # Errors
/// When either text cannot be read.
pub fn compare(wanted: &[u8], green: &[u8], cx: &Context) -> Result<Comparison, Malformed> {
    let (wanted, green) = (Draft::parse(wanted)?, Draft::parse(green)?);
    let sides = Sides {
        census: [Census::of(&wanted, cx), Census::of(&green, cx)],
        defaults: [Defaults::of(&wanted), Defaults::of(&green)],
        passing: [passing(&wanted, cx), passing(&green, cx)].concat().into_iter().collect(),
        cx,
    };
    let mut found = Found::default();
    for section in Section::ALL {
        sides.compare_section(section, &wanted, &green, &mut found);
    }
    Ok(found.comparison())
}

#[derive(Default)]
struct Found {
    missing: Vec<ObjectRef>,
    different: Vec<Difference>,
    extra: Vec<ObjectRef>,
    equal: usize,
    not_compared: usize,
}

/// What both sides need to be compared.
struct Sides<'c> {
    census: [Census; 2],
    defaults: [Defaults; 2],
    /// Queues that come and go, by vhost: their bindings do too.
    passing: std::collections::HashSet<(String, String)>,
    cx: &'c Context,
}

impl Sides<'_> {
    fn compare_section(&self, section: Section, wanted: &Draft<'_>, green: &Draft<'_>, found: &mut Found) {
        let [blue_defaults, green_defaults] = &self.defaults;
        let mut there: HashMap<ObjectRef, &Item<'_>> = by_name(section, green);
        for object in wanted.now(section) {
            let Some(name) = named(section, &object) else { continue };
            let other = there.remove(&name);
            if self.is_beside(section, &object) {
                continue;
            }
            if self.comes_and_goes(section, &object) {
                found.not_compared += 1;
                continue;
            }
            let Some(other) = other.and_then(Item::now) else {
                found.missing.push(name);
                continue;
            };
            let meant = normal(section, &object, blue_defaults);
            let fields = differing(section, &meant, &normal(section, &other, green_defaults));
            if fields.is_empty() {
                found.equal += 1;
            } else {
                found.different.push(Difference { object: name, fields });
            }
        }
        let extra = there.into_iter().filter(|(_, item)| {
            item.now().is_some_and(|object| {
                !self.is_beside(section, &object)
                    && !self.comes_and_goes(section, &object)
                    && !is_brokers_own(section, &object)
            })
        });
        let mut extra: Vec<ObjectRef> = extra.map(|(name, _)| name).collect();
        extra.sort();
        found.extra.extend(extra);
    }

    /// Ours, or green's own user.
    fn is_beside(&self, section: Section, object: &Object) -> bool {
        let names = ["name", "vhost", "user", "source", "destination", "exchange"];
        if names.iter().any(|key| self.cx.is_ours(text(object, key))) {
            return true;
        }
        match section {
            Section::Users => self.cx.is_excluded_user(text(object, "name")),
            Section::Permissions | Section::TopicPermissions => {
                self.cx.is_excluded_user(text(object, "user"))
            }
            Section::GlobalParameters => IDENTITY.contains(&text(object, "name")),
            // Compared with their vhost.
            Section::Parameters => is_vhost_limits(object),
            Section::Vhosts
            | Section::Policies
            | Section::Queues
            | Section::Exchanges
            | Section::Bindings => false,
        }
    }

    fn comes_and_goes(&self, section: Section, object: &Object) -> bool {
        let is_passing = section == Section::Bindings
            && text(object, "destination_type") != "exchange"
            && self
                .passing
                .contains(&(text(object, "vhost").to_owned(), text(object, "destination").to_owned()));
        is_passing || self.census.iter().any(|census| census.class(section, object).is_some())
    }
}

impl Found {
    fn comparison(self) -> Comparison {
        let Self { missing, different, extra, equal, not_compared } = self;
        let in_sync = missing.is_empty() && different.is_empty() && extra.is_empty();
        let summary = if in_sync {
            format!("in sync: {equal} objects are equal, {not_compared} come and go")
        } else {
            let differing: Vec<ObjectRef> = different.iter().map(|one| one.object.clone()).collect();
            let parts =
                [listed("missing", &missing), listed("different", &differing), listed("extra", &extra)];
            let parts: Vec<String> = parts.into_iter().flatten().collect();
            format!("not in sync: {}; {equal} objects are equal", parts.join(", "))
        };
        Comparison { missing, different, extra, equal, not_compared, in_sync, summary }
    }
}

fn by_name<'d, 'a>(section: Section, draft: &'d Draft<'a>) -> HashMap<ObjectRef, &'d Item<'a>> {
    let named = draft.items(section).filter_map(|item| {
        let object = item.now()?;
        Some((named(section, &object)?, item))
    });
    named.collect()
}

fn named(section: Section, object: &Object) -> Option<ObjectRef> {
    identity(section, object).ok()
}

fn passing(draft: &Draft<'_>, cx: &Context) -> Vec<(String, String)> {
    let census = Census::of(draft, cx);
    let queues = draft.now(Section::Queues).filter(|queue| census.class(Section::Queues, queue).is_some());
    queues.map(|queue| (text(&queue, "vhost").to_owned(), text(&queue, "name").to_owned())).collect()
}

/// What every broker has without being told.
fn is_brokers_own(section: Section, object: &Object) -> bool {
    match section {
        // The vhost "/" of a new broker; what is in it is compared.
        Section::Vhosts => text(object, "name") == "/",
        Section::Exchanges => text(object, "name").is_empty() || text(object, "name").starts_with("amq."),
        Section::Bindings => text(object, "source").is_empty(),
        Section::Users
        | Section::Permissions
        | Section::TopicPermissions
        | Section::Parameters
        | Section::GlobalParameters
        | Section::Policies
        | Section::Queues => false,
    }
}

fn differing(section: Section, meant: &Object, got: &Object) -> Vec<String> {
    // Clear text was given: green only has a hash of it.
    let clear = section == Section::Users && meant.contains_key("password");
    let is_compared = |key: &&String| {
        !(clear && matches!(key.as_str(), "password" | "password_hash" | "hashing_algorithm"))
    };
    let mut keys: Vec<&String> = meant.keys().chain(got.keys()).filter(is_compared).collect();
    keys.sort();
    keys.dedup();
    let null = Value::Null;
    let at = |object: &Object, key: &String| object.get(key).unwrap_or(&null).clone();
    keys.into_iter().filter(|key| at(meant, key) != at(got, key)).cloned().collect()
}

fn listed(what: &str, objects: &[ObjectRef]) -> Option<String> {
    if objects.is_empty() {
        return None;
    }
    let names: Vec<String> = objects.iter().take(NAMED).map(ToString::to_string).collect();
    let more = if objects.len() > NAMED { ", …" } else { "" };
    Some(format!("{} {what} ({}{more})", objects.len(), names.join(", ")))
}
