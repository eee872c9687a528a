//! Recordings of the heap monitor: each allocation and each deletion with its thread, its time and
//! its stack.
//!
//! Reading order: the file ([`Recording`] and what it consists of), [`Names`], which blocks are
//! shown ([`Filter`]), and the views: [`lines()`], [`dump()`], [`lifetimes()`], [`pins()`].

#[cfg(test)]
mod testing;
mod source;
mod chunks;
mod mappings;
mod stacks;
mod index;
mod decoder;
mod merge;
mod old;
mod recording;
mod names;
mod filter;
mod ledger;
mod choice;
mod selection;
mod stop;
mod lines;
mod analysis;
mod document;
mod dump;
mod dump_json;
mod texts;
mod groups;
mod lifetimes;
mod lifetimes_text;
mod pages;
mod pins;
mod pins_text;
mod pins_json;

pub use analysis::Options as AnalysisOptions;
pub use dump::dump;
pub use dump_json::dump_json;
pub use filter::{Filter, Old, Range, Thread};
pub use groups::By;
pub use index::{Message, Process};
pub use lifetimes::Options as LifetimesOptions;
pub use lifetimes_text::{lifetimes, lifetimes_json};
pub use lines::lines;
pub use names::Names;
pub use pages::PageSize;
pub use pins::Options as PinsOptions;
pub use pins_json::pins_json;
pub use pins_text::pins;
pub use recording::{Recording, is_recording};
pub use regex::Regex;
pub use stop::Stop;

#[cfg(test)]
mod tests {
    use super::testing::{File, Happens};
    use super::*;
    use crate::symbols::Search;
    use proptest::prelude::*;

    /// Makes everything that can be made of a file.
    fn everything(bytes: Vec<u8>) {
        let Ok(recording) = Recording::try_of(&File { bytes }) else { return };
        let _ = recording.notes();
        let mut names = Names::new(&recording, &Search::default()).expect("names");
        let size = Range { min: 1, max: 1 << 40 };
        let analysis = AnalysisOptions { filter: Filter::default(), deleted: 3 };
        let by_type = LifetimesOptions { filter: Filter::default(), by: By::Type, top: 3 };
        let by_stack = LifetimesOptions { by: By::Stack, ..by_type.clone() };
        let out = &mut std::io::sink();
        let _ = lines(&mut names, &Filter::default(), out);
        let _ = lines(&mut names, &Filter { size, ..Filter::default() }, out);
        let _ = dump(&mut names, &analysis, out);
        let _ = dump_json(&mut names, &analysis, out);
        let _ = lifetimes(&mut names, &by_type, out);
        let _ = lifetimes_json(&mut names, &by_stack, out);
        let page = PageSize::default();
        let by = By::Type;
        let pinning = PinsOptions { filter: Filter::default(), by, top: 3, page, emptiest: 2 };
        let _ = pins(&mut names, &pinning, out);
        let _ = pins_json(&mut names, &PinsOptions { by: By::Stack, ..pinning }, out);
    }

    fn whole() -> Vec<u8> {
        let file = File::default()
            .mapping([0x1000, 0x9000, 0], "/nowhere/x", "ab")
            .stack(1, &[0x1011, 0x2022])
            .old(3, &[[0x10, 8, 0x5000], [0x20, 16, 1]])
            .events(7, &[(1, Happens::New(0x30, 24), 1), (5, Happens::Delete(0x10, 0x5010), 1)])
            .events(8, &[(2, Happens::Thread(9), 0), (4, Happens::Delete(0x30, 1), 1)])
            .message(6, "double free")
            .dropped(1, 7)
            .mapping([0x2000, 0x3000, 0], "[vdso]", "");
        file.end(8, 1).bytes
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn no_bytes_make_a_view_panic(
            chunks in proptest::collection::vec(
                ("[PMSEOXFZQ]", proptest::collection::vec(any::<u8>(), 0..60)), 0..6
            )
        ) {
            let mut file = File::default();
            for (tag, payload) in chunks {
                file = file.chunk(tag.as_bytes()[0], &payload);
            }
            everything(file.bytes);
        }

        #[test]
        fn no_damage_makes_a_view_panic(
            at in any::<proptest::sample::Index>(), to in any::<u8>(), cut in any::<bool>()
        ) {
            let mut bytes = whole();
            let at = at.index(bytes.len());
            bytes[at] = to;
            if cut {
                bytes.truncate(at);
            }
            everything(bytes);
        }
    }
}
