//! One size class at a time: about a MiB of blocks of one size, all freed in random order, again
//! and again; and blocks that must be aligned.

use super::{Random, SIZES, Workload, shuffled};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::hint::black_box;
use std::ptr::NonNull;

const LIVE_BYTES: usize = 1 << 20;

/// A block of any layout, its first word written. `Box` has no alignment chosen at run time.
struct Raw(NonNull<u64>, Layout);

#[allow(unsafe_code)]
impl Raw {
    fn new(size: usize, alignment: usize) -> Self {
        let layout = Layout::from_size_align(size.max(8), alignment).expect("small enough");
        // SAFETY: the size is not zero.
        let block = unsafe { alloc(layout) };
        let block = NonNull::new(block.cast()).unwrap_or_else(|| handle_alloc_error(layout));
        // SAFETY: it is ours, 8 bytes at least, and aligned to 8 at least.
        unsafe { block.write(size as u64) };
        Self(black_box(block), layout)
    }
}

#[allow(unsafe_code)]
impl Drop for Raw {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and nobody else has it.
        unsafe { dealloc(self.0.as_ptr().cast(), self.1) };
    }
}

struct OfOneSize {
    name: &'static str,
    full: u64,
    size: usize,
    order: Vec<u32>,
    slots: Vec<Option<Raw>>,
}

impl Workload for OfOneSize {
    fn name(&self) -> &'static str {
        self.name
    }

    fn full(&self) -> u64 {
        self.full
    }

    fn prepare(&mut self) {
        self.order = shuffled(LIVE_BYTES / self.size);
        self.slots.resize_with(self.order.len(), || None);
    }

    fn run(&mut self, operations: u64) -> u64 {
        let rounds = operations.div_ceil(self.slots.len() as u64);
        for _ in 0..rounds {
            self.slots.iter_mut().for_each(|slot| *slot = Some(Raw::new(self.size, 8)));
            self.order.iter().for_each(|&at| self.slots[at as usize] = None);
        }
        rounds * self.slots.len() as u64
    }
}

/// Random replacement in a set of 1000, mixed sizes, aligned to 32 bytes up to a page.
#[derive(Default)]
struct Aligned(Vec<Option<Raw>>);

impl Workload for Aligned {
    fn name(&self) -> &'static str {
        "aligned"
    }

    fn full(&self) -> u64 {
        10_000_000
    }

    fn prepare(&mut self) {
        self.0.resize_with(1000, || None);
    }

    fn run(&mut self, operations: u64) -> u64 {
        let mut random = Random::new();
        for i in 0..operations {
            let at = random.below(self.0.len());
            let alignment = 32 << (random.next() >> 20) % 8;
            self.0[at] = None;
            self.0[at] = Some(Raw::new(usize::from(SIZES[i as usize % SIZES.len()]), alignment));
        }
        operations
    }
}

pub(super) fn all() -> Vec<Box<dyn Workload>> {
    let row = |name, full, size| -> Box<dyn Workload> {
        Box::new(OfOneSize { name, full, size, order: Vec::new(), slots: Vec::new() })
    };
    vec![
        row("class-16", 20_000_000, 16),
        row("class-128", 15_000_000, 128),
        row("class-1024", 10_000_000, 1024),
        row("class-4096", 8_000_000, 4096),
        row("class-32768", 6_000_000, 32_768),
        Box::new(Aligned::default()),
    ]
}
