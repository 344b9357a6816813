//! The two sides, and which way traffic moves between them.

use serde::{Deserialize, Serialize};
use std::fmt;

/// One of the two brokers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Side {
    /// The broker that serves before the migration.
    Blue,
    /// The broker that serves after it.
    Green,
}

impl Side {
    /// Both sides.
    pub const BOTH: [Self; 2] = [Self::Blue, Self::Green];

    /// The other side.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Blue => Self::Green,
            Self::Green => Self::Blue,
        }
    }

    /// The name as status and columns show it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Blue => "Blue",
            Self::Green => "Green",
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blue => "blue",
            Self::Green => "green",
        })
    }
}

/// One value per side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair<T> {
    /// Blue's.
    pub blue: T,
    /// Green's.
    pub green: T,
}

impl<T> Pair<T> {
    /// The value of one side.
    pub const fn of(&self, side: Side) -> &T {
        match side {
            Side::Blue => &self.blue,
            Side::Green => &self.green,
        }
    }

    /// The value of one side, to be changed.
    pub const fn of_mut(&mut self, side: Side) -> &mut T {
        match side {
            Side::Blue => &mut self.blue,
            Side::Green => &mut self.green,
        }
    }
}

/// Which way traffic moves. Only two exist; rollback is the same code with the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heading {
    /// The side that traffic leaves.
    pub from: Side,
    /// The side that traffic goes to.
    pub to: Side,
}

impl Heading {
    /// From blue to green.
    pub const FORWARD: Self = Self { from: Side::Blue, to: Side::Green };
    /// From green back to blue.
    pub const BACK: Self = Self { from: Side::Green, to: Side::Blue };

    /// The word for status.
    pub fn as_str(self) -> &'static str {
        if self == Self::FORWARD { "Forward" } else { "Back" }
    }
}
