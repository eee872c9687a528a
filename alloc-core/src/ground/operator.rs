//! The operators of C++.

/// Which operators of C++ allocate or free a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Operator {
    /// None, or it is not known.
    Unknown = 0,
    /// `new` and `delete`.
    Single = 1,
    /// `new[]` and `delete[]`.
    Array = 2,
}

impl Operator {
    /// All of them, by their numbers.
    pub(crate) const ALL: [Operator; 3] = [Operator::Unknown, Operator::Single, Operator::Array];
}
