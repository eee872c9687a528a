//! A key that was found: its row and the MIB that named it, for typed reading and writing.
use crate::error::Error;
use crate::key_table::Row;
use crate::tree;
use crate::value::Value;

/// A key together with the indices in its MIB.
#[derive(Clone, Copy)]
pub struct Entry<'mib> {
    /// The row of the key.
    pub row: &'static Row,
    /// The MIB. It has as many components as the name.
    pub mib: &'mib [usize],
}

impl<'mib> Entry<'mib> {
    /// Finds the key that a complete MIB names.
    ///
    /// # Errors
    /// [`Error::NoEntry`] when there is no such key.
    pub fn find(mib: &'mib [usize]) -> Result<Self, Error> {
        tree::find(mib).map(|row| Entry { row, mib })
    }

    /// The key's value.
    ///
    /// # Errors
    /// [`Error::NotPermitted`] for a key without a value of its own; otherwise the errors of the
    /// row's reader.
    pub fn read(self) -> Result<Value<'static>, Error> {
        let read = self.row.access.reader().ok_or(Error::NotPermitted)?;
        read(self.mib)
    }

    /// Writes the key.
    ///
    /// # Errors
    /// [`Error::NotPermitted`] when the key cannot be written, [`Error::Invalid`] for a value of
    /// another type; otherwise the errors of the row's writer.
    pub fn write(self, value: Value<'_>) -> Result<(), Error> {
        let write = self.row.access.writer().ok_or(Error::NotPermitted)?;
        if !self.row.kind.holds(value) {
            return Err(Error::Invalid);
        }
        write(self.mib, value)
    }
}
