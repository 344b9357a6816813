//! Strict JSON: RFC 8259, no key twice at any depth. Brokers disagree about both, so we judge first.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::outcome::Malformed;

/// What some editors put before a text. The broker would refuse it; it means nothing, so it is skipped.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Splits a definitions file into its top-level entries, borrowed, in their order.
pub(super) fn entries(definitions: &[u8]) -> Result<Vec<(Cow<'_, str>, &RawValue)>, Malformed> {
    let text = definitions.strip_prefix(BYTE_ORDER_MARK).unwrap_or(definitions);
    let malformed = |error: serde_json::Error| Malformed::Json { detail: error.to_string() };
    serde_json::from_slice::<Strict>(text).map_err(malformed)?;
    let Entries(entries) = serde_json::from_slice(text).map_err(malformed)?;
    Ok(entries)
}

/// Any value in which no object has a key twice.
struct Strict;

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Strict;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_str<E>(self, _: &str) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Strict, A::Error> {
        while list.next_element::<Strict>()?.is_some() {}
        Ok(Strict)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Strict, A::Error> {
        let mut keys = HashSet::new();
        while let Some(Key(key)) = map.next_key()? {
            if keys.contains(&key) {
                return Err(A::Error::custom(format_args!("the key {key:?} is there twice")));
            }
            keys.insert(key);
            map.next_value::<Strict>()?;
        }
        Ok(Strict)
    }
}

/// A key, borrowed where it has no escapes.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// The top-level object's entries.
struct Entries<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor).map(Entries)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of definitions")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(Key(key)) = map.next_key()? {
            entries.push((key, map.next_value()?));
        }
        Ok(entries)
    }
}
