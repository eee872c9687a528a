//! Names and MIBs: the tree that the rows form, made at compile time.
//!
//! The children of a node stand side by side, so a component of a MIB is an offset among them, and
//! a row is found by MIB in one step per component. A node for an index has no siblings. Its rule
//! says which numbers exist, given all of the MIB so far. The tree needs no memory at run time and
//! no lock.
use crate::error::Error;
use crate::key_table::{Row, rows};
use crate::node::NODES;
pub use crate::node::Node;
use crate::tree_draft;
pub use crate::tree_draft::MAX_DEPTH;

/// The first byte of an index in the name of a row: `<i>`.
pub const INDEX: u8 = b'<';

/// Translates a name, or the beginning of one, into a MIB. Returns the number of components
/// written.
///
/// If `mib` is shorter than the name, only the first components are translated and the rest is
/// ignored, as `mallctlnametomib` of jemalloc(3) does. A caller can complete such a MIB.
///
/// # Errors
/// [`Error::NoEntry`] when a component, or an index, does not exist.
pub fn name_to_mib(name: &[u8], mib: &mut [usize]) -> Result<usize, Error> {
    let mut node = NODES.first().ok_or(Error::NoEntry)?;
    let mut components = name.split(|&byte| byte == b'.');
    let mut used = 0;
    while used < mib.len() {
        let Some(text) = components.next() else { break };
        let number = node.number(text).ok_or(Error::NoEntry)?;
        *mib.get_mut(used).ok_or(Error::NoEntry)? = number;
        used += 1;
        node = mib.get(..used).and_then(|mib| node.child(mib)).ok_or(Error::NoEntry)?;
    }
    Ok(used)
}

/// A MIB with its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mib {
    components: [usize; MAX_DEPTH],
    used: usize,
}

impl Mib {
    /// The components.
    #[must_use]
    pub fn as_slice(&self) -> &[usize] {
        self.components.get(..self.used).unwrap_or(&[])
    }

    /// The MIB with one more component; `None` if it already has [`MAX_DEPTH`].
    #[must_use]
    pub fn with(mut self, component: usize) -> Option<Mib> {
        *self.components.get_mut(self.used)? = component;
        self.used += 1;
        Some(self)
    }

    /// Sets the component at a place.
    pub fn set(&mut self, place: usize, component: usize) {
        if let Some(slot) = self.components.get_mut(place) {
            *slot = component;
        }
    }
}

/// The row with a name, and its MIB with 0 for each index. For constants only.
///
/// # Panics
/// When no row has the name. In a constant this stops the compiler.
#[must_use]
pub const fn locate(name: &'static [u8]) -> (&'static Row, Mib) {
    let mut mib = Mib { components: [0; MAX_DEPTH], used: 0 };
    let (mut node, mut begin) = (&NODES[0], 0);
    while begin <= name.len() {
        let end = tree_draft::component_end(name, begin);
        let text = tree_draft::part(name, begin, end);
        let mut number = 0;
        while number < node.count && !is_child(node, number, text) {
            number += 1;
        }
        assert!(number < node.count, "no row has this name");
        mib.components[mib.used] = number as usize;
        mib.used += 1;
        node = &NODES[(node.first + number) as usize];
        begin = end + 1;
    }
    assert!(node.is_leaf, "the name is a branch");
    (&rows()[node.row as usize], mib)
}

const fn is_child(node: &Node, number: u16, text: &[u8]) -> bool {
    tree_draft::is_same(NODES[(node.first + number) as usize].name(), text)
}

/// Translates a whole name into a MIB.
///
/// # Errors
/// [`Error::NoEntry`] when a component, or an index, does not exist, and for a name with more
/// components than any key has.
pub fn complete(name: &[u8]) -> Result<Mib, Error> {
    let mut mib = Mib { components: [0; MAX_DEPTH], used: 0 };
    mib.used = name_to_mib(name, &mut mib.components)?;
    let has_more = name.split(|&byte| byte == b'.').nth(mib.used).is_some();
    if has_more { Err(Error::NoEntry) } else { Ok(mib) }
}

/// The node that a MIB leads to, if there is one.
pub fn node(mib: &[usize]) -> Option<&'static Node> {
    let mut node = NODES.first()?;
    let mut used = 0;
    while used < mib.len() {
        used += 1;
        node = node.child(mib.get(..used)?)?;
    }
    Some(node)
}

/// Finds the row that a complete MIB names.
///
/// # Errors
/// [`Error::NoEntry`] for a number or index that does not exist, and for a MIB that ends before a
/// leaf or goes on past one.
pub fn find(mib: &[usize]) -> Result<&'static Row, Error> {
    node(mib).and_then(|node| node.row()).ok_or(Error::NoEntry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;
    use std::vec::Vec;

    fn concrete(name: &str) -> String {
        name.replace("<i>", "0").replace("<j>", "0")
    }

    #[test]
    fn every_name_translates_to_a_mib_of_its_own_that_finds_its_row() {
        let mut seen = Vec::new();
        for row in rows() {
            let mut mib = [usize::MAX; MAX_DEPTH];
            let name = row.name();
            let used = name_to_mib(concrete(name).as_bytes(), &mut mib).expect(name);
            assert_eq!(used, row.name().split('.').count(), "{}", row.name());
            assert_eq!(find(&mib[..used]).unwrap().name(), row.name());
            assert!(!seen.contains(&mib), "{} has the MIB of another row", row.name());
            seen.push(mib);
        }
    }

    #[test]
    fn rows_that_share_components_are_neighbours() {
        for depth in 1..MAX_DEPTH {
            let prefixes: Vec<Vec<&str>> =
                rows().iter().map(|row| row.name().split('.').take(depth).collect()).collect();
            for (at, prefix) in prefixes.iter().enumerate() {
                let again =
                    prefixes[at..].iter().position(|other| other != prefix).map(|end| at + end);
                assert!(
                    again.is_none_or(|end| !prefixes[end..].contains(prefix)),
                    "{prefix:?} comes twice"
                );
            }
        }
    }

    #[test]
    fn no_key_is_also_a_branch() {
        for row in rows() {
            let branch = std::format!("{}.", row.name());
            assert!(
                rows().iter().all(|other| !other.name().starts_with(&branch)),
                "{} has children",
                row.name()
            );
        }
    }

    #[test]
    fn names_that_do_not_exist() {
        let mut mib = [0; MAX_DEPTH];
        for name in [
            "",
            ".",
            "nothing",
            "stats",
            "stats.",
            "stats.allocated.more",
            "version.",
            ".version",
            "arena.x.purge",
            "arena..purge",
            "arena.99999.purge",
            "arena.-1.purge",
            "arena.18446744073709551616.purge",
        ] {
            let found = name_to_mib(name.as_bytes(), &mut mib)
                .and_then(|used| find(mib.get(..used).unwrap_or(&[])));
            assert_eq!(found.err(), Some(Error::NoEntry), "{name}");
        }
    }

    #[test]
    fn a_short_array_takes_the_beginning_and_ignores_the_rest() {
        let mut whole = [0; MAX_DEPTH];
        name_to_mib(b"arena.0.purge", &mut whole).unwrap();
        let mut two = [usize::MAX; 2];
        assert_eq!(name_to_mib(b"arena.0.nonsense", &mut two), Ok(2));
        assert_eq!(two, whole[..2]);
        assert_eq!(name_to_mib(b"anything", &mut []), Ok(0));
    }

    #[test]
    fn a_mib_that_goes_on_past_a_leaf_is_not_found() {
        let mut mib = [0; MAX_DEPTH];
        let used = name_to_mib(b"version", &mut mib).unwrap();
        assert_eq!(find(&mib[..=used]).err(), Some(Error::NoEntry));
        assert_eq!(find(&[]).err(), Some(Error::NoEntry));
        assert_eq!(find(&[usize::MAX]).err(), Some(Error::NoEntry));
    }
}
