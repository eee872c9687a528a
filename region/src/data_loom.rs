//! The core data of a region in models: only what tells who may come in.

use crate::flags::Flags;
use crate::lock::Lock;

pub struct Head {
    pub(crate) lock: Lock,
    pub(crate) mode: Flags,
}

impl Head {
    pub fn without_memory(mode: u32) -> Head {
        Head { lock: Lock::new(), mode: Flags::new(mode) }
    }
}
