//! The namespace's description of itself, made from its rows.
use crate::error::Error;
use crate::key_table::{self, Row};
use crate::tree;
use core::ffi::CStr;

pub mod effective;

/// The row with a name, which may have indices or `<i>`.
///
/// # Errors
/// [`Error::NoEntry`] when there is no such row.
pub fn named(name: &CStr) -> Result<&'static Row, Error> {
    let name = name.to_bytes();
    if let Some(row) = key_table::rows().iter().find(|row| row.name_bytes() == name) {
        return Ok(row);
    }
    tree::find(tree::complete(name)?.as_slice())
}

/// The names of all rows, each followed by a newline.
pub static NAMES: &CStr = match CStr::from_bytes_with_nul(key_table::names()) {
    Ok(names) => names,
    Err(_) => panic!("a name holds a NUL"),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_listed_and_found_by_its_name() {
        let names = NAMES.to_str().unwrap();
        assert_eq!(names.lines().count(), key_table::rows().len());
        for (line, row) in names.lines().zip(key_table::rows()) {
            assert_eq!(line, row.name());
            let line = std::ffi::CString::new(line).unwrap();
            assert_eq!(named(&line).unwrap().name(), row.name());
        }
        assert_eq!(named(c"arena.0.purge").unwrap().name(), "arena.<i>.purge");
        for wrong in [c"", c"arena", c"arena.<j>.purge", c"arena.999999.purge", c"version.more"] {
            assert_eq!(named(wrong).err(), Some(Error::NoEntry), "{wrong:?}");
        }
    }
}
