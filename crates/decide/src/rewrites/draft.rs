//! The definitions while they are rewritten: objects stay borrowed, parsed one at a time.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::json::entries;
use super::object::{Object, identity, text};
use super::outcome::{Change, Classes, Decision, Held, Malformed, Rewritten};
use super::section::{ObjectRef, Section};

/// What became of an object.
enum Fate {
    /// As blue has it, byte by byte.
    Kept,
    /// With other fields; as text, since a parsed object takes several times the room.
    Edited(String),
    /// Not for green.
    Left,
    /// Never the user's: not even the comparison with blue's policies may see it.
    Ours,
}

/// One object.
pub(super) struct Item<'a> {
    raw: &'a RawValue,
    fate: Fate,
}

impl Item<'_> {
    /// The object as it stands, or none when it was left out.
    pub(super) fn now(&self) -> Option<Object> {
        self.text().map(parsed)
    }

    /// The user's object as blue has it.
    pub(super) fn on_blue(&self) -> Option<Object> {
        match &self.fate {
            Fate::Kept | Fate::Edited(_) | Fate::Left => Some(parsed(self.raw.get())),
            Fate::Ours => None,
        }
    }

    fn text(&self) -> Option<&str> {
        match &self.fate {
            Fate::Kept => Some(self.raw.get()),
            Fate::Edited(text) => Some(text),
            Fate::Left | Fate::Ours => None,
        }
    }
}

/// What a rewrite does to one object.
pub(super) struct Step {
    fate: Option<Fate>,
    hold: bool,
    notes: Vec<(Decision, String)>,
}

impl Step {
    /// Leaves the object alone.
    pub(super) const fn keep() -> Self {
        Self { fate: None, hold: false, notes: Vec::new() }
    }

    /// Gives the object other fields.
    pub(super) fn edit(object: Object) -> Self {
        Self { fate: Some(Fate::Edited(Value::Object(object).to_string())), hold: false, notes: Vec::new() }
    }

    /// Leaves the object out.
    pub(super) fn leave(decision: Decision, what: impl Into<String>) -> Self {
        Self { fate: Some(Fate::Left), hold: false, notes: vec![(decision, what.into())] }
    }

    /// Leaves out an object that is not the user's.
    pub(super) fn ours(what: impl Into<String>) -> Self {
        Self { fate: Some(Fate::Ours), hold: false, notes: vec![(Decision::Dropped, what.into())] }
    }

    /// Keeps blue's text of the object for the switch.
    pub(super) fn held(self) -> Self {
        Self { hold: true, ..self }
    }

    /// Says something about the object.
    pub(super) fn note(mut self, decision: Decision, what: impl Into<String>) -> Self {
        self.notes.push((decision, what.into()));
        self
    }
}

enum Part<'a> {
    Section(Section, Vec<Item<'a>>),
    Other(&'a RawValue),
}

/// The definitions on their way to green.
pub(super) struct Draft<'a> {
    parts: Vec<(Cow<'a, str>, Part<'a>)>,
    pub(super) changes: Vec<Change>,
    held: Vec<Held>,
    classes: Classes,
}

impl<'a> Draft<'a> {
    /// Parses strictly, and makes sure that every object says what it is and where it lives.
    pub(super) fn parse(definitions: &'a [u8]) -> Result<Self, Malformed> {
        let entries = entries(definitions)?;
        refuse_single_vhost(&entries)?;
        let parts: Result<Vec<_>, Malformed> = entries.into_iter().map(part).collect();
        let draft =
            Self { parts: parts?, changes: Vec::new(), held: Vec::new(), classes: Classes::default() };
        draft.check()?;
        Ok(draft)
    }

    /// The items of a section.
    pub(super) fn items(&self, section: Section) -> impl Iterator<Item = &Item<'a>> {
        self.parts
            .iter()
            .filter_map(move |(_, part)| match part {
                Part::Section(found, items) if *found == section => Some(items),
                Part::Section(_, _) | Part::Other(_) => None,
            })
            .flatten()
    }

    /// The objects of a section as they stand.
    pub(super) fn now(&self, section: Section) -> impl Iterator<Item = Object> {
        self.items(section).filter_map(Item::now)
    }

    /// Takes one step on every object of a section that is still in.
    pub(super) fn each(mut self, section: Section, rule: &str, step: impl Fn(&Object) -> Step) -> Self {
        let (changes, held) = (&mut self.changes, &mut self.held);
        let lists = self.parts.iter_mut().filter_map(|(_, part)| match part {
            Part::Section(found, items) if *found == section => Some(items),
            Part::Section(_, _) | Part::Other(_) => None,
        });
        for item in lists.flatten() {
            let Some(object) = item.now() else { continue };
            let Step { fate, hold, notes } = step(&object);
            if hold {
                let raw = item.text().unwrap_or_default().to_owned();
                held.push(Held { object: reference(section, &object), raw });
            }
            changes.extend(notes.into_iter().map(|(decision, what)| Change {
                rule: rule.to_owned(),
                object: reference(section, &object),
                what,
                decision,
            }));
            if let Some(fate) = fate {
                item.fate = fate;
            }
        }
        self
    }

    /// Keeps a count of what comes and goes.
    pub(super) fn counting(self, classes: Classes) -> Self {
        Self { classes, ..self }
    }

    /// Says something that is about no single object in the list.
    pub(super) fn say(mut self, change: Change) -> Self {
        self.changes.push(change);
        self
    }

    /// Writes the document, into one buffer: it may be tens of megabytes.
    pub(super) fn finish(self) -> Rewritten {
        let mut counts = BTreeMap::new();
        let mut text = String::from("{");
        for (place, (key, part)) in self.parts.iter().enumerate() {
            text.push_str(if place == 0 { "" } else { ",\n" });
            text.push_str(&Value::from(key.as_ref()).to_string());
            text.push(':');
            match part {
                Part::Section(section, items) => {
                    let count = write_list(&mut text, items.iter().filter_map(Item::text));
                    counts.insert(*section, count);
                }
                Part::Other(raw) => text.push_str(raw.get()),
            }
        }
        text.push_str("}\n");
        let document = text.into_bytes();
        let digest = hex(&document);
        Rewritten { document, digest, changes: self.changes, held: self.held, counts, classes: self.classes }
    }

    fn check(&self) -> Result<(), Malformed> {
        let vhosts: HashSet<String> =
            self.now(Section::Vhosts).map(|vhost| text(&vhost, "name").to_owned()).collect();
        for section in Section::ALL {
            for (position, object) in self.now(section).enumerate() {
                let object = identity(section, &object).map_err(|field| Malformed::Object {
                    key: section.key().to_owned(),
                    position,
                    field: field.to_owned(),
                })?;
                if object.vhost.as_ref().is_some_and(|vhost| !vhosts.contains(vhost)) {
                    return Err(Malformed::VhostAbsent { object });
                }
            }
        }
        Ok(())
    }
}

fn refuse_single_vhost(entries: &[(Cow<'_, str>, &RawValue)]) -> Result<(), Malformed> {
    let value = |wanted: &str| entries.iter().find(|(key, _)| key == wanted).map(|(_, raw)| raw.get());
    let says_so = value("rabbitmq_definition_format").is_some_and(|raw| raw == "\"single_virtual_host\"");
    if says_so || value("vhosts").is_none() {
        let vhost = value("original_vhost_name").and_then(|raw| serde_json::from_str(raw).ok());
        return Err(Malformed::SingleVhost { vhost });
    }
    Ok(())
}

fn part<'a>((key, raw): (Cow<'a, str>, &'a RawValue)) -> Result<(Cow<'a, str>, Part<'a>), Malformed> {
    let Some(section) = Section::of_key(&key) else {
        return Ok((key, Part::Other(raw)));
    };
    let malformed = |_| Malformed::Section { key: section.key().to_owned() };
    let raws: Vec<&'a RawValue> = serde_json::from_str(raw.get()).map_err(malformed)?;
    if raws.iter().any(|raw| !raw.get().starts_with('{')) {
        return Err(Malformed::Section { key: section.key().to_owned() });
    }
    let items = raws.into_iter().map(|raw| Item { raw, fate: Fate::Kept }).collect();
    Ok((key, Part::Section(section, items)))
}

/// The text was parsed once already, so it parses again.
fn parsed(text: &str) -> Object {
    serde_json::from_str(text).unwrap_or_default()
}

fn reference(section: Section, object: &Object) -> ObjectRef {
    identity(section, object).unwrap_or_else(|field| ObjectRef {
        section,
        vhost: None,
        name: format!("without {field}"),
    })
}

fn write_list<'t>(text: &mut String, objects: impl Iterator<Item = &'t str>) -> usize {
    text.push('[');
    let mut count = 0;
    for object in objects {
        text.push_str(if count == 0 { "" } else { ",\n" });
        text.push_str(object);
        count += 1;
    }
    text.push(']');
    count
}

fn hex(document: &[u8]) -> String {
    let digest = Sha256::digest(document);
    let nibbles = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    nibbles.filter_map(|nibble| char::from_digit(u32::from(nibble), 16)).collect()
}
