//! The options of malloc over regions, which are carried out at the first call. Source: vmalloc(3),
//! Malloc-compatible functions.

use super::super::abi::{Vmalloc, Vmethod};
use super::super::kinds;
use super::super::open::vmopen;
use super::super::own_file::OwnFile;
use super::super::profile::vmprofile;
use super::super::vmregion::{Vmregion, current};
use super::super::{disciplines, fork, trace, warnings};
use super::{checks, output};
use alloc_core::control::{ARENAS_ALL, arenas, diversion};
use alloc_core::message;
use alloc_core::options::Dss;
use core::ffi::{CStr, c_int};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, Ordering};
use lumalloc_region::mode;
use lumalloc_region::raw::{Line, MallocOptions, Problem};

/// How far the options are carried out.
static PROGRESS: AtomicU8 = AtomicU8::new(TO_COME);
const TO_COME: u8 = 0;
const BEGUN: u8 = 1;
const DONE: u8 = 2;

/// Whether no block is freed.
static KEEPS: AtomicBool = AtomicBool::new(false);

/// Where the summary of the method that counts is written at exit. Negative: nowhere.
static SUMMARY: AtomicI32 = AtomicI32::new(-1);
static SUMMARY_FILE: OwnFile = OwnFile::none();

/// Returns whether the options want calls to be diverted. Allocates nothing.
pub(super) fn is_asked_for() -> bool {
    /// 0: not looked yet; 1: no; 2: yes.
    static ANSWER: AtomicU8 = AtomicU8::new(0);
    match ANSWER.load(Ordering::Relaxed) {
        0 => {
            let options = read(&mut |_, _| {});
            let asked = options.opens_region() || options.keep || options.trace.is_some();
            ANSWER.store(if asked { 2 } else { 1 }, Ordering::Relaxed);
            asked
        }
        answer => answer == 2,
    }
}

/// Returns whether no block is to be freed.
pub(super) fn keeps_all() -> bool {
    KEEPS.load(Ordering::Relaxed)
}

/// Carries the options out, once. A thread that comes meanwhile goes on without them.
pub fn begin() {
    if PROGRESS.load(Ordering::Relaxed) != TO_COME {
        return;
    }
    let first =
        PROGRESS.compare_exchange(TO_COME, BEGUN, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    if first {
        diversion::past(|| carry_out(&read(&mut complain)));
        PROGRESS.store(DONE, Ordering::Relaxed);
    }
}

/// Writes the summary that the options ask for. Called when the process exits.
pub fn end() {
    let descriptor = SUMMARY.load(Ordering::Relaxed);
    if descriptor >= 0 && !SUMMARY_FILE.is_lost(descriptor) {
        // SAFETY: NULL stands for all regions.
        unsafe { vmprofile(ptr::null_mut(), descriptor) };
    }
}

/// Reads the variables. A problem is passed to `complain` with the name of its variable.
fn read(complain: &mut dyn FnMut(&str, Problem<'_>)) -> MallocOptions<'static> {
    let mut options = MallocOptions::default();
    if let Some(text) = variable(c"VMALLOC_OPTIONS") {
        options.read(text, &mut |problem| complain("VMALLOC_OPTIONS", problem));
    }
    if let Some(text) = variable(c"VMETHOD") {
        options.read_method(text, &mut |problem| complain("VMETHOD", problem));
    }
    if let Some(text) = variable(c"VMDEBUG") {
        options.read_debug(text);
    }
    if let Some(text) = variable(c"VMPROFILE") {
        options.read_profile(text);
    }
    if let Some(text) = variable(c"VMTRACE") {
        options.read_trace(text);
    }
    options.check |= variable(c"VMCHECK").is_some();
    options
}

/// Returns the value of a variable that is not empty. Programs with the rights of another user have
/// none.
fn variable(name: &CStr) -> Option<&'static [u8]> {
    // SAFETY: the call takes any number.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return None;
    }
    // SAFETY: the name is NUL-terminated.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: getenv returns a C string, which stays as long as the environment.
    let text = unsafe { CStr::from_ptr(value) }.to_bytes();
    Some(text).filter(|text| !text.is_empty())
}

fn carry_out(options: &MallocOptions<'_>) {
    KEEPS.store(options.keep, Ordering::Relaxed);
    if options.break_first || options.mmap_first {
        let dss = if options.break_first { Dss::Primary } else { Dss::Secondary };
        // The indices of all arenas and of the first one are never wrong.
        let _ = arenas::set_dss(ARENAS_ALL, dss) && arenas::set_dss(0, dss);
    }
    if options.opens_region() {
        open_region(options);
    }
    for address in options.watched.into_iter().filter(|address| *address != 0) {
        warnings::vmdbwatch(ptr::with_exposed_provenance_mut(address));
    }
    if let Some(descriptor) = options.warn.and_then(open_file) {
        warnings::set_own(descriptor);
    }
    if let Some(descriptor) = options.trace.and_then(open_file) {
        trace::set_own(descriptor);
        trace::vmtracetimed(c_int::from(options.timed));
        fork::register();
        current().head().change_mode(mode::TRACE, true);
    }
    if options.method() == mode::PROFILE {
        let descriptor = options.profile.and_then(open_file);
        descriptor.into_iter().for_each(|descriptor| SUMMARY_FILE.note(descriptor));
        SUMMARY.store(descriptor.unwrap_or(libc::STDERR_FILENO), Ordering::Relaxed);
    }
    if let Some((start, period)) = options.checks() {
        checks::set(start, period);
    }
}

/// Lets malloc allocate in a region with the method that the options name.
fn open_region(options: &MallocOptions<'_>) {
    let method = options.method();
    let Some(kind) = kinds::with_method(method) else { return };
    let abort = if options.abort && method == mode::DEBUG { mode::DBABORT } else { 0 };
    let flags = (mode::SHARE | abort).cast_signed();
    let method: *const Vmethod = &raw const kind.method;
    // SAFETY: the discipline and the method exist for ever.
    let vm = unsafe { vmopen(disciplines::SYSTEM.get(), method.cast_mut(), flags) };
    if vm.is_null() {
        message::write(NO_REGION);
        return;
    }
    replace_usual(vm);
}

/// Stores a region in `Vmregion`, unless the program has stored another one already.
fn replace_usual(vm: *mut Vmalloc) {
    let heap = kinds::first_address();
    // Release: pairs with the Acquire in `current`.
    let _ = Vmregion.compare_exchange(heap, vm, Ordering::Release, Ordering::Relaxed);
}

const NO_REGION: &[u8] =
    b"<lumalloc>: VMALLOC_OPTIONS: no region could be opened, so malloc uses its heap\n";

fn open_file(name: &[u8]) -> Option<c_int> {
    match output::open(name) {
        Ok(descriptor) => Some(descriptor),
        Err(code) => {
            let mut line = Line::new();
            line.text(b"<lumalloc>: VMALLOC_OPTIONS: \"").end_of(name);
            line.text(b"\" cannot be written: ");
            match lumalloc_profile::reason::of(code) {
                Some(reason) => line.text(reason.as_bytes()),
                None => line.text(b"error ").decimal(usize::try_from(code).unwrap_or(0)),
            };
            line.text(b"\n");
            message::write(line.get());
            None
        }
    }
}

fn complain(variable: &str, problem: Problem<'_>) {
    let mut line = Line::new();
    line.text(b"<lumalloc>: ").text(variable.as_bytes()).text(b": ");
    match problem {
        Problem::Option(name) => line.text(b"unknown option \"").end_of(name).text(b"\""),
        Problem::Method(name) => line.text(b"unknown method \"").end_of(name).text(b"\""),
        Problem::Number(name, value) => {
            line.text(b"\"").end_of(value).text(b"\" is no number for ").end_of(name)
        }
        Problem::Value(name) => line.end_of(name).text(b" has no value"),
    };
    line.text(b"\n");
    message::write(line.get());
}
