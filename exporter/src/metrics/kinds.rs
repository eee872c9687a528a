//! What a number is: how it changes, what it counts, and of which classes.

/// How the numbers of a family change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The number goes up and down.
    Gauge,
    /// The number only goes up, whatever is reset in the allocator.
    Counter,
    /// Counts by size.
    Histogram,
    /// Texts, which are the labels of a 1.
    Info,
}

impl Kind {
    /// Returns the name in the formats. [`Kind::Info`] is a gauge where the format has no infos.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Histogram => "histogram",
            Kind::Info => "info",
        }
    }
}

/// What the numbers of a family count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things, or no unit.
    None,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
}

impl Unit {
    /// Returns the unit as it is written in names, or an empty text for [`Unit::None`].
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Unit::None => "",
            Unit::Bytes => "bytes",
            Unit::Seconds => "seconds",
        }
    }
}

/// The classes of blocks, or of runs of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Classes {
    /// Small blocks, in slabs.
    Bins,
    /// Large blocks.
    Lextents,
    /// Unused runs of pages.
    Extents,
}

impl Classes {
    /// Returns the label of a class.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Classes::Bins | Classes::Lextents => "size",
            Classes::Extents => "class",
        }
    }
}
