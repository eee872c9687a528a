//! Typed keys.
use super::error::CtlError;
use super::typed::Typed;
use core::marker::PhantomData;
use lumalloc_namespace::entry::Entry;
use lumalloc_namespace::error::Error;
use lumalloc_namespace::row::{Access, Row};
use lumalloc_namespace::tree::{self, Mib};

/// A key that is read.
pub struct Read<T>(PhantomData<T>);
/// A key that is read and written.
pub struct ReadWrite<T>(PhantomData<T>);
/// A key that is written.
pub struct Write<T>(PhantomData<T>);
/// A key that does something.
pub struct Act;
/// A key that answers about what comes in.
pub struct Ask<I, T>(PhantomData<(I, T)>);
/// A key that takes and answers bytes.
pub struct Bytes;

/// A typed key with its MIB. `N` indices are still to be given with [`Key::at`].
pub struct Key<D, const N: usize = 0> {
    row: &'static Row,
    mib: Mib,
    /// Where the indices stand.
    places: [usize; N],
    door: PhantomData<fn() -> D>,
}

impl<D, const N: usize> Clone for Key<D, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D, const N: usize> Copy for Key<D, N> {}

impl<D, const N: usize> Key<D, N> {
    /// The key of a row's name, for constants: a name that no row has, or with another number of
    /// indices, stops the compiler. That the types are the row's is what the generator of
    /// [`keys`](super::keys) sees to.
    pub(super) const fn new(name: &'static str) -> Self {
        let (row, mib) = tree::locate(name.as_bytes());
        let mut places = [0; N];
        let (mut used, mut depth, mut at) = (0, 0, 0);
        let bytes = name.as_bytes();
        while at < bytes.len() {
            if bytes[at] == b'.' {
                depth += 1;
            }
            if bytes[at] == tree::INDEX {
                assert!(used < N, "the name has more indices");
                places[used] = depth;
                used += 1;
            }
            at += 1;
        }
        assert!(used == N, "the name has fewer indices");
        Key { row, mib, places, door: PhantomData }
    }

    /// The name, `<i>` for an index.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.row.name
    }

    /// The row: type, unit, access, stability, help.
    #[must_use]
    pub const fn row(&self) -> &'static Row {
        self.row
    }

    /// The key with its indices.
    ///
    /// # Errors
    /// [`CtlError::NoSuchIndex`] when one does not exist.
    ///
    /// ```
    /// use lumalloc_ctl::keys;
    /// assert_eq!(keys::arenas::bin::SIZE.at([1]).unwrap().read(), Ok(16));
    /// let error = keys::arenas::bin::SIZE.at([1000]).err().unwrap();
    /// assert_eq!(error.to_string(), "arenas.bin.<i>.size: no such index: [1000]");
    /// ```
    pub fn at(&self, indices: [usize; N]) -> Result<Key<D>, CtlError> {
        let mut mib = self.mib;
        for (&place, &index) in self.places.iter().zip(&indices) {
            mib.set(place, index);
        }
        let key = Key { row: self.row, mib, places: [], door: PhantomData };
        key.entry().map(|_| key)
    }

    /// The components that stand for indices.
    fn indices(&self) -> Vec<usize> {
        let components = self.row.components().zip(self.mib.as_slice());
        let indices = components.filter(|(name, _)| name.first() == Some(&tree::INDEX));
        indices.map(|(_, &index)| index).collect()
    }

    fn entry(&self) -> Result<Entry<'_>, CtlError> {
        let gone = |_| CtlError::NoSuchIndex { name: self.name(), indices: self.indices() };
        Entry::find(self.mib.as_slice()).map_err(gone)
    }

    /// What a row's error means for who tried something.
    fn explain(&self, tried: &'static str) -> impl Fn(Error) -> CtlError {
        let row = self.row;
        move |error| explain(row, tried, error)
    }

    fn read_value<T: Typed>(&self) -> Result<T::Out, CtlError> {
        let value = self.entry()?.read().map_err(self.explain("read"))?;
        T::from_value(value).ok_or(Error::Invalid).map_err(self.explain("read"))
    }

    fn write_value<T: Typed>(&self, value: T::In<'_>) -> Result<(), CtlError> {
        let entry = self.entry()?;
        T::with_value(value, self.row.kind, |value| entry.write(value))
            .map_err(|given| wrong_type(self.row, given))?
            .map_err(self.explain("write"))
    }
}

/// What a row's error means for who tried something.
pub(super) fn explain(row: &'static Row, tried: &'static str, error: Error) -> CtlError {
    let name = row.name;
    match (error, row.access) {
        (_, Access::Absent(_)) => CtlError::Absent { name },
        (Error::NoEntry, _) if tried == "read" => CtlError::Absent { name },
        (Error::NotPermitted, _) => {
            let access = row.access.notation().to_str().unwrap_or_default();
            CtlError::NotPermitted { name, tried, access }
        }
        (error, _) => CtlError::Refused { name, error },
    }
}

pub(super) fn wrong_type(row: &'static Row, given: impl ToString) -> CtlError {
    let expected = row.kind.c_name().to_str().unwrap_or_default();
    CtlError::WrongType { name: row.name, expected, given: given.to_string() }
}

impl<T: Typed> Key<Read<T>> {
    /// The value.
    ///
    /// # Errors
    /// [`CtlError::NoSuchIndex`] when its arena went; [`CtlError::Absent`] when it has no value.
    pub fn read(&self) -> Result<T::Out, CtlError> {
        self.read_value::<T>()
    }
}

impl<T: Typed> Key<ReadWrite<T>> {
    /// The value.
    ///
    /// # Errors
    /// As [`Key::<Read<T>>::read`].
    pub fn read(&self) -> Result<T::Out, CtlError> {
        self.read_value::<T>()
    }

    /// Writes a value.
    ///
    /// # Errors
    /// [`CtlError::Refused`] when the key does not take it.
    pub fn write(&self, value: T::In<'_>) -> Result<(), CtlError> {
        self.write_value::<T>(value)
    }

    /// Writes a value and answers the one from before; of `epoch`, the one from after.
    ///
    /// # Errors
    /// As [`Key::<ReadWrite<T>>::read`] and [`Key::<ReadWrite<T>>::write`]; when the first fails,
    /// nothing is written.
    ///
    /// ```
    /// use lumalloc_ctl::keys;
    /// let before = keys::vm::REGMAX.update(5).unwrap();
    /// assert_eq!(keys::vm::REGMAX.update(before), Ok(5));
    /// ```
    pub fn update(&self, value: T::In<'_>) -> Result<T::Out, CtlError> {
        if matches!(self.row.access, Access::WriteThenRead(..)) {
            self.write(value)?;
            return self.read();
        }
        let before = self.read()?;
        self.write(value)?;
        Ok(before)
    }
}

impl<T: Typed> Key<Write<T>> {
    /// Writes a value.
    ///
    /// # Errors
    /// [`CtlError::Refused`] when the key does not take it.
    pub fn write(&self, value: T::In<'_>) -> Result<(), CtlError> {
        self.write_value::<T>(value)
    }
}

impl Key<Act> {
    /// Does it.
    ///
    /// # Errors
    /// [`CtlError::Refused`] when it failed.
    pub fn act(&self) -> Result<(), CtlError> {
        let entry = self.entry()?;
        let outcome = match entry.row.access {
            Access::Trigger(act) => act(entry.mib),
            _ => Err(Error::NoEntry),
        };
        outcome.map_err(self.explain("do"))
    }
}

impl<I: Typed, T: Typed> Key<Ask<I, T>> {
    /// The answer about an input, or without one.
    ///
    /// # Errors
    /// [`CtlError::Refused`] when there is none.
    ///
    /// ```
    /// use lumalloc_ctl::keys;
    /// assert_eq!(keys::ctl::UNIT.ask(Some("stats.active")), Ok(c"bytes"));
    /// assert!(keys::ctl::UNIT.ask(None).is_err());
    /// ```
    pub fn ask(&self, input: Option<I::In<'_>>) -> Result<T::Out, CtlError> {
        let entry = self.entry()?;
        let (Access::Ask(kind, ask) | Access::Create(kind, ask)) = entry.row.access else {
            return Err(CtlError::Absent { name: self.name() });
        };
        let answer = match input {
            Some(input) => I::with_value(input, kind, |value| ask(entry.mib, Some(value)))
                .map_err(|given| wrong_type(self.row, given))?,
            None => ask(entry.mib, None),
        };
        let answer = answer.map_err(self.explain("ask"))?;
        T::from_value(answer).ok_or(Error::Invalid).map_err(self.explain("ask"))
    }
}

impl Key<Bytes> {
    /// Hands the call to the key as `mallctlbymib` would.
    ///
    /// # Errors
    /// What it answers.
    ///
    /// # Safety
    /// The buffers must be as [`lumalloc_namespace::access()`] demands, and hold what the key's
    /// layout says.
    #[allow(unsafe_code, reason = "untyped keys")]
    pub unsafe fn call(&self, buffers: lumalloc_namespace::Buffers) -> Result<(), CtlError> {
        // SAFETY: the caller's promise is ours.
        unsafe { lumalloc_namespace::access(self.mib.as_slice(), buffers) }
            .map_err(self.explain("call"))
    }
}
