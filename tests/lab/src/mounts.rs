//! Reads the mount table of a process.

use std::path::{Path, PathBuf};

use crate::error::{Attempt, Result};

/// The mount points at and below a directory in our own mount table, deepest first.
pub fn below(directory: &Path) -> Result<Vec<PathBuf>> {
    let table = "/proc/self/mountinfo";
    let text = std::fs::read_to_string(table).attempt(|| format!("read {table}"))?;
    Ok(points_below(&text, directory))
}

fn points_below(table: &str, directory: &Path) -> Vec<PathBuf> {
    let points = table.lines().filter_map(|line| line.split(' ').nth(4)).map(unescape);
    let mut found: Vec<_> = points.filter(|point| point.starts_with(directory)).collect();
    // Later mounts lie on top of earlier ones at the same place: those of equal depth come last first.
    found.reverse();
    found.sort_by_key(|point| std::cmp::Reverse(point.components().count()));
    found
}

/// The kernel writes space, tab, newline and backslash as three octal digits.
fn unescape(field: &str) -> PathBuf {
    let mut text = String::new();
    let mut rest = field;
    while let Some((before, after)) = rest.split_once('\\') {
        text.push_str(before);
        let code = after.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => text.push(char::from(code)),
            None => text.push('\\'),
        }
        rest = if code.is_some() { after.get(3..).unwrap_or_default() } else { after };
    }
    text.push_str(rest);
    PathBuf::from(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
60 27 0:40 / /lab rw - tmpfs tmpfs rw
61 60 0:41 / /lab/pods/a\\040b rw - tmpfs tmpfs rw
62 61 0:6 / /lab/pods/a\\040b/dev rw - devtmpfs devtmpfs rw
63 27 0:42 / /laboratory rw - tmpfs tmpfs rw
";

    #[test]
    fn only_what_lies_below_deepest_first_with_names_unescaped() {
        let found = points_below(TABLE, Path::new("/lab"));
        assert_eq!(found, ["/lab/pods/a b/dev", "/lab/pods/a b", "/lab"].map(PathBuf::from));
    }

    #[test]
    fn a_name_that_only_begins_alike_is_not_below() {
        assert!(points_below(TABLE, Path::new("/laborator")).is_empty());
    }
}
