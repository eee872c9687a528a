//! Typed keys.
use super::error::CtlError;
use super::typed::Typed;
use core::ffi::c_void;
use core::marker::PhantomData;
use lumalloc_namespace::entry::Entry;
use lumalloc_namespace::error::Error;
use lumalloc_namespace::tree::{self, Mib};
use lumalloc_namespace::{Access, Row};

/// A key that can be read.
pub struct Read<T>(PhantomData<T>);
/// A key that can be read and written.
pub struct ReadWrite<T>(PhantomData<T>);
/// A key that can only be written.
pub struct Write<T>(PhantomData<T>);
/// A key that triggers an action.
pub struct Act;
/// A key that takes an input and returns an answer about it.
pub struct Ask<I, T>(PhantomData<(I, T)>);
/// A key that triggers an action that ends blocks.
///
/// ```compile_fail,E0133
/// lumalloc_ctl::keys::arena::DESTROY.at([0]).unwrap().act();
/// ```
pub struct UnsafeAct;
/// A key with a pointer that the allocator uses.
///
/// ```compile_fail,E0133
/// lumalloc_ctl::keys::experimental::hooks::FREED.write(std::ptr::null_mut());
/// ```
pub struct UnsafeReadWrite;
/// A key that makes something, with a pointer that the allocator uses or with none.
pub struct UnsafeCreate<T>(PhantomData<T>);
/// A key that takes and returns bytes.
pub struct Bytes;

/// A typed key with its MIB. [`Key::at`] sets its `N` indices.
pub struct Key<D, const N: usize = 0> {
    row: &'static Row,
    mib: Mib,
    /// The places of the indices in the MIB.
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
    /// The key with the name of a row, for constants. A name that no row has, or one with another
    /// number of indices, stops the compiler. The generator of [`keys`](super::keys) makes sure
    /// that the types are those of the row.
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
        self.row.name()
    }

    /// The row: type, unit, access, stability, help.
    #[must_use]
    pub const fn row(&self) -> &'static Row {
        self.row
    }

    /// The key with its indices.
    ///
    /// # Errors
    /// [`CtlError::NoSuchIndex`] when an index does not exist.
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

    /// The indices in the MIB.
    fn indices(&self) -> Vec<usize> {
        let components = self.row.components().zip(self.mib.as_slice());
        let indices = components.filter(|(name, _)| name.first() == Some(&tree::INDEX));
        indices.map(|(_, &index)| index).collect()
    }

    fn entry(&self) -> Result<Entry<'_>, CtlError> {
        let gone = |_| CtlError::NoSuchIndex { name: self.name(), indices: self.indices() };
        Entry::find(self.mib.as_slice()).map_err(gone)
    }

    /// The error for a caller that tried something, from the row's error.
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

/// The error for a caller that tried something, from the row's error.
pub(super) fn explain(row: &'static Row, tried: &'static str, error: Error) -> CtlError {
    let name = row.name();
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
    CtlError::WrongType { name: row.name(), expected, given: given.to_string() }
}

impl<T: Typed> Key<Read<T>> {
    /// Reads the value.
    ///
    /// # Errors
    /// [`CtlError::NoSuchIndex`] when its arena was destroyed; [`CtlError::Absent`] when the key
    /// has no value.
    pub fn read(&self) -> Result<T::Out, CtlError> {
        self.read_value::<T>()
    }
}

impl<T: Typed> Key<ReadWrite<T>> {
    /// Reads the value.
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

    /// Writes a value and returns the previous one; for `epoch`, the new one.
    ///
    /// # Errors
    /// As [`Key::<ReadWrite<T>>::read`] and [`Key::<ReadWrite<T>>::write`]. If the first step
    /// fails, the second is not done.
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
    /// Triggers the action.
    ///
    /// # Errors
    /// [`CtlError::Refused`] when the action failed.
    pub fn act(&self) -> Result<(), CtlError> {
        let entry = self.entry()?;
        let outcome = match entry.row.access {
            Access::Trigger(act) => act(entry.mib),
            _ => Err(Error::NoEntry),
        };
        outcome.map_err(self.explain("do"))
    }
}

#[allow(unsafe_code, reason = "the caller answers for blocks and pointers")]
impl Key<UnsafeAct> {
    /// Triggers the action.
    ///
    /// # Errors
    /// [`CtlError::Refused`] when the action failed.
    ///
    /// # Safety
    /// No block that the action discards is used any more.
    pub unsafe fn act(&self) -> Result<(), CtlError> {
        let entry = self.entry()?;
        let outcome = match entry.row.access {
            // SAFETY: the caller's promise.
            Access::UnsafeTrigger(act) => unsafe { act(entry.mib) },
            _ => Err(Error::NoEntry),
        };
        outcome.map_err(self.explain("do"))
    }
}

#[allow(unsafe_code, reason = "the caller answers for blocks and pointers")]
impl Key<UnsafeReadWrite> {
    /// Reads the pointer.
    ///
    /// # Errors
    /// As [`Key::<Read<T>>::read`].
    pub fn read(&self) -> Result<*mut c_void, CtlError> {
        self.read_value::<*mut c_void>()
    }

    /// Writes a pointer.
    ///
    /// # Errors
    /// [`CtlError::Refused`] when the key does not take it.
    ///
    /// # Safety
    /// The pointer is what the key's help says, as long as the key has it, or NULL.
    pub unsafe fn write(&self, pointer: *mut c_void) -> Result<(), CtlError> {
        let entry = self.entry()?;
        let outcome = match entry.row.access {
            // SAFETY: the caller's promise.
            Access::UnsafeReadWrite(_, write) => unsafe { write(entry.mib, pointer) },
            _ => Err(Error::NoEntry),
        };
        outcome.map_err(self.explain("write"))
    }
}

#[allow(unsafe_code, reason = "the caller answers for blocks and pointers")]
impl<T: Typed> Key<UnsafeCreate<T>> {
    /// Makes something without a pointer.
    ///
    /// # Errors
    /// [`CtlError::Refused`] when nothing was made.
    ///
    /// ```
    /// use lumalloc_ctl::keys;
    /// let arena = keys::arenas::CREATE.create().unwrap();
    /// assert_eq!(keys::arena::INITIALIZED.at([arena as usize]).unwrap().read(), Ok(true));
    /// ```
    pub fn create(&self) -> Result<T::Out, CtlError> {
        // SAFETY: there is no pointer.
        unsafe { self.create_with(core::ptr::null_mut()) }
    }

    /// Makes something with a pointer.
    ///
    /// # Errors
    /// [`CtlError::Refused`] when nothing was made.
    ///
    /// # Safety
    /// The pointer is what the key's help says, as long as what is made, or NULL.
    pub unsafe fn create_with(&self, pointer: *mut c_void) -> Result<T::Out, CtlError> {
        let entry = self.entry()?;
        let answer = match entry.row.access {
            // SAFETY: the caller's promise.
            Access::UnsafeCreate(_, make) => unsafe { make(entry.mib, pointer) },
            _ => Err(Error::NoEntry),
        };
        let answer = answer.map_err(self.explain("create"))?;
        T::from_value(answer).ok_or(Error::Invalid).map_err(self.explain("create"))
    }
}

impl<I: Typed, T: Typed> Key<Ask<I, T>> {
    /// Asks the key, with or without an input.
    ///
    /// # Errors
    /// [`CtlError::Refused`] when there is no answer.
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
    /// The errors of the key.
    ///
    /// # Safety
    /// The buffers must meet the demands of [`lumalloc_namespace::access()`], and hold what the
    /// key's layout says.
    #[allow(unsafe_code, reason = "untyped keys")]
    pub unsafe fn call(&self, buffers: lumalloc_namespace::Buffers) -> Result<(), CtlError> {
        // SAFETY: the caller upholds the contract.
        unsafe { lumalloc_namespace::access(self.mib.as_slice(), buffers) }
            .map_err(self.explain("call"))
    }
}
