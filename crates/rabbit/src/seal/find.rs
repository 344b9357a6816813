//! Where the secrets of a definitions document are, as byte ranges of its text.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::Cause;

/// Sections whose values can hold URIs.
const PARAMETERS: [&str; 3] = ["parameters", "global_parameters", "global-parameters"];

/// Query parameter that holds the password of a private key.
const KEY: &str = "password=";

/// Components without secrets. Their patterns must stay readable, even one with a colon and an `@`.
const PLAIN: [&str; 2] = ["\"operator_policy\"", "\"vhost-limits\""];

/// Secrets, ascending, each inside the quotes of one JSON string, escapes as they are.
pub(super) fn secrets(text: &str) -> Result<Vec<Range<usize>>, Cause> {
    let mut spots = Vec::new();
    visit(text, &mut |place, range| match place {
        Place::Password => spots.push(range),
        Place::Parameter => spots.extend(uri_secrets(&text[range.clone()], range.start)),
    })?;
    spots.retain(|spot| !spot.is_empty());
    Ok(spots)
}

/// All strings that [`secrets`] looks at, ascending.
pub(super) fn candidates(text: &str) -> Result<Vec<Range<usize>>, Cause> {
    let mut spots = Vec::new();
    visit(text, &mut |_, range| spots.push(range))?;
    Ok(spots)
}

#[derive(Clone, Copy)]
enum Place {
    /// `password_hash` or `password` of a user.
    Password,
    /// A string in the value of a parameter.
    Parameter,
}

/// Walks to every place; ranges are the contents of strings, without quotes.
fn visit(text: &str, see: &mut impl FnMut(Place, Range<usize>)) -> Result<(), Cause> {
    let malformed = |e: serde_json::Error| Cause::Malformed(position(&e));
    let document: Members = serde_json::from_str(text).map_err(malformed)?;
    for (section, value) in document.0 {
        if section == "users" {
            for user in objects(value) {
                for (key, value) in user.0 {
                    if matches!(&*key, "password_hash" | "password") {
                        strings(text, value, &mut |range| see(Place::Password, range));
                    }
                }
            }
        } else if PARAMETERS.contains(&&*section) {
            for parameter in objects(value).into_iter().filter(|parameter| !is_plain(parameter)) {
                for (_, value) in parameter.0.into_iter().filter(|(key, _)| key == "value") {
                    strings(text, value, &mut |range| see(Place::Parameter, range));
                }
            }
        }
    }
    Ok(())
}

/// Whether a parameter is of a component without secrets; a doubled key must not lie about it.
fn is_plain(parameter: &Members) -> bool {
    let mut components = parameter.0.iter().filter(|(key, _)| key == "component").peekable();
    components.peek().is_some() && components.all(|(_, value)| PLAIN.contains(&value.get()))
}

/// The objects of an array; nothing for anything else.
fn objects(value: &RawValue) -> Vec<Members<'_>> {
    let items: Vec<&RawValue> = serde_json::from_str(value.get()).unwrap_or_default();
    items.into_iter().filter_map(|item| serde_json::from_str(item.get()).ok()).collect()
}

/// Every string inside a value, keys of objects not counted.
fn strings(text: &str, value: &RawValue, see: &mut dyn FnMut(Range<usize>)) {
    let raw = value.get();
    match raw.as_bytes().first() {
        Some(b'"') => {
            // The raw value is a slice of the text: its address tells where.
            let start = raw.as_ptr().addr() - text.as_ptr().addr() + 1;
            see(start..start + raw.len() - 2);
        }
        Some(b'[') => {
            for item in serde_json::from_str::<Vec<&RawValue>>(raw).unwrap_or_default() {
                strings(text, item, see);
            }
        }
        Some(b'{') => {
            for (_, item) in serde_json::from_str::<Members>(raw).map(|m| m.0).unwrap_or_default() {
                strings(text, item, see);
            }
        }
        _ => {}
    }
}

/// Secret parts of a string that looks like a URI: the password up to the **last** `@` (passwords with an
/// unescaped `@` or `/` happen), user information without a colon (a token), and `password=` of the query. With
/// an escape inside, or with `:` and `@` but no scheme, the whole is sealed rather than taken apart.
fn uri_secrets(raw: &str, offset: usize) -> Vec<Range<usize>> {
    let all = offset..offset + raw.len();
    // An escape can hide every sign of a URI.
    if raw.contains('\\') {
        return Vec::from_iter([all]);
    }
    let Some(authority) = raw.find("://").map(|at| at + 3) else {
        return if raw.contains('@') && raw.contains(':') { Vec::from_iter([all]) } else { Vec::new() };
    };
    let mut spots = Vec::new();
    let at = raw.rfind('@').filter(|&at| at >= authority);
    if let Some(at) = at {
        match raw[authority..at].find(':') {
            Some(colon) => spots.push(offset + authority + colon + 1..offset + at),
            None => spots.push(offset + authority..offset + at),
        }
    }
    let mut from = at.unwrap_or(authority);
    while let Some(found) = raw[from..].find(KEY) {
        let start = from + found + KEY.len();
        from = raw[start..].find('&').map_or(raw.len(), |end| start + end);
        spots.push(offset + start..offset + from);
    }
    spots
}

/// Where the parser stopped, without what it read: the text around is a secret, perhaps.
fn position(error: &serde_json::Error) -> String {
    format!("not a definitions document (line {}, column {})", error.line(), error.column())
}

/// Members of an object in their order, doubled keys included, values raw.
#[derive(Default)]
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry::<Key<'de>, &'de RawValue>()? {
                    members.push((key.0, value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// A key, borrowed where it has no escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);
