//! A set of whole numbers as ranges: millions of consecutive numbers take one pair.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A set of `u64`, stored as disjoint ranges; serialized as a list of `[first, last]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ranges {
    /// First to last, both inside; never touching each other.
    ranges: BTreeMap<u64, u64>,
}

impl Ranges {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a number; `false` if it was in already.
    pub fn insert(&mut self, n: u64) -> bool {
        if self.contains(n) {
            return false;
        }
        let mut first = n;
        let mut last = n;
        if let Some(before) = n.checked_sub(1)
            && let Some((&start, &end)) = self.ranges.range(..=before).next_back()
            && end == before
        {
            first = start;
        }
        if let Some(after) = n.checked_add(1)
            && let Some(end) = self.ranges.remove(&after)
        {
            last = end;
        }
        self.ranges.insert(first, last);
        true
    }

    /// Whether a number is in.
    pub fn contains(&self, n: u64) -> bool {
        self.ranges.range(..=n).next_back().is_some_and(|(_, &last)| n <= last)
    }

    /// How many numbers are in.
    pub fn len(&self) -> u64 {
        self.iter().map(|(first, last)| (last - first).saturating_add(1)).fold(0, u64::saturating_add)
    }

    /// Whether none is in.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The ranges, ascending, both ends inside.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().map(|(&first, &last)| (first, last))
    }

    /// The largest number.
    pub fn last(&self) -> Option<u64> {
        self.ranges.last_key_value().map(|(_, &last)| last)
    }

    /// What is in here and not in `other`.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let mut left = Self::default();
        for (first, last) in self.iter() {
            let mut next = Some(first);
            for (a, b) in other.overlapping(first, last) {
                if let Some(from) = next.filter(|&from| from < a) {
                    left.ranges.insert(from, a - 1);
                }
                next = b.checked_add(1);
            }
            if let Some(from) = next.filter(|&from| from <= last) {
                left.ranges.insert(from, last);
            }
        }
        left
    }

    /// Ranges that share a number with `first..=last`, ascending.
    fn overlapping(&self, first: u64, last: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let start = self.ranges.range(..=first).next_back().map_or(first, |(&start, _)| start);
        self.ranges.range(start..=last).map(|(&a, &b)| (a, b)).filter(move |&(_, b)| b >= first)
    }
}

impl FromIterator<(u64, u64)> for Ranges {
    fn from_iter<I: IntoIterator<Item = (u64, u64)>>(ranges: I) -> Self {
        let mut sorted: Vec<_> = ranges.into_iter().filter(|(first, last)| first <= last).collect();
        sorted.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::with_capacity(sorted.len());
        for (first, last) in sorted {
            match merged.last_mut() {
                Some(end) if first <= end.1.saturating_add(1) => end.1 = end.1.max(last),
                _ => merged.push((first, last)),
            }
        }
        Self { ranges: merged.into_iter().collect() }
    }
}

impl Serialize for Ranges {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Ranges {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<(u64, u64)>::deserialize(deserializer)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(numbers: &[u64]) -> Ranges {
        let mut ranges = Ranges::new();
        for &n in numbers {
            ranges.insert(n);
        }
        ranges
    }

    #[test]
    fn neighbours_merge_in_any_order() {
        let ranges = of(&[5, 3, 4, 1, u64::MAX, 0]);
        assert_eq!(ranges.iter().collect::<Vec<_>>(), [(0, 1), (3, 5), (u64::MAX, u64::MAX)]);
        assert_eq!(ranges.len(), 6);
        assert!(ranges.contains(4) && !ranges.contains(2));
        assert!(!of(&[7]).insert(7));
    }

    #[test]
    fn minus_agrees_with_a_plain_set() {
        // Every pair of subsets of 0..6, against the definition.
        for a in 0_u64..64 {
            for b in 0_u64..64 {
                let set = |bits: u64| (0..6).filter(|n| bits >> n & 1 == 1).collect::<Vec<_>>();
                let expected: Vec<_> = set(a & !b);
                let left = of(&set(a)).minus(&of(&set(b)));
                let got: Vec<_> = left.iter().flat_map(|(x, y)| x..=y).collect();
                assert_eq!(got, expected, "{a:b} minus {b:b}");
            }
        }
    }

    #[test]
    fn stored_ranges_read_back() {
        let ranges = of(&[1, 2, 3, 9]);
        let text = serde_json::to_string(&ranges).unwrap();
        assert_eq!(text, "[[1,3],[9,9]]");
        assert_eq!(serde_json::from_str::<Ranges>(&text).unwrap(), ranges);
        let odd: Ranges = serde_json::from_str("[[4,6],[1,3],[9,8],[2,5]]").unwrap();
        assert_eq!(odd.iter().collect::<Vec<_>>(), [(1, 6)]);
    }
}
