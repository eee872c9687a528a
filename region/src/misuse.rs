//! What is wrong with an address that a program passed.

/// Why a block was not freed or resized. Source: vmalloc(3), `VM_BADADDR`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// The address is not the start of a block that the region has handed out.
    NotABlock,
    /// The block at the address was freed before.
    FreedBefore,
    /// The method frees only the last block, and the address is that of another one.
    NotTheLast,
    /// The block cannot be resized as asked. It is unchanged.
    NoRoom,
    /// A call is in the region: its discipline called back.
    Entered,
}

impl core::fmt::Display for Misuse {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str(match self {
            Misuse::NotABlock => "not a block of the region",
            Misuse::FreedBefore => "the block was freed before",
            Misuse::NotTheLast => "only the last block can be freed",
            Misuse::NoRoom => "there is no room for the block",
            Misuse::Entered => "the region's discipline called the region",
        })
    }
}

impl core::error::Error for Misuse {}
