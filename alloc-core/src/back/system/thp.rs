//! Transparent huge pages: what the system does, what the options ask for, and the advice that
//! follows for new memory.
//!
//! | `opt.thp` | the system says `madvise` | the system says `always` |
//! |---|---|---|
//! | default | long blocks and chunks | the same, no more |
//! | always | everything | everything |
//! | never | nothing | nothing |
//!
//! Long blocks are those of [`huge`](crate::back::runs::huge), chunks those of
//! [`dense`](crate::back::placement::dense). If the system says `never`, or nothing, it is asked
//! for nothing.

use super::mapping;
use super::page_provider::PageProvider;
use crate::ground::files;
use crate::ground::options::{self, MetadataThp, Thp};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Bytes of a huge page.
pub(crate) const HUGE: usize = 2 << 20;
/// Bytes of records from which on `metadata_thp:auto` asks for huge pages.
const AUTO_RECORDS: u64 = 4 << 20;

/// What the system does by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum System {
    /// The system was not asked yet.
    Unknown,
    /// No huge pages, not even where it is asked.
    Never,
    /// Huge pages where it is asked.
    Asked,
    /// Huge pages everywhere.
    Always,
}

static SETTING: AtomicU8 = AtomicU8::new(System::Unknown as u8);

/// Takes the system for one that backs everything, or nothing, by huge pages from now on.
#[cfg(feature = "testing")]
pub(crate) fn pretend(always: bool) {
    SETTING.store(if always { System::Always } else { System::Never } as u8, Relaxed);
}

/// The system's setting, read at the first call, which is that for an arena's first addresses. What
/// else is needed to know of the system is read then too.
pub(crate) fn system() -> System {
    const SETTINGS: [System; 4] = [System::Unknown, System::Never, System::Asked, System::Always];
    let known = SETTINGS.get(usize::from(SETTING.load(Relaxed))).copied();
    if let Some(known) = known.filter(|known| *known != System::Unknown) {
        return known;
    }
    let mut buffer = [0; 64];
    let path = c"/sys/kernel/mm/transparent_hugepage/enabled";
    let setting = files::read(path, &mut buffer).map_or(System::Never, chosen);
    #[cfg(test)]
    let setting = tests::for_tests(setting);
    SETTING.store(setting as u8, Relaxed);
    mapping::note_limit();
    setting
}

/// The setting whose word is in brackets.
fn chosen(text: &[u8]) -> System {
    let word = text.split(|c| *c == b'[').nth(1).and_then(|rest| rest.split(|c| *c == b']').next());
    match word {
        Some(b"always") => System::Always,
        Some(b"madvise") => System::Asked,
        _ => System::Never,
    }
}

/// The advice for memory that is newly reserved, or made new.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Advice {
    /// No advice.
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

/// Whether huge pages are asked for all new addresses.
pub(in crate::back) fn backs_everything() -> bool {
    for_new_memory() == Advice::Huge
}

fn advice(thp: Thp, system: System) -> Advice {
    match (thp, system) {
        (_, System::Never | System::Unknown) => Advice::None,
        (Thp::Always, _) => Advice::Huge,
        (Thp::Default | Thp::Never, System::Always) => Advice::Small,
        (Thp::Default | Thp::Never, System::Asked) => Advice::None,
    }
}

/// Gives the advice for new memory. The system may refuse it.
pub(in crate::back) fn advise_new(provider: &dyn PageProvider, base: NonNull<u8>, size: usize) {
    let huge = match for_new_memory() {
        Advice::None => return,
        Advice::Huge => true,
        Advice::Small => false,
    };
    // SAFETY: just reserved or made new, and the caller owns it.
    unsafe { provider.advise_huge(base, size, huge) };
}

/// Whether the next records are to lie in huge pages, if `mapped` bytes of records are there.
pub(crate) fn for_records(mapped: u64) -> bool {
    let options = options::current();
    wants_records(options.metadata_thp, options.thp, mapped) && listens()
}

fn wants_records(metadata: MetadataThp, thp: Thp, mapped: u64) -> bool {
    match metadata {
        MetadataThp::Disabled => false,
        MetadataThp::Auto => mapped >= AUTO_RECORDS && thp != Thp::Never,
        MetadataThp::Always => true,
    }
}

/// Whether the system gives huge pages where it is asked.
fn listens() -> bool {
    matches!(system(), System::Asked | System::Always)
}

/// Whether long blocks lie in huge pages, and one more block may.
pub(in crate::back) fn backs_blocks() -> bool {
    options::current().thp == Thp::Default && listens() && mapping::has_room()
}

/// Whether large heaps grow by huge pages: see [`crate::back::placement::dense`].
pub(in crate::back) fn backs_chunks() -> bool {
    // Without `retain`, parts of a chunk would be given back with their addresses.
    options::current().retain && backs_blocks()
}

#[cfg(test)]
pub(in crate::back) mod tests {
    use super::*;
    use crate::not_tried::not_tried;
    use std::sync::Once;

    /// The setting that all unit tests of this process see. A system that gives no huge pages, but
    /// knows them, keeps the same books of what is asked of it, so it is asked.
    pub(super) fn for_tests(setting: System) -> System {
        let knows = std::fs::exists("/sys/kernel/mm/transparent_hugepage/enabled");
        let is_off = setting == System::Never && knows.is_ok_and(|knows| knows);
        if is_off { System::Asked } else { setting }
    }

    /// Whether blocks lie in huge pages, for tests of that. Says once if they do not.
    pub(in crate::back) fn has_huge_pages() -> bool {
        static SAID: Once = Once::new();
        let has = backs_blocks();
        if !has {
            SAID.call_once(|| not_tried("unit tests of huge pages", "this system knows none"));
        }
        has
    }

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
}
