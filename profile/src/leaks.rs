//! What is still allocated when a program exits. Source: jemalloc(3), `opt.prof_leak`.

use crate::sink::{Sink, Text};
use crate::unbias::Estimate;
use lumalloc::observe;

/// Allocations that were not freed, estimated by their samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Leaks {
    /// Their number and bytes.
    pub estimate: Estimate,
    /// The stacks that made them.
    pub stacks: u64,
}

impl Leaks {
    /// Returns what is allocated now.
    #[must_use]
    pub fn now() -> Leaks {
        let lg_sample = observe::lg_profile_sample();
        let mut leaks = Leaks::default();
        let mut last: &[usize] = &[];
        observe::profile(|entry| {
            let live = entry.allocated.saturating_sub(entry.freed);
            if live > 0 && (leaks.stacks == 0 || !core::ptr::eq(entry.stack, last)) {
                (leaks.stacks, last) = (leaks.stacks + 1, entry.stack);
            }
            leaks.estimate.add(live, entry.usable, lg_sample);
        });
        leaks
    }

    /// Writes the report: two lines, as jemalloc does.
    pub fn write(&self, sink: &mut dyn Sink) {
        let plural = |number: u64| if number == 1 { &b""[..] } else { b"s" };
        let (bytes, objects) = (self.estimate.bytes as u64, self.estimate.count as u64);
        let mut text = Text::new(sink);
        text.bytes(b"<lumalloc>: Leak approximation summary: ~").decimal(bytes).bytes(b" byte");
        text.bytes(plural(bytes)).bytes(b", ~").decimal(objects).bytes(b" object");
        text.bytes(plural(objects)).bytes(b", >= ").decimal(self.stacks).bytes(b" context");
        text.bytes(plural(self.stacks)).bytes(b"\n");
        text.bytes(b"<lumalloc>: Run jeprof on dump output for leak detail\n");
        text.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;
    use std::vec::Vec;

    fn report(bytes: f64, count: f64, stacks: u64) -> String {
        let mut report = Vec::new();
        Leaks { estimate: Estimate { count, bytes }, stacks }.write(&mut report);
        String::from_utf8(report).expect("text")
    }

    #[test]
    fn the_report_is_jemalloc_s() {
        assert_eq!(
            report(1000.2, 3.0, 2),
            "<lumalloc>: Leak approximation summary: ~1000 bytes, ~3 objects, >= 2 contexts\n\
             <lumalloc>: Run jeprof on dump output for leak detail\n"
        );
        assert!(report(1.0, 1.0, 1).contains("~1 byte, ~1 object, >= 1 context\n"));
        assert_eq!(Leaks::now(), Leaks::default());
    }
}
