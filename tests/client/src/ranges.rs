//! Sets of sequence numbers that stay small: inclusive ranges, and layers of them for "how many times". Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A set of sequence numbers, kept as inclusive ranges; as JSON `[[first, last], ...]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Adds a number; false when it was there already.
    pub fn insert(&mut self, seq: u64) -> bool {
        let before = self.0.range(..=seq).next_back().map(|(first, last)| (*first, *last));
        if before.is_some_and(|(_, last)| last >= seq) {
            return false;
        }
        let last = seq.checked_add(1).and_then(|next| self.0.remove(&next)).unwrap_or(seq);
        let first = before.filter(|(_, end)| *end + 1 == seq).map_or(seq, |(first, _)| first);
        self.0.insert(first, last);
        true
    }

    /// Is this number in the set?
    pub fn contains(&self, seq: u64) -> bool {
        self.0.range(..=seq).next_back().is_some_and(|(_, last)| *last >= seq)
    }

    /// Counts the numbers.
    pub fn len(&self) -> u64 {
        self.0.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// Is it empty?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Walks through the numbers in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.0.iter().flat_map(|(first, last)| *first..=*last)
    }
}

impl FromIterator<u64> for Ranges {
    fn from_iter<I: IntoIterator<Item = u64>>(seqs: I) -> Self {
        let mut set = Self::default();
        for seq in seqs {
            set.insert(seq);
        }
        set
    }
}

impl From<Vec<(u64, u64)>> for Ranges {
    fn from(pairs: Vec<(u64, u64)>) -> Self {
        Self(pairs.into_iter().collect())
    }
}

impl From<Ranges> for Vec<(u64, u64)> {
    fn from(set: Ranges) -> Self {
        set.0.into_iter().collect()
    }
}

/// A multiset of sequence numbers: layer `k` holds those that were added more than `k` times.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Layers(Vec<Ranges>);

impl Layers {
    /// Adds a number once more.
    pub fn insert(&mut self, seq: u64) {
        for layer in &mut self.0 {
            if layer.insert(seq) {
                return;
            }
        }
        self.0.push([seq].into_iter().collect());
    }

    /// Counts how often a number was added.
    pub fn count(&self, seq: u64) -> u64 {
        self.0.iter().take_while(|layer| layer.contains(seq)).map(|_| 1).sum()
    }

    /// Counts all that was added.
    pub fn len(&self) -> u64 {
        self.0.iter().map(Ranges::len).sum()
    }

    /// Is it empty?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(seqs: &[u64], expected: &[(u64, u64)]) {
        let set: Ranges = seqs.iter().copied().collect();
        assert_eq!(Vec::from(set.clone()), expected);
        assert_eq!(set.len(), set.iter().count() as u64);
        assert!(seqs.iter().all(|seq| set.contains(*seq)));
    }

    #[test]
    fn joins_neighbours_in_any_order() {
        check(&[], &[]);
        check(&[1, 2, 3], &[(1, 3)]);
        check(&[3, 1, 2], &[(1, 3)]);
        check(&[5, 1, 3, 2, 4, 9, 3], &[(1, 5), (9, 9)]);
        check(&[u64::MAX, 0, u64::MAX - 1], &[(0, 0), (u64::MAX - 1, u64::MAX)]);
    }

    #[test]
    fn says_what_is_missing() {
        let set: Ranges = [1, 2, 4].into_iter().collect();
        assert!(!set.contains(0) && !set.contains(3) && !set.contains(5));
    }

    #[test]
    fn layers_count_repetitions() {
        let mut layers = Layers::default();
        for seq in [7, 8, 7, 7] {
            layers.insert(seq);
        }
        assert_eq!((layers.count(7), layers.count(8), layers.count(9), layers.len()), (3, 1, 0, 4));
        assert_eq!(serde_json::to_string(&layers).unwrap(), "[[[7,8]],[[7,7]],[[7,7]]]");
    }
}
