//! How far the next sample is, and what a request gets whose sample is due.

use core::cell::Cell;

/// What the present request gets in place of an ordinary block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Due {
    Nothing,
    /// A guarded sample.
    Guarded,
    /// A sample of the heap profiler.
    Profiled,
}

/// How many requests are left until the next sample, once a countdown has run out. 0: none is
/// drawn.
pub(crate) struct UntilSample(Cell<usize>);

impl UntilSample {
    /// Creates a count that is drawn when it is needed.
    pub(crate) const fn new() -> UntilSample {
        UntilSample(Cell::new(0))
    }

    /// Forgets what was drawn.
    pub(crate) fn forget(&self) {
        self.0.set(0);
    }

    /// Begins a countdown with the present request. Calls `due` if it gets the sample. Returns how
    /// many requests, with the present one, there are before the one after which the next sample
    /// comes.
    pub(crate) fn begin(&self, draw: impl Fn() -> usize, due: impl Fn()) -> usize {
        if self.0.get() == 0 {
            self.0.set(draw());
        }
        if self.0.get() == 1 {
            due();
            self.0.set(draw().saturating_add(1));
        }
        self.0.get() - 1
    }

    /// Passes `n` requests, at most as many as [`UntilSample::begin`] returned.
    pub(crate) fn pass(&self, n: usize) {
        self.0.set(self.0.get() - n);
    }

    /// Takes back `n` of the requests that [`UntilSample::pass`] has passed, which were not made.
    pub(crate) fn take_back(&self, n: usize) {
        if self.0.get() > 0 {
            self.0.set(self.0.get().saturating_add(n));
        }
    }

    /// Counts `n` requests or bytes. Returns whether a sample is among them.
    pub(crate) fn count(&self, n: usize, draw: impl Fn() -> usize) -> bool {
        if self.0.get() == 0 {
            self.0.set(draw());
        }
        let is_due = self.0.get() <= n;
        // What comes after a sample is as far from the next one as after any other byte.
        self.0.set(if is_due { draw() } else { self.0.get() - n });
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_due_when_what_was_drawn_is_counted() {
        let until = UntilSample::new();
        let draw = || 100;
        assert!(!until.count(99, draw));
        assert!(until.count(1, draw), "the hundredth");
        assert!(!until.count(50, draw) && until.count(1000, draw));
        assert!(!until.count(99, draw));
    }

    #[test]
    fn a_countdown_ends_before_each_sample() {
        let until = UntilSample::new();
        let dues = Cell::new(0);
        let begin = || until.begin(|| 3, || dues.set(dues.get() + 1));
        // The third request is the first sample, and then each third one.
        assert_eq!((begin(), dues.get()), (2, 0));
        until.pass(2);
        assert_eq!((begin(), dues.get()), (3, 1));
        until.pass(1);
        assert_eq!((begin(), dues.get()), (2, 1));
        until.pass(2);
        assert_eq!((begin(), dues.get()), (3, 2));
        until.pass(3);
        until.take_back(2);
        assert_eq!((begin(), dues.get()), (2, 2));
        until.forget();
        until.take_back(2);
        assert_eq!((begin(), dues.get()), (2, 2), "none was drawn");
    }
}
