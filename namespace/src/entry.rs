//! A key that was found: its row and the MIB that named it, for typed reading and writing.
use crate::error::Error;
use crate::row::Row;
use crate::tree;
use crate::value::Value;

/// A key together with the indices it was named with.
#[derive(Clone, Copy)]
pub struct Entry<'mib> {
    /// The row of the table.
    pub row: &'static Row,
    /// The MIB, as long as the name has components.
    pub mib: &'mib [usize],
}

impl<'mib> Entry<'mib> {
    /// The key that a complete MIB names.
    ///
    /// # Errors
    /// [`Error::NoEntry`] when there is none.
    pub fn find(mib: &'mib [usize]) -> Result<Self, Error> {
        tree::find(mib).map(|row| Entry { row, mib })
    }

    /// The key's value.
    ///
    /// # Errors
    /// [`Error::NotPermitted`] for a key without a value of its own; else what the row's reader
    /// answers.
    pub fn read(self) -> Result<Value<'static>, Error> {
        let read = self.row.access.reader().ok_or(Error::NotPermitted)?;
        read(self.mib)
    }

    /// Writes the key.
    ///
    /// # Errors
    /// [`Error::NotPermitted`] when it cannot be written, [`Error::Invalid`] for a value of another
    /// type; else what the row's writer answers.
    pub fn write(self, value: Value<'_>) -> Result<(), Error> {
        let write = self.row.access.writer().ok_or(Error::NotPermitted)?;
        if !self.row.kind.holds(value) {
            return Err(Error::Invalid);
        }
        write(self.mib, value)
    }
}
