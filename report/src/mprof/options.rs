//! What the tables show.

/// How much of the first two tables is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verbosity {
    /// Everything.
    Verbose,
    /// What contributes a reasonable fraction.
    #[default]
    Normal,
    /// What contributes a significant fraction.
    Terse,
}

/// How the table of leaks is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leaks {
    /// Not at all.
    None,
    /// By the names of the functions.
    #[default]
    ByName,
    /// Places within a function apart, with their distance from its beginning.
    WithOffsets,
}

/// What the tables show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How much of the first two tables.
    pub verbosity: Verbosity,
    /// The table of leaks.
    pub leaks: Leaks,
}
