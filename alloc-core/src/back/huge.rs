//! Huge pages: which memory the system is asked to back with them, and which not.
//!
//! | `opt.thp` | the system says `madvise` | the system says `always` |
//! |---|---|---|
//! | default | fresh blocks from [`SHORTEST`] on, and [`super::dense`] chunks | the same, no more |
//! | always | everything | everything |
//! | never | nothing | nothing |
//!
//! Where the system says `never`, or nothing, nothing is asked. A block for which huge pages were
//! asked is a mapping of its own ([`Mapping::Huge`]): purged, it
//! is made an ordinary mapping again, and small blocks that later lie there take small pages, as
//! does what the system would like to put into the hole. A block that was asked for as zeros may
//! be hardly touched, so it takes small pages.

use super::dense;
use super::extent::Extent;
use super::mapping::{self, Mapping};
use super::page_provider::PageProvider;
use crate::ground::options::{self, MetadataThp, Thp};
use crate::ground::os;
use crate::ground::units::LG_PAGE;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Bytes of a huge page.
pub(crate) const HUGE: usize = 2 << 20;
/// No block shorter than this is backed by huge pages unless all are.
pub(crate) const SHORTEST: usize = 4 << 20;
/// Bytes of records from which on `metadata_thp:auto` asks for huge pages.
const AUTO_RECORDS: u64 = 4 << 20;

/// What the system does without being asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum System {
    /// Not asked yet.
    Unknown,
    /// No huge pages, asked or not.
    Never,
    /// Where it is asked to.
    Asked,
    /// Everywhere.
    Always,
}

static SETTING: AtomicU8 = AtomicU8::new(System::Unknown as u8);

/// From now on the system is taken for one that backs everything by huge pages, or nothing.
#[cfg(feature = "testing")]
pub(crate) fn pretend(always: bool) {
    SETTING.store(if always { System::Always } else { System::Never } as u8, Relaxed);
}

/// The system's setting, read at the first call.
pub(crate) fn system() -> System {
    const SETTINGS: [System; 4] = [System::Unknown, System::Never, System::Asked, System::Always];
    let known = SETTINGS.get(usize::from(SETTING.load(Relaxed))).copied();
    if let Some(known) = known.filter(|known| *known != System::Unknown) {
        return known;
    }
    let mut buffer = [0; 64];
    let path = c"/sys/kernel/mm/transparent_hugepage/enabled";
    let setting = os::read_file(path, &mut buffer).map_or(System::Never, chosen);
    SETTING.store(setting as u8, Relaxed);
    setting
}

/// The word in brackets.
fn chosen(text: &[u8]) -> System {
    let word = text.split(|c| *c == b'[').nth(1).and_then(|rest| rest.split(|c| *c == b']').next());
    match word {
        Some(b"always") => System::Always,
        Some(b"madvise") => System::Asked,
        _ => System::Never,
    }
}

/// What is asked for memory that is newly reserved, or made new.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Advice {
    /// Nothing.
    None,
    /// Huge pages.
    Huge,
    /// Small pages.
    Small,
}

/// The advice for a heap's new addresses.
fn for_new_memory() -> Advice {
    advice(options::current().thp, system())
}

fn advice(thp: Thp, system: System) -> Advice {
    match (thp, system) {
        (_, System::Never | System::Unknown) => Advice::None,
        (Thp::Always, _) => Advice::Huge,
        (Thp::Default | Thp::Never, System::Always) => Advice::Small,
        (Thp::Default | Thp::Never, System::Asked) => Advice::None,
    }
}

/// Gives the advice for new memory. It may be refused.
pub(super) fn advise_new(provider: &dyn PageProvider, base: NonNull<u8>, size: usize) {
    let huge = match for_new_memory() {
        Advice::None => return,
        Advice::Huge => true,
        Advice::Small => false,
    };
    // SAFETY: just reserved or made new, and the caller's.
    unsafe { provider.advise_huge(base, size, huge) };
}

/// Whether the next records are to lie in huge pages, `mapped` bytes of them being there.
pub(crate) fn for_records(mapped: u64) -> bool {
    let options = options::current();
    wants_records(options.metadata_thp, options.thp, mapped)
        && matches!(system(), System::Asked | System::Always)
}

/// Whether large heaps grow by huge pages: see [`super::dense`].
pub(super) fn backs_chunks() -> bool {
    // Without `retain` parts of a chunk would go back with their addresses.
    options::current().retain && backs_blocks()
}

fn wants_records(metadata: MetadataThp, thp: Thp, mapped: u64) -> bool {
    match metadata {
        MetadataThp::Disabled => false,
        MetadataThp::Auto => mapped >= AUTO_RECORDS && thp != Thp::Never,
        MetadataThp::Always => true,
    }
}

/// Whether long blocks lie in huge pages, and one more may.
pub(super) fn backs_blocks() -> bool {
    options::current().thp == Thp::Default
        && matches!(system(), System::Asked | System::Always)
        && mapping::has_room()
}

/// Where a run begins best that is to be filled: the ends of a long one that lie in no whole huge
/// page are faulted in page by page.
pub(super) fn best_align(pages: usize, align: usize) -> usize {
    if pages << LG_PAGE >= SHORTEST && backs_blocks() { align.max(HUGE) } else { align }
}

/// Asks for huge pages under the first `bytes` of a block that its caller is about to fill. The
/// caller owns the block, which has no memory yet or has just been lengthened.
pub(crate) fn back(provider: &dyn PageProvider, block: &'static Extent, bytes: usize) {
    let wanted = block.bytes() >= SHORTEST && !block.mapping().is_advised() && backs_blocks();
    let Some(base) = NonNull::new(block.base_ptr()).filter(|_| wanted) else { return };
    // What lies in pieces of chunks becomes one mapping, as long as nothing is in it.
    let is_empty = block.mapping() == Mapping::Chunks && block.zeroed.get();
    // SAFETY: the block is the caller's, and nothing has been written to it.
    if is_empty && unsafe { provider.renew(base, block.bytes()) } {
        dense::forget_chunks(block);
    }
    let has_room = bytes < block.bytes();
    if has_room {
        keep_one_mapping(block, bytes);
    }
    // SAFETY: the block is the caller's.
    if unsafe { provider.advise_huge(base, bytes, true) } && !block.mapping().is_own() {
        block.set_mapping(match block.mapping() {
            Mapping::Chunks => Mapping::Several,
            _ if has_room => Mapping::HugeButEnd,
            _ => Mapping::Huge,
        });
    }
}

/// Sees to it that a block of which the first `bytes` are to be advised can be one mapping again:
/// the system makes one of two only if they were one when their first page was brought in. This
/// brings in the page in which the request ends, which its caller is about to write.
fn keep_one_mapping(block: &Extent, bytes: usize) {
    if block.zeroed.get() {
        // SAFETY: inside the block, which is the caller's and reads zero.
        unsafe { block.base_ptr().wrapping_add(bytes).write_volatile(0) };
    }
}

/// Whether huge pages were asked for but not under the room at a long block's end.
pub(crate) fn has_room(block: &Extent) -> bool {
    block.mapping() == Mapping::HugeButEnd && block.bytes() >= SHORTEST
}

/// Asks for huge pages under that room too: all of the block is then one mapping.
pub(crate) fn back_room(provider: &dyn PageProvider, block: &'static Extent) {
    let Some(base) = NonNull::new(block.base_ptr()).filter(|_| has_room(block)) else { return };
    // SAFETY: the run is the caller's.
    if unsafe { provider.advise_huge(base, block.bytes(), true) } {
        block.set_mapping(Mapping::Huge);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::provider::mmap::Mmap;

    #[test]
    fn the_system_s_word_is_the_one_in_brackets() {
        assert_eq!(chosen(b"always [madvise] never\n"), System::Asked);
        assert_eq!(chosen(b"[always] madvise never\n"), System::Always);
        assert_eq!(chosen(b"always madvise [never]\n"), System::Never);
        assert_eq!(chosen(b"always"), System::Never);
        assert_eq!(chosen(b""), System::Never);
        assert_ne!(system(), System::Unknown);
    }

    #[test]
    fn records_lie_in_huge_pages_where_there_are_many() {
        use MetadataThp::{Always, Auto, Disabled};
        let many = AUTO_RECORDS;
        assert!(wants_records(Auto, Thp::Default, many));
        assert!(!wants_records(Auto, Thp::Default, many - 1));
        assert!(!wants_records(Auto, Thp::Never, many));
        assert!(wants_records(Always, Thp::Never, 0));
        assert!(!wants_records(Disabled, Thp::Always, many));
    }

    #[test]
    fn advice_is_the_option_s_as_far_as_the_system_listens() {
        use Thp::{Always, Default, Never};
        let rows = [
            (Default, [Advice::None, Advice::None, Advice::Small]),
            (Always, [Advice::None, Advice::Huge, Advice::Huge]),
            (Never, [Advice::None, Advice::None, Advice::Small]),
        ];
        for (thp, expected) in rows {
            let systems = [System::Never, System::Asked, System::Always];
            assert_eq!(systems.map(|system| advice(thp, system)), expected, "{thp:?}");
        }
    }

    /// Addresses with nothing beside them that could be one mapping with them.
    fn lonely(bytes: usize) -> NonNull<u8> {
        let whole = bytes + 3 * HUGE;
        let anywhere = core::ptr::null_mut();
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: new memory.
        let all = unsafe { libc::mmap(anywhere, whole, libc::PROT_NONE, flags, -1, 0) };
        let inner = (all as usize).next_multiple_of(HUGE) + HUGE;
        let base = all.wrapping_byte_add(inner - all as usize);
        // SAFETY: inside what was just mapped.
        let status = unsafe { libc::mprotect(base, bytes, libc::PROT_READ | libc::PROT_WRITE) };
        assert_eq!(status, 0);
        NonNull::new(base.cast()).unwrap()
    }

    #[test]
    fn a_block_that_was_written_past_its_huge_pages_can_be_one_mapping_again() {
        use super::super::page_provider::Moved;
        let (bytes, begun) = (5 * HUGE, 4 * HUGE);
        let run: &'static Extent = Box::leak(Box::new(Extent::new(0)));
        run.set_range(lonely(bytes).as_ptr() as usize, bytes >> LG_PAGE);
        run.zeroed.set(true);
        back(&Mmap, run, begun);
        if run.mapping() != Mapping::HugeButEnd {
            return;
        }
        let write = |at: usize| {
            // SAFETY: the memory is ours.
            unsafe { run.base_ptr().wrapping_add(at).write(7) };
        };
        write(0);
        write(begun);
        back_room(&Mmap, run);
        let (from, to) = (NonNull::new(run.base_ptr()).unwrap(), lonely(bytes + HUGE));
        // SAFETY: both are ours, and no block of anybody.
        let moved = unsafe { Mmap.move_pages(from, bytes, to, bytes + HUGE) };
        // Another test may map something where it was.
        assert!(matches!(moved, Moved::Here | Moved::Away), "{moved:?}");
        for at in [0, begun] {
            // SAFETY: the memory is ours.
            assert_eq!(unsafe { to.as_ptr().wrapping_add(at).read() }, 7);
        }
        run.set_mapping(Mapping::Ordinary);
    }
}
