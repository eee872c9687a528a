//! The stacks of a profile, as numbers of frames: there may be a million of them, and each place of
//! the program is in many.

use crate::calls;
use crate::profile::Profile;
use crate::symbols::Symbols;

/// The bits of a word.
const BITS: usize = u64::BITS as usize;

/// The frames of all stacks, innermost first.
pub(crate) struct Stacks {
    /// Numbers of frames, as [`Symbols::numbered`] has them; those of one stack follow each other.
    frames: Vec<u32>,
    /// For each of them a bit: whether it is among the calls of the program.
    are_calls: Vec<u64>,
    ends: Vec<Ends>,
}

/// Where the frames of a stack end.
struct Ends {
    /// Those below `main`.
    below_main: usize,
    /// All of them.
    whole: usize,
}

impl Stacks {
    /// Finds the frames of all stacks of a profile.
    pub(crate) fn new(profile: &Profile, symbols: &Symbols) -> Stacks {
        let mut stacks = Stacks { frames: Vec::new(), are_calls: Vec::new(), ends: Vec::new() };
        profile.stacks.iter().for_each(|stack| stacks.add(stack, symbols));
        stacks
    }

    fn add(&mut self, stack: &[usize], symbols: &Symbols) {
        let begin = self.frames.len();
        let frames = calls::frames(stack, symbols);
        let below_main = calls::below_main(&frames, symbols);
        self.are_calls.resize((begin + frames.len()).div_ceil(BITS), 0);
        for place in calls::program_calls(below_main, symbols) {
            let at = begin + place;
            self.are_calls[at / BITS] |= 1 << (at % BITS);
        }
        let ends = Ends { below_main: begin + below_main.len(), whole: begin + frames.len() };
        self.ends.push(ends);
        self.frames.extend(frames);
    }

    fn begin(&self, stack: usize) -> usize {
        stack.checked_sub(1).map_or(0, |before| self.ends[before].whole)
    }

    /// All frames of a stack.
    pub(crate) fn whole(&self, stack: usize) -> &[u32] {
        &self.frames[self.begin(stack)..self.ends[stack].whole]
    }

    /// Its frames without what calls `main`.
    pub(crate) fn below_main(&self, stack: usize) -> &[u32] {
        &self.frames[self.begin(stack)..self.ends[stack].below_main]
    }

    /// Of these, the calls of the program.
    pub(crate) fn calls(&self, stack: usize) -> impl DoubleEndedIterator<Item = u32> {
        let all = self.begin(stack)..self.ends[stack].below_main;
        let is_call = |at: &usize| self.are_calls[at / BITS] >> (at % BITS) & 1 == 1;
        all.filter(is_call).map(|at| self.frames[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::testing::File;
    use crate::symbols::Search;

    #[test]
    fn stacks_beside_each_other_are_told_apart() {
        let paths = ["_start > main > f > std::a > std::b", "main > g", "std::a > std::b > malloc"];
        let file = |paths: &[&str]| {
            let file = paths.iter().fold(File::default(), |file, path| file.path(path, 8, 1, 1));
            let profile = file.read();
            let symbols = Symbols::of(&profile, &Search::default());
            let stacks = Stacks::new(&profile, &symbols);
            let name = |frame: u32| symbols.functions()[symbols.numbered(frame).function].clone();
            let names = |frames: &[u32]| frames.iter().copied().map(name).collect::<Vec<_>>();
            let all = 0..profile.stacks.len();
            let of = |stack| {
                let calls: Vec<u32> = stacks.calls(stack).collect();
                [stacks.whole(stack), stacks.below_main(stack), &calls].map(names)
            };
            all.map(of).collect::<Vec<_>>()
        };
        // Equal stacks are one, so each has another function.
        let many: Vec<String> = (0..100).map(|at| format!("{} > x{at}", paths[at % 3])).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let alone: Vec<_> = many.iter().flat_map(|path| file(&[path])).collect();
        assert_eq!(alone[0][0], ["x0", "std::b", "std::a", "f", "main", "_start"]);
        assert_eq!(alone[0][1], ["x0", "std::b", "std::a", "f", "main"]);
        assert_eq!(alone[0][2], ["x0", "std::a", "f", "main"]);
        assert_eq!(file(&many), alone);
    }
}
