//! The allocator's names, wherever the allocator is: in this executable ([`Linked`]), or in the
//! shared object that this process was started with.
//!
//! The rows of the namespace (type, unit, access, help) are the same in both cases, and compiled
//! in. Only reading, writing and asking which indices exist go to the allocator.
mod linked;

pub use linked::Linked;

use lumalloc_ctl::{Error, Row, Value};
use lumalloc_namespace::MAX_DEPTH;
use lumalloc_namespace::tree;
use std::ffi::CStr;

/// A key that was found: its row, and the MIB with the indices of the name.
#[derive(Clone, Copy)]
pub struct Target {
    /// Type, unit, access, help.
    pub row: &'static Row,
    mib: [usize; MAX_DEPTH],
    depth: usize,
}

impl Target {
    /// The MIB.
    #[must_use]
    pub fn mib(&self) -> &[usize] {
        &self.mib[..self.depth]
    }

    /// The same key with another number at a component, counted from 0: of `arena.<i>.name` at 1.
    #[must_use]
    pub fn with(mut self, place: usize, index: usize) -> Target {
        assert!(place < self.depth, "{} has no component {place}", self.row.name);
        self.mib[place] = index;
        self
    }
}

/// What an allocator answers by name.
pub trait Namespace: Send + Sync {
    /// Translates a name into a MIB; answers how many components were written.
    ///
    /// # Errors
    /// [`Error::NoEntry`] when a component, or an index, does not exist.
    fn mib(&self, name: &str, mib: &mut [usize; MAX_DEPTH]) -> Result<usize, Error>;

    /// The value of a key.
    ///
    /// # Errors
    /// What the key answers; [`Error::NotPermitted`] when it has no value of its own.
    fn read(&self, target: &Target) -> Result<Value<'static>, Error>;

    /// Writes a value of the key's type.
    ///
    /// # Errors
    /// What the key answers.
    fn write(&self, target: &Target, value: Value<'_>) -> Result<(), Error>;

    /// Does what a `void` key is for.
    ///
    /// # Errors
    /// What the key answers.
    fn act(&self, target: &Target) -> Result<(), Error>;

    /// Makes what a key makes (`arenas.create`), and answers its index.
    ///
    /// # Errors
    /// What the key answers.
    fn create(&self, target: &Target) -> Result<u32, Error>;

    /// The text of `malloc_stats_print`, with its letters.
    fn print(&self, letters: &CStr) -> Vec<u8>;
}

impl dyn Namespace {
    /// The key of a name with its indices: `arena.0.purge`.
    ///
    /// # Errors
    /// [`Error::NoEntry`] when there is none, or an index does not exist.
    pub fn find(&self, name: &str) -> Result<Target, Error> {
        let row = row_of(name).ok_or(Error::NoEntry)?;
        let mut mib = [0; MAX_DEPTH];
        let depth = self.mib(name, &mut mib)?;
        Ok(Target { row, mib, depth })
    }
}

/// The row of a name, whether its indices exist or not.
#[must_use]
pub fn row_of(name: &str) -> Option<&'static Row> {
    let is = |row: &&&'static Row| matches(row.name, name);
    tree::rows().iter().find(is).copied()
}

/// Whether a name is of a row: decimal numbers stand where the row has indices.
fn matches(row: &str, name: &str) -> bool {
    let mut parts = name.split('.');
    let all = row.split('.').all(|wanted| {
        let Some(part) = parts.next() else { return false };
        if wanted.starts_with('<') {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())
        } else {
            part == wanted
        }
    });
    all && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_finds_its_row_whatever_its_indices() {
        assert_eq!(row_of("stats.arenas.7.bins.3.curregs").unwrap().name.matches('<').count(), 2);
        assert_eq!(row_of("version").unwrap().name, "version");
        for wrong in ["", "stats", "stats.arenas.x.pactive", "stats.arenas..pactive", "version.0"] {
            assert!(row_of(wrong).is_none(), "{wrong}");
        }
    }
}
