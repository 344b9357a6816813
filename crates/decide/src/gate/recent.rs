//! The most recent hour, one letter per window: small enough for a ConfigMap, readable in one.

use serde::{Deserialize, Serialize};

use super::score::Count;

/// The window said nothing here.
const NOTHING: char = '-';
const GOOD: char = 'g';
const BAD: char = 'b';

/// Answers of the last windows, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Recent(String);

impl Recent {
    /// Adds the next window's answer, forgetting what is older than `keep` windows.
    #[must_use]
    pub fn plus(self, bad: Option<bool>, keep: usize) -> Self {
        let mut letters = self.0;
        letters.push(match bad {
            Some(true) => BAD,
            Some(false) => GOOD,
            None => NOTHING,
        });
        Self(newest(letters, keep))
    }

    /// Lets windows pass that nobody saw.
    #[must_use]
    pub fn skip(self, windows: u64, keep: usize) -> Self {
        let windows = usize::try_from(windows).unwrap_or(usize::MAX).min(keep);
        let mut letters = self.0;
        letters.extend(std::iter::repeat_n(NOTHING, windows));
        Self(newest(letters, keep))
    }

    /// Counts the answers.
    pub fn count(&self) -> Count {
        self.votes().fold(Count::default(), Count::plus)
    }

    /// Counts neighbors as one, good only when both are; an odd oldest answer is left out.
    pub fn count_pairs(&self) -> Count {
        let mut newest_first = self.votes().rev();
        let mut count = Count::default();
        while let (Some(one), Some(other)) = (newest_first.next(), newest_first.next()) {
            count = count.plus(one || other);
        }
        count
    }

    /// What it would be after so many more good windows.
    #[must_use]
    pub fn after_good(&self, windows: usize, keep: usize) -> Self {
        let mut letters = self.0.clone();
        letters.extend(std::iter::repeat_n(GOOD, windows));
        Self(newest(letters, keep))
    }

    fn votes(&self) -> impl DoubleEndedIterator<Item = bool> + '_ {
        self.0.chars().filter(|letter| matches!(*letter, GOOD | BAD)).map(|letter| letter == BAD)
    }
}

fn newest(mut letters: String, keep: usize) -> String {
    let surplus = letters.chars().count().saturating_sub(keep);
    if let Some((at, _)) = letters.char_indices().nth(surplus).filter(|_| surplus > 0) {
        letters.drain(..at);
    } else if surplus > 0 {
        letters.clear();
    }
    letters
}
