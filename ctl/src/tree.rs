//! Names and MIBs: the tree that the rows of the table span.
//!
//! Rows stand in tree order: those that share their first components are neighbours. Then the
//! position of a component among its siblings, which is its number in the MIB, follows from
//! comparing each row with the one before it, and that is done at compile time (`MIBS`). A
//! look-up narrows a range of rows by one component at a time; what is left is a leaf when its
//! depth is the number of components used.
use crate::row::{Error, Row};
use crate::table::{ROW_COUNT, ROWS};

/// The most components that any name has. `mallctlnametomib` never needs a longer array.
pub const MAX_DEPTH: usize = 7;

/// The component that stands for an index.
pub(crate) const INDEX: &[u8] = b"<i>";

/// The MIB of each row; an index component counts as 0.
static MIBS: [[u8; MAX_DEPTH]; ROW_COUNT] = number_rows();

/// Numbers the components of all rows. A name that is too deep stops the compiler.
const fn number_rows() -> [[u8; MAX_DEPTH]; ROW_COUNT] {
    let mut mibs = [[0; MAX_DEPTH]; ROW_COUNT];
    let mut row = 1;
    while row < ROW_COUNT {
        let (previous, name) = (ROWS[row - 1].name.as_bytes(), ROWS[row].name.as_bytes());
        let shared = shared_components(previous, name);
        let mut at = 0;
        while at < shared {
            mibs[row][at] = mibs[row - 1][at];
            at += 1;
        }
        mibs[row][shared] = mibs[row - 1][shared] + 1;
        row += 1;
    }
    mibs
}

/// How many leading components two names have in common.
const fn shared_components(a: &[u8], b: &[u8]) -> usize {
    let (mut at, mut dots) = (0, 0);
    while at < a.len() && at < b.len() && a[at] == b[at] {
        if a[at] == b'.' {
            dots += 1;
        }
        at += 1;
    }
    dots
}

/// Rows that agree with the components looked at so far.
#[derive(Clone, Copy)]
struct Node {
    rows: &'static [Row],
    mibs: &'static [[u8; MAX_DEPTH]],
    depth: usize,
}

/// The root: all rows.
const fn root() -> Node {
    Node { rows: &ROWS, mibs: &MIBS, depth: 0 }
}

impl Node {
    /// The first row below this node.
    fn first(self) -> Option<&'static Row> {
        self.rows.first()
    }

    /// The row, if the components used so far are the whole of its name.
    fn leaf(self) -> Option<&'static Row> {
        self.first().filter(|row| component(row, self.depth).is_none())
    }

    /// The child whose component has this number in the MIB.
    fn child(self, number: usize) -> Option<Node> {
        let row = self.first()?;
        let deeper = Node { depth: self.depth + 1, ..self };
        if component(row, self.depth)? == INDEX {
            return (row.index)(number).then_some(deeper);
        }
        let at = |mib: &[u8; MAX_DEPTH]| {
            mib.get(self.depth).map_or(0, |&component| usize::from(component))
        };
        let begin = self.mibs.partition_point(|mib| at(mib) < number);
        let end = self.mibs.partition_point(|mib| at(mib) <= number);
        let (rows, mibs) = (self.rows.get(begin..end)?, self.mibs.get(begin..end)?);
        (!rows.is_empty()).then_some(Node { rows, mibs, ..deeper })
    }

    /// The number that this component of a name has in the MIB.
    fn number(self, text: &[u8]) -> Option<usize> {
        let row = self.first()?;
        if component(row, self.depth)? == INDEX {
            return parse_index(text);
        }
        let of_text =
            |row: &Row| component(row, self.depth).is_some_and(|component| component == text);
        let (_, mib) = self.rows.iter().zip(self.mibs).find(|(row, _)| of_text(row))?;
        mib.get(self.depth).map(|&number| usize::from(number))
    }
}

/// The component of a row's name at a depth.
fn component(row: &Row, depth: usize) -> Option<&'static [u8]> {
    row.components().nth(depth)
}

/// A decimal index; the whole of the text must be digits.
fn parse_index(text: &[u8]) -> Option<usize> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0usize, |value, &byte| {
        let digit = byte.checked_sub(b'0').filter(|&digit| digit < 10)?;
        value.checked_mul(10)?.checked_add(usize::from(digit))
    })
}

/// Translates a name, or the beginning of one, into a MIB; answers how many components were
/// written.
///
/// A shorter `mib` than the name takes the first components only and the rest is not looked at, as
/// `mallctlnametomib` of jemalloc(3) has it: the result is the base on which a caller completes
/// MIBs.
///
/// # Errors
/// [`Error::NoEntry`] when a component, or an index, does not exist.
pub fn name_to_mib(name: &[u8], mib: &mut [usize]) -> Result<usize, Error> {
    let mut node = root();
    let mut components = name.split(|&byte| byte == b'.');
    let mut used = 0;
    for (slot, text) in mib.iter_mut().zip(&mut components) {
        let number = node.number(text).ok_or(Error::NoEntry)?;
        node = node.child(number).ok_or(Error::NoEntry)?;
        *slot = number;
        used += 1;
    }
    Ok(used)
}

/// Finds the row that a complete MIB names.
///
/// # Errors
/// [`Error::NoEntry`] for a number or index that does not exist, a MIB that ends before a leaf, and
/// one that goes on past it.
pub fn find(mib: &[usize]) -> Result<&'static Row, Error> {
    let node = mib.iter().try_fold(root(), |node, &number| node.child(number));
    node.and_then(Node::leaf).ok_or(Error::NoEntry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;
    use std::vec::Vec;

    fn concrete(name: &str) -> String {
        name.replace("<i>", "0")
    }

    #[test]
    fn every_name_translates_to_a_mib_of_its_own_that_finds_its_row() {
        let mut seen = Vec::new();
        for row in &ROWS {
            let mut mib = [usize::MAX; MAX_DEPTH];
            let used = name_to_mib(concrete(row.name).as_bytes(), &mut mib).expect(row.name);
            assert_eq!(used, row.name.split('.').count(), "{}", row.name);
            assert_eq!(find(&mib[..used]).unwrap().name, row.name);
            assert!(!seen.contains(&mib), "{} has the MIB of another row", row.name);
            seen.push(mib);
        }
    }

    #[test]
    fn rows_that_share_components_are_neighbours() {
        for depth in 1..MAX_DEPTH {
            let prefixes: Vec<Vec<&str>> =
                ROWS.iter().map(|row| row.name.split('.').take(depth).collect()).collect();
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
        for row in &ROWS {
            let branch = std::format!("{}.", row.name);
            assert!(
                ROWS.iter().all(|other| !other.name.starts_with(&branch)),
                "{} has children",
                row.name
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
