//! Paths of the management API: every segment encoded byte by byte, dot segments refused.

use std::fmt::Write as _;

use crate::error::Cause;

/// Builds `/a/b/c`, each segment percent-encoded except for RFC 3986 unreserved bytes.
///
/// A segment that is empty, `.` or `..` is refused: URL parsers (ours included) fold dot segments even when
/// they are written as `%2E`, so `DELETE /api/queues/%2F/..` would hit another object. Objects with such
/// names can be read in lists and exported, but not addressed one by one.
pub(crate) fn path(segments: &[&str]) -> Result<String, Cause> {
    let mut out = String::with_capacity(segments.iter().map(|s| s.len() + 1).sum());
    for segment in segments {
        if matches!(*segment, "" | "." | "..") {
            return Err(Cause::Name((*segment).to_owned()));
        }
        out.push('/');
        encode(segment, &mut out);
    }
    Ok(out)
}

/// Appends `text` percent-encoded.
fn encode(text: &str, out: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_stay_one_segment() {
        let encoded = path(&["api", "queues", "/", "a/b?c#d%2F\u{e9} ;:@&=+$,\n"]).unwrap();
        assert_eq!(encoded, "/api/queues/%2F/a%2Fb%3Fc%23d%252F%C3%A9%20%3B%3A%40%26%3D%2B%24%2C%0A");
        let url = reqwest::Url::parse(&format!("http://h{encoded}")).unwrap();
        assert_eq!(url.path(), encoded, "the URL parser must not change it");
    }

    #[test]
    fn unreserved_bytes_pass() {
        assert_eq!(path(&["aZ0-._~", "...", "a..b"]).unwrap(), "/aZ0-._~/.../a..b");
    }

    #[test]
    fn dot_segments_and_empty_names_are_refused() {
        for name in ["", ".", ".."] {
            assert_eq!(path(&["api", name]), Err(Cause::Name(name.to_owned())));
        }
    }
}
