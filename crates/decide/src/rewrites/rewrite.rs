//! Runs all rewrites over blue's definitions.

use super::context::Context;
use super::draft::Draft;
use super::outcome::{Malformed, Rewritten};
use super::rules::ALL;

/// Lists all rewrites in their order: the name that changes bear, and why it stands at its place.
pub fn catalogue() -> impl Iterator<Item = (&'static str, &'static str)> {
    ALL.iter().map(|rewrite| (rewrite.id, rewrite.place))
}

/// Turns blue's definitions, with secrets already sealed, into those for green.
///
/// # Errors
/// When the text is not a strict export of a whole cluster; then nothing may be written to green.
pub fn rewrite(definitions: &[u8], cx: &Context) -> Result<Rewritten, Malformed> {
    let draft = Draft::parse(definitions)?;
    Ok(ALL.iter().fold(draft, |draft, rewrite| (rewrite.apply)(draft, cx)).finish())
}
