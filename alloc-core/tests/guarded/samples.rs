//! Samples for the tests, and messages about samples.

use crate::common::child::without_files;
use lumalloc::observe::{self, Run, RunState};
use lumalloc::{options, raw};

pub(crate) fn pointer(address: usize) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(address)
}

pub(crate) fn free(address: usize) {
    // SAFETY: a live block, not used afterwards, or the mistake that is tested.
    unsafe { raw::free(pointer(address)) };
}

pub(crate) fn is_sample(address: usize, size: usize) -> bool {
    // SAFETY: a live block. A sample's usable size is the requested one. Others have 112 for 100,
    // but not in the hardened tier.
    let is_exact = unsafe { raw::usable_size(pointer(address)) } == size;
    let is_around = |run: Run| {
        run.state == RunState::Guarded && run.base <= address && address < run.base + run.bytes
    };
    is_exact && (!options::current().hardened || observe::heap_map().any(is_around))
}

/// Allocates a sample of 100 bytes at the end of its page or at its beginning.
pub(crate) fn sample(at_end: bool) -> usize {
    for _ in 0..10_000 {
        let block = raw::malloc(100).expose_provenance();
        let spare = block % 4096;
        if is_sample(block, 100) && (spare != 0) == at_end {
            return block;
        }
        free(block);
    }
    panic!("no sample");
}

/// Replaces digits and addresses that differ from run to run by `#`, and removes traces.
pub(crate) fn plain(message: &str) -> String {
    let mut words = Vec::new();
    let mut in_trace = false;
    let message = without_files(message);
    for word in message.split(' ') {
        let bare = word.trim_end_matches([',', ';', ':', '\n']);
        let is_address = bare.starts_with("0x");
        in_trace = word == "from" || (in_trace && is_address);
        let is_by = words.last().is_some_and(|last| last == "by");
        if in_trace {
            if word != bare
                && word != "from"
                && let Some(last) = words.last_mut()
            {
                *last = format!("{last}{}", &word[bare.len()..]);
            }
        } else if is_by && is_address {
            // The callers of the instruction follow.
            words.push("#".to_owned());
            in_trace = true;
        } else if is_address || words.last().is_some_and(|last| last == "thread") {
            words.push(format!("#{}", &word[bare.len()..]));
        } else {
            words.push(word.to_owned());
        }
    }
    words.join(" ")
}
