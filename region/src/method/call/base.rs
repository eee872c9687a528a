//! Calls of a method that is built on another one.

use super::Call;
use crate::data::Data;
use crate::discipline::{Discipline, Resized, Retry};
use crate::method::Method;
use crate::warning::Warning;
use core::ptr::NonNull;

/// A discipline for calls that need none.
pub(crate) struct Nothing;

// SAFETY: there is no memory.
unsafe impl Discipline for Nothing {
    fn obtain(&mut self, _size: usize) -> Option<NonNull<u8>> {
        None
    }

    unsafe fn release(&mut self, _segment: NonNull<u8>, _size: usize) -> bool {
        false
    }
}

/// The discipline below a method that keeps blocks which the program has freed: they are given up
/// before the discipline is told that there is no memory.
pub(crate) struct Keeper<'c, 'a, M: Method, D: Discipline> {
    above: &'c mut Call<'a, M, D>,
    reserve: Reserve<'a, M, D>,
}

/// What a call does when the discipline has no memory for it.
#[derive(Clone, Copy)]
pub(crate) enum Reserve<'a, M: Method, D: Discipline> {
    /// It fails, and nobody is told.
    Nothing,
    /// It runs the function, which returns whether it has freed anything, and tells the discipline
    /// if not.
    Freed(fn(&mut Call<'a, M, D>) -> bool),
}

// SAFETY: the discipline of the call above keeps the promises.
unsafe impl<M: Method, D: Discipline> Discipline for Keeper<'_, '_, M, D> {
    fn round(&self) -> usize {
        self.above.discipline.round()
    }

    fn growth(&self, extent: usize) -> usize {
        self.above.discipline.growth(extent)
    }

    fn obtain(&mut self, size: usize) -> Option<NonNull<u8>> {
        self.above.discipline.obtain(size)
    }

    unsafe fn resize(&mut self, segment: NonNull<u8>, size: usize, new_size: usize) -> Resized {
        // SAFETY: the same promise.
        unsafe { self.above.discipline.resize(segment, size, new_size) }
    }

    unsafe fn release(&mut self, segment: NonNull<u8>, size: usize) -> bool {
        // SAFETY: the same promise.
        unsafe { self.above.discipline.release(segment, size) }
    }

    fn no_memory(&mut self, size: usize) -> Retry {
        let Reserve::Freed(give_up) = self.reserve else { return Retry::Fail };
        // The discipline may have cleared the region since the call began.
        self.above.words = self.above.data.head.words();
        if give_up(self.above) { Retry::Repeat } else { self.above.discipline.no_memory(size) }
    }

    fn warn(&mut self, warning: &Warning, region: usize) {
        self.above.discipline.warn(warning, region);
    }
}

impl<'a, M: Method, D: Discipline> Call<'a, M, D> {
    /// Runs `f` on the region as one of the method `N`, on which `M` is built.
    ///
    /// # Safety
    /// The state of `M` begins with that of `N`.
    pub(crate) unsafe fn with_base<N: Method, T>(
        &mut self,
        f: impl FnOnce(&mut Call<'_, N, D>) -> T,
    ) -> T {
        // SAFETY: the caller's promise.
        let data = unsafe { self.data_of_base::<N>() };
        let discipline = &mut *self.discipline;
        let mut base = Call { data, discipline, words: self.words, origin: self.origin };
        let result = f(&mut base);
        // The discipline may have cleared the region.
        self.words = base.words;
        result
    }

    /// As [`Call::with_base`], for a method that keeps freed blocks.
    ///
    /// # Safety
    /// As for [`Call::with_base`].
    pub(crate) unsafe fn with_base_and_reserve<N: Method, T>(
        &mut self,
        reserve: Reserve<'a, M, D>,
        f: impl FnOnce(&mut Call<'_, N, Keeper<'_, 'a, M, D>>) -> T,
    ) -> T {
        // SAFETY: the caller's promise.
        let data = unsafe { self.data_of_base::<N>() };
        let (words, origin) = (self.words, self.origin);
        let discipline = &mut Keeper { above: self, reserve };
        let mut base = Call { data, discipline, words, origin };
        let result = f(&mut base);
        let words = base.words;
        self.words = words;
        result
    }

    /// As [`Call::with_base`], for calls that need no discipline.
    ///
    /// # Safety
    /// The state of `M` begins with that of `N`.
    pub(crate) unsafe fn look_at_base<N: Method, T>(
        &self,
        f: impl FnOnce(&Call<'_, N, Nothing>) -> T,
    ) -> T {
        // SAFETY: the caller's promise.
        let data = unsafe { self.data_of_base::<N>() };
        let discipline = &mut Nothing;
        f(&Call { data, discipline, words: self.words, origin: self.origin })
    }

    /// The core data as that of a region of the method `N`.
    ///
    /// # Safety
    /// As for [`Call::with_base`].
    unsafe fn data_of_base<N: Method>(&self) -> &'a Data<N::State> {
        let data = NonNull::from(self.data).cast::<Data<N::State>>();
        // SAFETY: the core data of `M` begins with that of `N` (the caller's promise).
        unsafe { data.as_ref() }
    }
}
