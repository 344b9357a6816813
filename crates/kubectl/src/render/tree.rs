//! A tree of labeled texts, drawn within a width.

use super::Look;

/// What a label means, as a color.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Paint {
    /// Nothing special.
    #[default]
    Plain,
    /// As it should be.
    Good,
    /// A person should look.
    Care,
    /// A person must look.
    Bad,
}

impl Paint {
    const fn code(self) -> &'static str {
        match self {
            Self::Plain => "1",
            Self::Good => "32",
            Self::Care => "33",
            Self::Bad => "31",
        }
    }
}

/// A text with a label and what belongs to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    label: String,
    text: String,
    paint: Paint,
    below: Vec<Node>,
}

impl Node {
    /// A text alone.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A text with a label.
    pub fn new(label: impl Into<String>, text: impl Into<String>) -> Self {
        Self { label: label.into(), text: text.into(), ..Self::default() }
    }

    /// With a color.
    pub fn painted(self, paint: Paint) -> Self {
        Self { paint, ..self }
    }

    /// With what belongs to it.
    pub fn with(mut self, below: impl IntoIterator<Item = Self>) -> Self {
        self.below.extend(below);
        self
    }
}

/// Columns of the labels at the top: the longest has ten letters.
const LABEL: usize = 11;
/// Columns that a text keeps however deep it stands.
const NARROWEST: usize = 20;

/// The tree below `title`.
pub fn draw(title: &Node, parts: &[Node], look: Look) -> String {
    let mut out = String::new();
    for line in wrap(&clean(&title.text), look.width) {
        out.push_str(&painted(&line, title.paint, look));
        out.push('\n');
    }
    branch(parts, "", LABEL, look, &mut out);
    out
}

fn branch(nodes: &[Node], before: &str, label_width: usize, look: Look, out: &mut String) {
    for (number, node) in nodes.iter().enumerate() {
        let last = number + 1 == nodes.len();
        let (mark, rest) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        let label = clean(&node.label);
        let padded = if label.is_empty() { String::new() } else { format!("{label:<label_width$} ") };
        // Below a label stands its text; below a long one it would have no room.
        let hang = if label_width > 0 { padded.chars().count() } else { 0 };
        let taken = before.chars().count() + mark.chars().count();
        let room = look.width.saturating_sub(taken);
        let first = room.saturating_sub(padded.chars().count()).max(NARROWEST);
        let lines = wrap_hanging(&clean(&node.text), first, room.saturating_sub(hang).max(NARROWEST));
        for (index, line) in lines.iter().enumerate() {
            let text = if index == 0 {
                format!("{before}{mark}{}{line}", painted(&padded, node.paint, look))
            } else {
                format!("{before}{rest}{}{line}", " ".repeat(hang))
            };
            out.push_str(text.trim_end());
            out.push('\n');
        }
        branch(&node.below, &format!("{before}{rest}"), 0, look, out);
    }
}

/// What a broker or a person wrote must not steer the terminal: control characters are shown as one sign.
fn clean(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c == '\n' || c == '\t' {
                ' '
            } else if c.is_control() {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

fn painted(text: &str, paint: Paint, look: Look) -> String {
    if look.color && !text.trim().is_empty() {
        let body = text.trim_end();
        let gap = text.get(body.len()..).unwrap_or_default();
        format!("\x1b[{}m{body}\x1b[0m{gap}", paint.code())
    } else {
        text.to_owned()
    }
}

fn wrap(text: &str, width: usize) -> Vec<String> {
    wrap_hanging(text, width, width)
}

/// Lines of at most `first` columns, then `others`; a word that is longer is broken.
fn wrap_hanging(text: &str, first: usize, others: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let mut word: Vec<char> = word.chars().collect();
        loop {
            let width = if lines.is_empty() { first } else { others };
            let gap = usize::from(used > 0);
            if used + gap + word.len() <= width {
                if gap == 1 {
                    line.push(' ');
                }
                used += gap + word.len();
                line.extend(word);
                break;
            }
            if used > 0 {
                lines.push(std::mem::take(&mut line));
                used = 0;
            } else {
                let rest = word.split_off(width);
                lines.push(word.into_iter().collect());
                word = rest;
            }
        }
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}
