//! Who makes the region of a file, and how others wait for that.

use super::file::{File, Locked};
use super::front::{self, FRONT, Found, WORDS};
use crate::errno;
use crate::lock::names_process;
use core::ffi::c_int;

/// No number of `errno`: another process has locked the file, and it is not known that it makes the
/// region, or is in it. See [`when_made`].
pub const LOCKED: c_int = -1;

/// How often [`when_made`] accepts that, once in a millisecond.
const PATIENCE: u32 = 1000;

/// Calls `attempt` until another process has made its region. Who calls this holds no lock: that
/// process may be stopped.
///
/// # Errors
/// Those of `attempt`, and `EBUSY` if it failed for about a second with [`LOCKED`].
pub fn when_made<T>(mut attempt: impl FnMut() -> Result<Option<T>, c_int>) -> Result<T, c_int> {
    let mut refusals = 0;
    loop {
        match attempt() {
            Ok(Some(made)) => return Ok(made),
            Ok(None) => {}
            Err(LOCKED) if refusals < PATIENCE => refusals += 1,
            Err(LOCKED) => return Err(libc::EBUSY),
            Err(failed) => return Err(failed),
        }
        front::pause();
    }
}

/// Locks a file, and reads its front. Returns that, and whether no other process has the region.
/// Only a process that is alone makes a region. Returns `None` while another one does.
pub(super) fn claim(file: &File) -> Result<Option<(Found, bool)>, c_int> {
    let is_alone = file.lock(Locked::Alone);
    if !is_alone && !file.lock(Locked::TogetherAtOnce) {
        let is_locked = errno::get() == libc::EWOULDBLOCK;
        return match is_locked {
            true if is_in_use(file)? => Ok(None),
            true => Err(LOCKED),
            false => Err(libc::ENOLCK),
        };
    }
    let mut words = [0; WORDS];
    let length = file.read(0, &mut words)?;
    // Zeros in a file are something else's.
    let is_foreign = length != 0 && words.first() == Some(&0);
    let found = if is_foreign { Found::Foreign } else { Found::read(&words) };
    if is_alone || found != Found::Nothing { Ok(Some((found, is_alone))) } else { Err(LOCKED) }
}

/// Returns whether a process that exists makes the region of a file, or is in it.
pub(super) fn is_in_use(file: &File) -> Result<bool, c_int> {
    let (mut words, mut lock) = ([0; WORDS], [0]);
    file.read(0, &mut words)?;
    file.read(FRONT, &mut lock)?;
    Ok(front::is_being_made(&words) || matches!(lock, [word] if names_process(word)))
}
