//! Makes sealed documents comparable: equal secrets become equal marks, and nobody can tell what they are.

use rabbit::seal::{SealBook, unseal};
use rabbit::{Cause, Error};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// What every seal begins with, before the number of its book.
const SEAL: &str = "{{seal:";

/// The key of the marks: made by chance, kept in memory, so that marks in a log would tell nothing.
pub type Key = [u8; 32];

/// Replaces the seals of `document` by marks that are equal where the secrets are. Two books number the same
/// secret differently, and `decide` shall see neither.
pub fn alike(document: &[u8], seals: &SealBook, key: &Key) -> rabbit::Result<Vec<u8>> {
    if seals.is_empty() {
        return Ok(document.to_vec());
    }
    let text = std::str::from_utf8(document).map_err(|error| malformed(&error.to_string()))?;
    for tag in tags(text) {
        if let Some(marks) = marks(&tag, seals, key)? {
            return replace(text, &format!("{SEAL}{tag}:"), &marks);
        }
    }
    // The rewrites dropped all that was sealed.
    Ok(document.to_vec())
}

/// Numbers of books that the text may speak of.
fn tags(text: &str) -> BTreeSet<String> {
    let number = |rest: &str| -> Option<String> {
        let (digits, _) = rest.split_once(':')?;
        digits.parse::<u64>().ok().map(|_| digits.to_owned())
    };
    text.split(SEAL).skip(1).filter_map(number).collect()
}

/// A mark for each secret of the book, if `tag` is the book's.
fn marks(tag: &str, seals: &SealBook, key: &Key) -> rabbit::Result<Option<Vec<String>>> {
    let user = |number: usize| json!({ "name": number.to_string(), "password_hash": format!("{SEAL}{tag}:{number}}}}}") });
    let users: Vec<Value> = (0..seals.len()).map(user).collect();
    let sealed = json!({ "users": users }).to_string();
    let open = unseal(sealed.as_bytes(), seals)?;
    if open == sealed.as_bytes() {
        return Ok(None);
    }
    let open: Value = serde_json::from_slice(&open).map_err(|_| malformed("a secret that is no text"))?;
    let users = open.get("users").and_then(Value::as_array).cloned().unwrap_or_default();
    let secret = |user: &Value| user.get("password_hash").and_then(Value::as_str).map(|s| mark(s, key));
    Ok(users.iter().map(secret).collect())
}

/// A mark: the start of a keyed digest.
fn mark(secret: &str, key: &Key) -> String {
    let digest = Sha256::new().chain_update(key).chain_update(secret.as_bytes()).finalize();
    let start = digest.iter().take(8).fold(0_u64, |start, byte| start << 8 | u64::from(*byte));
    format!("{{{{same:{start:016x}}}}}")
}

fn replace(text: &str, opening: &str, marks: &[String]) -> rabbit::Result<Vec<u8>> {
    let mut out = String::with_capacity(text.len());
    let mut parts = text.split(opening);
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (number, behind) = part.split_once("}}").ok_or_else(|| malformed("a seal without an end"))?;
        let mark = number.parse::<usize>().ok().and_then(|number| marks.get(number));
        out.push_str(mark.ok_or_else(|| malformed("a seal that the book does not know"))?);
        out.push_str(behind);
    }
    Ok(out.into_bytes())
}

fn malformed(why: &str) -> Error {
    Error::Seal { attempt: "compare", cause: Cause::Malformed(why.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rabbit::seal::seal;

    fn marked(document: &str, key: &Key) -> String {
        let sealed = seal(document.as_bytes()).unwrap();
        String::from_utf8(alike(&sealed.bytes, &sealed.seals, key).unwrap()).unwrap()
    }

    #[test]
    fn equal_secrets_are_alike_in_any_order_and_others_are_not() {
        let key = [7; 32];
        let one = marked(
            r#"{"users":[{"name":"a","password_hash":"A+/x"},{"name":"b","password_hash":"BBBB"}]}"#,
            &key,
        );
        let other = marked(
            r#"{"users":[{"name":"z","password_hash":"ZZZZ"},{"name":"b","password_hash":"BBBB"},{"name":"a","password_hash":"A+\/x"}]}"#,
            &key,
        );
        let of = |text: &str, name: &str| -> String {
            let users: Value = serde_json::from_str(text).unwrap();
            let user = users["users"].as_array().unwrap().iter().find(|user| user["name"] == name);
            user.unwrap()["password_hash"].as_str().unwrap().to_owned()
        };
        assert_eq!(of(&one, "a"), of(&other, "a"), "however it is escaped");
        assert_eq!(of(&one, "b"), of(&other, "b"));
        assert_ne!(of(&one, "a"), of(&one, "b"));
        assert!(!one.contains("A+") && !one.contains("BBBB"));
        assert_ne!(one, marked(r#"{"users":[{"name":"a","password_hash":"A+/x"}]}"#, &[8; 32]));
    }

    #[test]
    fn a_queue_named_like_a_seal_stays_what_it_is() {
        let text = r#"{"users":[{"name":"a","password_hash":"AAAA"}],"queues":[{"name":"{{seal:0:0}}"}]}"#;
        assert!(marked(text, &[7; 32]).contains(r#"{"name":"{{seal:0:0}}"}"#));
    }
}
