//! Lenient field readers: the broker writes `"undefined"`, `null`, `[]` or nothing where a value is unknown.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// A whole number, or `None` for anything else.
pub(super) fn number<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    Ok(Value::deserialize(d)?.as_u64())
}

/// A boolean, or `None` for anything else.
pub(super) fn boolean<'de, D: Deserializer<'de>>(d: D) -> Result<Option<bool>, D::Error> {
    Ok(Value::deserialize(d)?.as_bool())
}

/// A string, or `None` for anything else and for Erlang's `undefined`.
pub(super) fn text<'de, D: Deserializer<'de>>(d: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(d)? {
        Value::String(text) if text != "undefined" => Some(text),
        _ => None,
    })
}

/// An object; `[]`, Erlang's empty property list, is an empty object.
pub(super) fn object<'de, D: Deserializer<'de>>(d: D) -> Result<Map<String, Value>, D::Error> {
    Ok(match Value::deserialize(d)? {
        Value::Object(map) => map,
        _ => Map::new(),
    })
}

/// Named whole numbers; what is not a whole number is left out.
pub(super) fn limits<'de, D: Deserializer<'de>>(d: D) -> Result<BTreeMap<String, i64>, D::Error> {
    Ok(object(d)?.into_iter().filter_map(|(key, value)| Some((key, value.as_i64()?))).collect())
}

/// Tags: a list since 3.9, a comma-separated string before.
pub(super) fn tags<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<String>, D::Error> {
    Ok(match Value::deserialize(d)? {
        Value::Array(tags) => tags.into_iter().filter_map(|t| t.as_str().map(str::to_owned)).collect(),
        Value::String(tags) => {
            tags.split(',').map(str::trim).filter(|t| !t.is_empty()).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    })
}

/// A list of strings; absent stays `None` (use with `default`).
pub(super) fn names<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Vec<String>>, D::Error> {
    Ok(match Value::deserialize(d)? {
        Value::Array(names) => {
            Some(names.into_iter().filter_map(|n| n.as_str().map(str::to_owned)).collect())
        }
        _ => None,
    })
}

/// One string at a path inside an object.
pub(super) fn string_in(map: &Map<String, Value>, key: &str) -> Option<String> {
    map.get(key).and_then(Value::as_str).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Row {
        #[serde(default, deserialize_with = "number")]
        n: Option<u64>,
        #[serde(default, deserialize_with = "text")]
        t: Option<String>,
        #[serde(default, deserialize_with = "tags")]
        g: Vec<String>,
        #[serde(default, deserialize_with = "limits")]
        l: BTreeMap<String, i64>,
    }

    fn row(json: &str) -> Row {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn unknown_is_not_zero() {
        assert_eq!(row("{}").n, None);
        assert_eq!(row(r#"{"n":null}"#).n, None);
        assert_eq!(row(r#"{"n":"undefined"}"#).n, None);
        assert_eq!(row(r#"{"n":-1}"#).n, None);
        assert_eq!(row(r#"{"n":0}"#).n, Some(0));
        assert_eq!(row(r#"{"t":"undefined"}"#).t, None);
    }

    #[test]
    fn tags_and_limits_have_two_forms() {
        assert_eq!(row(r#"{"g":"administrator, monitoring"}"#).g, ["administrator", "monitoring"]);
        assert_eq!(row(r#"{"g":["administrator"]}"#).g, ["administrator"]);
        assert!(row(r#"{"l":[]}"#).l.is_empty());
        assert_eq!(row(r#"{"l":{"max-connections":0,"x":"y"}}"#).l["max-connections"], 0);
    }
}
