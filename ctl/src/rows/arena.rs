//! `arena.<i>.*`: settings and actions of one arena.
use crate::Error;
use crate::row::{Index, Row, index_at};
use crate::row_macros::act;
use lumalloc::control;

/// These keys.
pub static ROWS: &[Row] = &[act!(
    "arena.<i>.purge",
    purge,
    "gives all unused pages of the arena back to the system; index 4096 means all arenas"
)];

/// Their indices.
pub static INDICES: &[Index] = &[Index { path: "arena.<i>", valid: |mib| is_index(mib.get(1)) }];

/// An index that can stand in `arena.<i>`: an arena below the limit, the limit itself (the old way
/// to say "all", which Redis uses), or [`control::ARENAS_ALL`].
pub(crate) fn is_index(index: Option<&usize>) -> bool {
    index
        .and_then(|&index| u32::try_from(index).ok())
        .is_some_and(|index| index == control::ARENAS_ALL || index <= control::narenas())
}

fn purge(mib: &[usize]) -> Result<(), Error> {
    let index = u32::try_from(index_at(mib, 1)?).map_err(|_| Error::NoEntry)?;
    let all = index == control::narenas();
    let arena = if all { control::ARENAS_ALL } else { index };
    control::purge(arena).then_some(()).ok_or(Error::NoEntry)
}
