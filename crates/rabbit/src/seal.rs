//! Takes the secrets out of a definitions document and puts them back: what lies between sees none.

mod find;

use std::collections::BTreeSet;
use std::fmt;

use crate::error::{Cause, Error, Result};
use crate::secret::Secret;

/// A document without secrets and the book that can restore it.
#[derive(Debug)]
pub struct Sealed {
    /// The document; byte for byte the original but for the sealed strings.
    pub bytes: Vec<u8>,
    /// What the seals stand for. In memory only.
    pub seals: SealBook,
}

/// What each seal stands for, as raw JSON string content. Prints its size, has no `Serialize`.
#[derive(Clone, Default)]
pub struct SealBook {
    tag: u64,
    secrets: Vec<Secret>,
}

impl fmt::Debug for SealBook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealBook").field("seals", &self.secrets.len()).finish_non_exhaustive()
    }
}

impl SealBook {
    /// How many secrets were sealed.
    pub fn len(&self) -> usize {
        self.secrets.len()
    }

    /// Whether there was none.
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// What every seal of this book begins with.
    fn opening(&self) -> String {
        opening(self.tag)
    }
}

/// Replaces each secret of an export by a seal such as `{{seal:0:17}}`: password hashes (and passwords) of
/// users, and the password part of every URI in parameters (`amqp://user:{{seal:0:3}}@host`), in strings and
/// lists, at any depth. No I/O. A URI that cannot be taken apart safely is sealed whole.
///
/// The first number is the book's, chosen so that the document holds no such text already: a queue that is
/// named like a seal stays what it is.
pub fn seal(document: &[u8]) -> Result<Sealed> {
    let sealed = || {
        let text = std::str::from_utf8(document).map_err(|e| Cause::Malformed(e.to_string()))?;
        let spots = find::secrets(text)?;
        let mut book = SealBook { tag: unused_tag(text), secrets: Vec::with_capacity(spots.len()) };
        let mut bytes = Vec::with_capacity(document.len());
        let mut done = 0;
        for spot in spots {
            bytes.extend_from_slice(&text.as_bytes()[done..spot.start]);
            bytes.extend_from_slice(format!("{}{}}}}}", book.opening(), book.secrets.len()).as_bytes());
            book.secrets.push(Secret::from(&text[spot.clone()]));
            done = spot.end;
        }
        bytes.extend_from_slice(&text.as_bytes()[done..]);
        Ok(Sealed { bytes, seals: book })
    };
    sealed().map_err(|cause| Error::Seal { attempt: "seal", cause })
}

/// Puts the secrets back. Looks only where [`seal`] seals, so objects may have been removed, added, reordered
/// or reserialized in between. No I/O. Fails on a seal of this book whose number it does not know.
pub fn unseal(document: &[u8], seals: &SealBook) -> Result<Vec<u8>> {
    let unsealed = || {
        let text = std::str::from_utf8(document).map_err(|e| Cause::Malformed(e.to_string()))?;
        let mut bytes = Vec::with_capacity(document.len());
        let mut done = 0;
        for spot in find::candidates(text)? {
            bytes.extend_from_slice(&text.as_bytes()[done..spot.start]);
            bytes.extend_from_slice(fill(&text[spot.clone()], seals)?.as_bytes());
            done = spot.end;
        }
        bytes.extend_from_slice(&text.as_bytes()[done..]);
        Ok(bytes)
    };
    unsealed().map_err(|cause| Error::Seal { attempt: "unseal", cause })
}

/// All secrets of a document, unescaped; empty if it cannot be read. For masking the broker's answers.
pub(crate) fn secrets_in(document: &[u8]) -> Vec<Secret> {
    let Ok(text) = std::str::from_utf8(document) else { return Vec::new() };
    let spots = find::secrets(text).unwrap_or_default();
    let plain = |raw: &str| serde_json::from_str::<String>(&format!("\"{raw}\"")).unwrap_or(raw.to_owned());
    spots.into_iter().map(|spot| Secret::from(plain(&text[spot]))).collect()
}

/// One string's raw content with its seals replaced.
fn fill(raw: &str, seals: &SealBook) -> Result<String, Cause> {
    let opening = seals.opening();
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((before, after)) = rest.split_once(opening.as_str()) {
        out.push_str(before);
        let unknown = || Cause::Malformed("a seal that this book does not know".into());
        let (number, behind) = after.split_once("}}").ok_or_else(unknown)?;
        let secret = number.parse::<usize>().ok().and_then(|n| seals.secrets.get(n)).ok_or_else(unknown)?;
        out.push_str(secret.expose());
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

fn opening(tag: u64) -> String {
    format!("{{{{seal:{tag}:")
}

/// The smallest number whose opening the document does not contain.
fn unused_tag(text: &str) -> u64 {
    let mut taken = BTreeSet::new();
    for (at, _) in text.match_indices("{{seal:") {
        let digits = &text[at + "{{seal:".len()..];
        if let Some((number, _)) = digits.split_once(':')
            && let Ok(number) = number.parse::<u64>()
        {
            taken.insert(number);
        }
    }
    // One more candidate than taken ones: there is always a free one.
    let candidates = 0..=u64::try_from(taken.len()).unwrap_or(u64::MAX);
    candidates.into_iter().find(|tag| !taken.contains(tag)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
