//! The contents of the rows without the functions that read and write: for programs that reach the
//! namespace of another allocator, as the exporter does in a preloaded program. Nothing here refers
//! to the allocator, so the linker leaves it out of such a program.
use crate::key_table::{self, Row};
use crate::row::{Access, Stability};
use crate::tree::INDEX;
use crate::tree_draft::ROW_COUNT;
use crate::value::{Type, Unit};
use core::ffi::CStr;

/// What may be done with a key: [`Access`] without its functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// `r-`
    Read,
    /// `rw`
    ReadWrite,
    /// `-w`
    Write,
    /// `--`
    Trigger,
    /// Takes an input of this type and returns an answer about it.
    Ask(Type),
    /// Makes something from an input of this type, or from none.
    Create(Type),
    /// Bytes of any length, in and out.
    Exchange,
    /// A key with rules of its own.
    Raw,
    /// Always `ENOENT`.
    Absent,
}

/// One key, as its [`Row`] describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The dotted name, `<i>` for an index.
    pub name: &'static str,
    /// The type of the value.
    pub kind: Type,
    /// What a number counts.
    pub unit: Unit,
    /// What may be done with the key.
    pub door: Door,
    /// The access as the manual writes it: `rw`, `r-`, `-w` or `--`.
    pub access: &'static CStr,
    /// What a program may rely on.
    pub stability: Stability,
    /// A description in one line.
    pub help: &'static CStr,
}

impl Fact {
    const fn of(row: &'static Row) -> Fact {
        let door = match row.access {
            Access::Read(_) => Door::Read,
            Access::ReadWrite(..)
            | Access::ReadOrWrite(..)
            | Access::WriteThenRead(..)
            | Access::UnsafeReadWrite(..) => Door::ReadWrite,
            Access::Write(_) | Access::WriteOr(..) => Door::Write,
            Access::Trigger(_) | Access::UnsafeTrigger(_) => Door::Trigger,
            Access::Ask(input, _) => Door::Ask(input),
            Access::Create(input, _) | Access::UnsafeCreate(input, _) => Door::Create(input),
            Access::Exchange(_) => Door::Exchange,
            Access::Raw(..) => Door::Raw,
            Access::Absent(_) => Door::Absent,
        };
        Fact {
            name: row.name(),
            kind: row.kind,
            unit: row.unit,
            door,
            access: row.access.notation(),
            stability: row.stability,
            help: row.help(),
        }
    }

    /// Whether the key has a value that needs no input.
    #[must_use]
    pub const fn is_read(&self) -> bool {
        matches!(self.door, Door::Read | Door::ReadWrite)
    }

    /// Whether a value can be written to the key.
    #[must_use]
    pub const fn is_written(&self) -> bool {
        matches!(self.door, Door::ReadWrite | Door::Write)
    }

    /// Whether the name has an index.
    #[must_use]
    pub fn has_index(&self) -> bool {
        self.name.as_bytes().contains(&INDEX)
    }
}

static FACTS: [Fact; ROW_COUNT] = {
    let rows = key_table::rows();
    let mut facts = [Fact::of(&rows[0]); ROW_COUNT];
    let mut at = 1;
    while at < ROW_COUNT {
        facts[at] = Fact::of(&rows[at]);
        at += 1;
    }
    facts
};

/// All keys, in the order of [`key_table::rows`].
#[must_use]
pub const fn facts() -> &'static [Fact] {
    &FACTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_its_fact() {
        assert_eq!(facts().len(), key_table::rows().len());
        for (fact, row) in facts().iter().zip(key_table::rows()) {
            assert_eq!((fact.name, fact.kind, fact.unit), (row.name(), row.kind, row.unit));
            assert_eq!((fact.access, fact.help), (row.access.notation(), row.help()));
            assert_eq!(fact.is_read(), row.access.reader().is_some(), "{}", row.name());
            let vouched = matches!(row.access, Access::UnsafeReadWrite(..));
            let is_written = row.access.writer().is_some() || vouched;
            assert_eq!(fact.is_written(), is_written, "{}", row.name());
            let absent = matches!(row.access, Access::Absent(_));
            assert_eq!(fact.door == Door::Absent, absent, "{}", row.name());
            assert_eq!(fact.stability, row.stability);
        }
    }

    #[test]
    fn an_index_is_in_angles() {
        let has_index = |name| facts().iter().find(|fact| fact.name == name).map(Fact::has_index);
        assert_eq!(has_index("arena.<i>.purge"), Some(true));
        assert_eq!(has_index("version"), Some(false));
    }
}
