//! Code that a program has moved to other memory at the same addresses, as those do that want huge
//! pages for it. The system tells no file for such memory, but those of the mappings around it.

use crate::profile::Mapping;

/// A line of the table of mappings.
pub(super) struct Mapped {
    pub(super) mapping: Mapping,
    /// Whether it may be run.
    pub(super) is_code: bool,
}

impl Mapped {
    fn is_anonymous_code(&self) -> bool {
        self.is_code && self.mapping.file.is_empty()
    }

    /// Where the beginning of the file would be.
    fn base(&self) -> u64 {
        self.mapping.start.wrapping_sub(self.mapping.offset)
    }
}

/// Gives such code the file of the mappings around it, which are as far from each other in the file
/// as in memory.
pub(super) fn claim(table: &mut [Mapped]) {
    let mut from = 0;
    while from < table.len() {
        let run = table[from..].iter().take_while(|line| line.is_anonymous_code()).count();
        let around = from.checked_sub(1).filter(|_| run > 0);
        let around = around.and_then(|first| table.get_mut(first..=from + run));
        if let Some([first, moved @ .., last]) = around
            && are_of_one_file(first, moved, last)
        {
            for line in moved {
                line.mapping.offset = line.mapping.start.wrapping_sub(first.base());
                line.mapping.file.clone_from(&first.mapping.file);
            }
        }
        from += run + 1;
    }
}

fn are_of_one_file(first: &Mapped, between: &[Mapped], last: &Mapped) -> bool {
    let mut end = first.mapping.limit;
    let has_no_gap = between.iter().chain([last]).all(|line| {
        let is_next = line.mapping.start == end;
        end = line.mapping.limit;
        is_next
    });
    let (file, other) = (&first.mapping.file, &last.mapping.file);
    has_no_gap && file.starts_with('/') && file == other && first.base() == last.base()
}
