//! Chance from a seed: the same seed gives the same world. Splitmix64, since nothing here must be secret.

/// A seeded generator.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// A generator that gives the same numbers for the same seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 where that is 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.draw() % bound }
    }

    /// True once in `n` times; never where `n` is 0.
    pub const fn one_in(&mut self, n: u64) -> bool {
        n > 0 && self.below(n) == 0
    }

    /// A number from `low` to `high`.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        let width = u64::try_from(high.saturating_sub(low)).unwrap_or(0).saturating_add(1);
        low.saturating_add(i64::try_from(self.below(width)).unwrap_or(0))
    }

    /// One of `items`; `None` where there are none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let count = u64::try_from(items.len()).unwrap_or(0);
        items.get(usize::try_from(self.below(count)).unwrap_or(0))
    }

    /// Another generator: what it draws does not change what this one draws.
    #[must_use]
    pub const fn fork(&mut self) -> Self {
        Self(self.draw())
    }
}
