//! The broker's reason for a refusal: unescaped, shortened, secrets masked.

use serde_json::Value;

use crate::secret::MASK;

/// Longest reason kept. 600 characters hold the broker's longest validation message in practice.
const LONGEST: usize = 600;

/// Takes `reason` (or `error`) out of an answer's body.
pub(crate) fn reason(body: &[u8], secrets: &[&str]) -> String {
    let text = match serde_json::from_slice::<Value>(body) {
        Ok(Value::Object(map)) => match map.get("reason").or_else(|| map.get("error")) {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::from_utf8_lossy(body).into_owned(),
        },
        _ => String::from_utf8_lossy(body).into_owned(),
    };
    shorten(&mask(&unescape(&text), secrets))
}

/// Masks known secrets and the user information of every URI.
pub(crate) fn mask(text: &str, secrets: &[&str]) -> String {
    let mut text = text.to_owned();
    for secret in secrets.iter().filter(|s| !s.is_empty()) {
        text = text.replace(secret, MASK);
    }
    // A complaint about a URI quotes it, in parts and in lower case too.
    if text.contains("URI") { mask_quoted(&text) } else { mask_userinfo(&text) }
}

/// Every quoted string becomes `"***"`.
fn mask_quoted(text: &str) -> String {
    let masked = text.split('"').enumerate().map(|(n, part)| if n % 2 == 1 { MASK } else { part });
    mask_userinfo(&masked.collect::<Vec<_>>().join("\""))
}

/// `scheme://user:pass@host` becomes `scheme://***@host`; an `@` inside the password is covered too.
fn mask_userinfo(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        out.push_str(before);
        out.push_str("://");
        // Up to the end of the line: a bare space or slash in a password must not end the search.
        let line = after.find('\n').unwrap_or(after.len());
        let next = after[..line].find("://").unwrap_or(line);
        match after[..next].rfind('@') {
            Some(at) => {
                out.push_str(MASK);
                rest = &after[at..];
            }
            None => rest = after,
        }
    }
    out.push_str(rest);
    out
}

/// 3.x escapes its reasons for HTML.
fn unescape(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

/// One line, bounded.
fn shorten(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_refusal_reads_well() {
        let body = br#"{"error":"bad_request","reason":"Validation failed\n\nUnrecognised terms [{&lt;&lt;\"bad\"&gt;&gt;,1}] in s\n (v1/shovel/s)"}"#;
        assert_eq!(
            reason(body, &[]),
            r#"Validation failed Unrecognised terms [{<<"bad">>,1}] in s (v1/shovel/s)"#
        );
    }

    #[test]
    fn secrets_and_uris_are_masked() {
        let text = "amqp://u:p@ss/w rd@host/%2f and amqps://x:y@z; hash AbCd=";
        assert_eq!(mask(text, &["AbCd="]), "amqp://***@host/%2f and amqps://***@z; hash ***");
        assert_eq!(mask("see http://example.org/page", &[]), "see http://example.org/page");
    }

    #[test]
    fn a_complaint_about_a_uri_quotes_nothing() {
        let text =
            r#""src-uri" not a valid URI: {{unexpected_uri_scheme,"planted"},"Planted:x"} amqp://u:p@h"#;
        assert_eq!(
            mask(text, &[]),
            r#""***" not a valid URI: {{unexpected_uri_scheme,"***"},"***"} amqp://***@h"#
        );
    }

    #[test]
    fn long_and_odd_bodies_are_bounded() {
        assert_eq!(reason(&[b'x'; 5000], &[]).chars().count(), LONGEST + 1);
        assert_eq!(reason(br#"{"reason":["a"]}"#, &[]), r#"["a"]"#);
        assert_eq!(reason(b"", &[]), "");
    }
}
