//! What can be asked of a region of vmalloc(3), and the answers.

use core::ffi::CStr;

/// Numbers about a region. Source: vmalloc(3), `Vmstat_t`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Blocks that the program has.
    pub busy: usize,
    /// Their bytes.
    pub busy_bytes: usize,
    /// Bytes of the largest one, if the method knows.
    pub busy_largest: usize,
    /// Free blocks.
    pub free: usize,
    /// Their bytes.
    pub free_bytes: usize,
    /// Bytes of the largest one.
    pub free_largest: usize,
    /// Segments.
    pub segments: usize,
    /// The sum of their sizes.
    pub extent: usize,
}

impl Counts {
    pub(super) const NONE: Counts = Counts {
        busy: 0,
        busy_bytes: 0,
        busy_largest: 0,
        free: 0,
        free_bytes: 0,
        free_largest: 0,
        segments: 0,
        extent: 0,
    };
}

/// What is known of a region without a call of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// The method's name.
    pub method: &'static CStr,
    /// What is known of the discipline.
    pub discipline: &'static CStr,
    /// Method and flags, as `vmset` returns them.
    pub flags: u32,
    /// Where the handle lies, or what stands for it.
    pub address: usize,
    /// The process that is in a call of a region of several processes, or ended in one.
    pub holder: Option<Holder>,
}

/// A process that is in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its number.
    pub process: u32,
    /// Whether it still exists.
    pub is_alive: bool,
}

/// Why a question has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// No region has the number.
    Missing,
    /// Another call is in the region.
    Busy,
    /// The method cannot tell.
    Unknown,
}

/// The functions of a region. Each takes what was published, in any thread.
pub struct Table {
    /// Tells what is known without a call.
    pub about: unsafe fn(*const ()) -> About,
    /// Counts blocks and segments. `None`: another call is in the region.
    pub count: unsafe fn(*const ()) -> Option<Counts>,
    /// Checks all blocks, and returns how many are damaged.
    pub check: unsafe fn(*const ()) -> Result<usize, Unanswered>,
    /// Gives free memory back. Returns false if another call is in the region.
    pub compact: unsafe fn(*const ()) -> bool,
    /// Copies the path of the file in which the region lies, and returns its length; 0: in none. A
    /// longer path loses its beginning.
    pub file: unsafe fn(*const (), &mut [u8]) -> usize,
}
