//! How much of a stack is kept. Source: jemalloc(3), `opt.prof_bt_max`.
//!
//! A function that calls itself makes any number of long stacks, which are kept for ever. Once
//! stacks take much memory, samples keep less of new ones, so that few of them differ.

use super::hooks::DEEPEST;
use super::notice::Notice;
use super::rate;
use crate::ground::options;

/// From so many bytes of samples' stacks on, so many return addresses of a new one are kept, the
/// innermost.
const SHORTENED: [(u64, usize); 2] = [(128 << 20, 8), (64 << 20, 16)];

/// When the first stack is shortened.
pub(super) static LONG_STACKS: Notice = Notice::new(
    b"<lumalloc>: Samples' stacks take more than 64 MiB: of new ones the innermost 16 return \
      addresses are kept, beyond 128 MiB the innermost 8.\n",
);

/// Returns how many return addresses a stack has at most.
pub(super) fn most() -> usize {
    (options::current().prof_bt_max as usize).clamp(1, DEEPEST)
}

/// Returns what a sample keeps of a new stack, if those of all samples take so many bytes. That is
/// all of it where each allocation is a sample.
pub(super) fn kept(stack: &[usize], bytes: u64) -> &[usize] {
    let most = SHORTENED.iter().find(|(from, _)| bytes >= *from && rate::lg() > 0);
    match most.and_then(|(_, depth)| stack.get(..*depth)) {
        Some(part) if part.len() < stack.len() => {
            LONG_STACKS.come();
            part
        }
        _ => stack,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_memory_stacks_take_the_less_of_new_ones_is_kept() {
        let stack = [1; 20];
        let kept = |bytes, length: usize| kept(stack.get(..length).expect("a part"), bytes).len();
        assert_eq!([0, 63 << 20].map(|bytes| kept(bytes, 20)), [20, 20]);
        let much = 64 << 20;
        assert_eq!([kept(much, 20), kept(much, 16), kept(much, 3), kept(much, 0)], [16, 16, 3, 0]);
        let more = 128 << 20;
        assert_eq!([kept(more, 20), kept(more, 9), kept(more, 8), kept(more, 3)], [8, 8, 8, 3]);
    }
}
