//! The system services that the core uses, except the supply of pages. None of them changes
//! `errno`.

use super::calls::{self, Call};
use super::system_calls;
use super::units::PAGE;
use core::ffi::{CStr, c_int};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

/// Runs `f`, and restores `errno` after.
pub(crate) fn keep_errno<T>(f: impl FnOnce() -> T) -> T {
    let saved = errno();
    let result = f();
    set_errno(saved);
    result
}

/// Returns the calling thread's `errno`.
pub(crate) fn errno() -> c_int {
    // SAFETY: the C library gives every thread a valid location.
    let location = unsafe { libc::__errno_location() };
    // SAFETY: the location is valid, and only this thread reads and writes it.
    unsafe { *location }
}

/// Sets the calling thread's `errno`.
pub(crate) fn set_errno(value: c_int) {
    // SAFETY: the C library gives every thread a valid location.
    let location = unsafe { libc::__errno_location() };
    // SAFETY: the location is valid, and only this thread reads and writes it.
    unsafe { *location = value };
}

/// Returns the most bytes of addresses that the process may have (RLIMIT_AS).
pub(crate) fn address_limit() -> usize {
    // SAFETY: the call writes the struct, and touches nothing else.
    limit_by(|limit| unsafe { libc::getrlimit(libc::RLIMIT_AS, limit) })
}

/// Returns the most bytes of private writable addresses that the process may have, whether they
/// have memory or not (RLIMIT_DATA).
pub(crate) fn data_limit() -> usize {
    // SAFETY: as above.
    limit_by(|limit| unsafe { libc::getrlimit(libc::RLIMIT_DATA, limit) })
}

/// Returns a limit of the process. The type that names limits differs between C libraries.
fn limit_by(get: impl FnOnce(*mut libc::rlimit) -> c_int) -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let status = keep_errno(|| get(&raw mut limit));
    if status == 0 { limit.rlim_cur as usize } else { usize::MAX }
}

/// Lets other threads run first.
pub(crate) fn yield_now() {
    // SAFETY: the call has no arguments.
    keep_errno(|| unsafe { libc::sched_yield() });
}

/// Sleeps if `*word == expected`, until woken, and for at most `millis` milliseconds if given. May
/// return early for no reason.
pub(crate) fn futex_wait_for(word: &AtomicU32, expected: u32, millis: Option<u64>) {
    let timeout = millis.map(|millis| libc::timespec {
        tv_sec: (millis / 1000) as _,
        tv_nsec: (millis % 1000 * 1_000_000) as libc::c_long,
    });
    calls::count(Call::FutexWait);
    keep_errno(|| {
        // SAFETY: a futex call on a live word, with a timeout that is null or readable.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                expected,
                timeout.as_ref().map_or(core::ptr::null(), core::ptr::from_ref),
            )
        }
    });
}

/// Wakes one sleeper on `word`.
pub(crate) fn futex_wake_one(word: &AtomicU32) {
    calls::count(Call::FutexWake);
    keep_errno(|| {
        // SAFETY: a futex call on a live word.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                1,
            )
        }
    });
}

/// Returns milliseconds of the monotonic clock, exact to the kernel's tick (1 to 10 ms). Takes a
/// few instructions.
pub(crate) fn coarse_millis() -> u64 {
    nanoseconds_of(libc::CLOCK_MONOTONIC_COARSE) / 1_000_000
}

/// Returns nanoseconds of the monotonic clock.
pub(crate) fn nanoseconds() -> u64 {
    nanoseconds_of(libc::CLOCK_MONOTONIC)
}

/// As [`nanoseconds`], but by a system call, because a library may put a `clock_gettime` of its own
/// in place of the C library's, and allocate in it. For the birth of an arena, and what is compared
/// with it: before the first arena is there, nothing can be allocated.
pub(crate) fn nanoseconds_of_system() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    keep_errno(|| system_calls::clock_gettime(libc::CLOCK_MONOTONIC, &mut now));
    in_nanoseconds(now)
}

/// As [`nanoseconds`], but the time of the system's last tick, which is some milliseconds ago at
/// most. The processor's counter is not read, which would wait for all loads before it.
pub(crate) fn nanoseconds_at_tick() -> u64 {
    nanoseconds_of(libc::CLOCK_MONOTONIC_COARSE)
}

/// Returns nanoseconds that the calling thread has run.
pub(crate) fn thread_nanoseconds() -> u64 {
    nanoseconds_of(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Returns the time of a clock, or 0 if there is no such clock.
#[inline(always)]
fn nanoseconds_of(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid place for the result, and stays as it is on failure.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    in_nanoseconds(now)
}

#[inline(always)]
fn in_nanoseconds(time: libc::timespec) -> u64 {
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// Returns an address that only the calling thread has while it lives. Takes one instruction where
/// the machine keeps it in a register.
#[inline(always)]
pub(crate) fn thread_address() -> usize {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let address: usize;
        // SAFETY: by the ABI the first word of a thread's block holds the block's own address.
        unsafe {
            core::arch::asm!("mov {0}, qword ptr fs:[0]", out(reg) address,
                options(pure, readonly, nostack, preserves_flags));
        }
        address
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        let address: usize;
        // SAFETY: reads a register.
        unsafe {
            core::arch::asm!("mrs {0}, tpidr_el0", out(reg) address,
                options(pure, nomem, nostack, preserves_flags));
        }
        address
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    {
        // SAFETY: the C library gives every thread a location of its own.
        (unsafe { libc::__errno_location() }) as usize
    }
}

/// Makes every running thread of the process pass a full memory fence. Returns `false` if the
/// system cannot.
pub(crate) fn fence_all_threads() -> bool {
    const GLOBAL: c_int = 1;
    const PRIVATE_EXPEDITED: c_int = 1 << 3;
    const REGISTER_PRIVATE_EXPEDITED: c_int = 1 << 4;
    // SAFETY: a system call without pointers.
    let call = |command: c_int| unsafe { libc::syscall(libc::SYS_membarrier, command, 0) } == 0;
    keep_errno(|| (call(REGISTER_PRIVATE_EXPEDITED) && call(PRIVATE_EXPEDITED)) || call(GLOBAL))
}

/// Ends the process by SIGABRT.
pub(crate) fn abort() -> ! {
    // SAFETY: takes no argument and does not return.
    unsafe { libc::abort() }
}

/// Whether the environment of this program must not be trusted (set-user-id and the like).
pub(crate) fn is_secure_mode() -> bool {
    // SAFETY: takes and returns a number.
    keep_errno(|| unsafe { libc::getauxval(libc::AT_SECURE) } != 0)
}

/// Returns the value of an environment variable. It is valid until the environment changes, so
/// callers copy it.
pub(crate) fn environment<'a>(name: &CStr) -> Option<&'a [u8]> {
    // SAFETY: the name is a C string, and no other thread runs this early.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: getenv returns a C string.
    Some(unsafe { CStr::from_ptr(value) }.to_bytes())
}

/// Returns how many CPUs this process may run on. Where the system does not tell (it has room for
/// more than 1024 of them, or a sandbox refuses the call), those that are in use.
pub(crate) fn cpu_count() -> u32 {
    // SAFETY: all-zero is a valid (empty) set.
    let mut set: libc::cpu_set_t = unsafe { core::mem::zeroed() };
    let size = size_of::<libc::cpu_set_t>();
    // SAFETY: the set is writable for the size given.
    let status = keep_errno(|| unsafe { libc::sched_getaffinity(0, size, &raw mut set) });
    if status != 0 {
        return online_cpus();
    }
    // SAFETY: the set is plain bits, as large as the array.
    let bits: [u64; 16] = unsafe { core::mem::transmute(set) };
    bits.iter().map(|word| word.count_ones()).sum::<u32>().max(1)
}

/// Returns the CPU that the calling thread runs on, or `None` if it is not known. Takes a few
/// instructions.
pub(crate) fn current_cpu() -> Option<u32> {
    // SAFETY: takes nothing and returns a number.
    let cpu = keep_errno(|| unsafe { libc::sched_getcpu() });
    u32::try_from(cpu).ok()
}

/// Returns how many CPUs are in use now.
pub(crate) fn online_cpus() -> u32 {
    // SAFETY: takes and returns a number.
    let count = keep_errno(|| unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) });
    u32::try_from(count).unwrap_or(1).max(1)
}

/// Returns the system's page size in bytes. The first call asks the system.
#[inline]
pub(crate) fn system_page() -> usize {
    static SIZE: AtomicUsize = AtomicUsize::new(0);
    if SIZE.load(Relaxed) == 0 {
        // SAFETY: takes and returns a number.
        let size = keep_errno(|| unsafe { libc::sysconf(libc::_SC_PAGESIZE) });
        SIZE.store(usize::try_from(size).unwrap_or(0).max(PAGE), Relaxed);
    }
    SIZE.load(Relaxed)
}

/// Returns 64 random bits of the kernel. If it has none yet, they are a mixture of the bits that it
/// gave this process at its start, the time and an address.
pub(crate) fn random() -> u64 {
    let mut bits = [0; size_of::<u64>()];
    let got = keep_errno(|| system_calls::getrandom(&mut bits));
    let is_whole = got == bits.len() as isize;
    if is_whole { u64::from_ne_bytes(bits) } else { weak_random((&raw const bits).addr()) }
}

#[cold]
fn weak_random(address: usize) -> u64 {
    // SAFETY: takes and returns a number.
    let given = keep_errno(|| unsafe { libc::getauxval(libc::AT_RANDOM) }) as *const u64;
    // SAFETY: the pointer is null, or leads to 16 bytes that stay for the life of the process.
    let bits = if given.is_null() { 0 } else { unsafe { given.read_unaligned() } };
    let mut mixed = bits ^ (address as u64).rotate_left(32) ^ coarse_millis();
    for _ in 0..3 {
        mixed = (mixed ^ mixed >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    mixed
}

/// Returns the kernel's number of the calling thread.
pub(crate) fn thread_id() -> usize {
    // SAFETY: takes nothing and returns a number.
    (unsafe { libc::syscall(libc::SYS_gettid) }) as usize
}

/// Writes the name that the system has for the calling thread, with a zero byte behind it.
pub(crate) fn thread_name(name: &mut [u8; 16]) {
    // SAFETY: the system writes at most 16 bytes.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
}

/// Whether the C library made the calling thread, and will therefore run destructors at its end.
///
/// The C library knows the kernel's number of each thread that it made, and derives the id of the
/// thread's clock from it: the inverted number above three bits. In a thread made by clone(2) the
/// id has another number, or none.
pub(crate) fn is_thread_of_libc() -> bool {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: takes nothing and returns the thread's handle.
    let own = unsafe { libc::pthread_self() };
    // SAFETY: the handle is the calling thread's, and `clock` is a place for the result.
    let status = unsafe { libc::pthread_getcpuclockid(own, &raw mut clock) };
    status == 0 && usize::try_from(!(clock >> 3)) == Ok(thread_id())
}

/// Returns the first two numbers of the kernel's version. Zeros: it is not known.
pub(crate) fn kernel_version() -> (u32, u32) {
    // SAFETY: zeros are valid for arrays of bytes.
    let mut name: libc::utsname = unsafe { core::mem::zeroed() };
    // SAFETY: `name` is of the right type.
    let status = keep_errno(|| unsafe { libc::uname(&raw mut name) });
    if status == 0 { version_in(name.release.map(|byte| byte as u8).as_slice()) } else { (0, 0) }
}

/// Returns the first two numbers of a text as `6.17.0-rc1`. A number that is not there is 0.
fn version_in(release: &[u8]) -> (u32, u32) {
    let number = |digits: &[u8]| {
        let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
        digits.fold(0u32, |sum, digit| sum.saturating_mul(10).saturating_add((digit - b'0').into()))
    };
    let mut parts = release.split(|byte| *byte == b'.').map(number);
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

/// Returns a number that no other thread alive now has, without a system call.
pub(crate) fn own_mark() -> usize {
    // SAFETY: takes nothing and returns a number.
    (unsafe { libc::pthread_self() }) as usize
}

/// Returns whether the calling thread may read at an address, which may be any.
///
/// The system copies its argument before it finds that the operation does not exist.
pub(crate) fn is_readable(address: usize) -> bool {
    if address == 0 {
        return false;
    }
    const NO_SUCH_OPERATION: c_int = -1;
    const SET_BYTES: usize = 8;
    let status = keep_errno(|| {
        let nothing = core::ptr::null::<u8>();
        // SAFETY: the call changes nothing, because the operation does not exist.
        let status = unsafe {
            libc::syscall(libc::SYS_rt_sigprocmask, NO_SUCH_OPERATION, address, nothing, SET_BYTES)
        };
        if status == 0 { 0 } else { errno() }
    });
    status != libc::EFAULT
}

/// Gives the memory of whole pages back, whose contents are not needed. If the system refuses, they
/// keep it.
pub(crate) fn give_pages_back(base: usize, bytes: usize) {
    let place = core::ptr::with_exposed_provenance_mut(base);
    // SAFETY: pages of this allocator, whose contents are not needed.
    keep_errno(|| _ = unsafe { libc::madvise(place, bytes, libc::MADV_DONTNEED) });
}

/// Returns how many bytes of a range of mapped addresses are in physical memory.
pub(crate) fn resident_bytes(base: usize, bytes: usize) -> usize {
    const PAGES: usize = 2048;
    let page = system_page();
    let mut seen = [0u8; PAGES];
    let (mut address, end) = (base & !(page - 1), base + bytes);
    let mut resident = 0;
    while address < end {
        let length = (PAGES * page).min(end - address);
        let place = core::ptr::with_exposed_provenance_mut(address);
        // SAFETY: `seen` has a byte for each page, and an unmapped page is an error.
        let status = keep_errno(|| unsafe { libc::mincore(place, length, seen.as_mut_ptr()) });
        if status == 0 {
            let pages = length.div_ceil(page.max(1));
            resident += seen.iter().take(pages).filter(|seen| **seen & 1 != 0).count() * page;
        }
        address += length;
    }
    resident
}

#[cfg(test)]
mod tests {
    use super::{is_readable, kernel_version, random, version_in, weak_random};

    #[test]
    fn the_version_of_the_kernel_is_its_first_two_numbers() {
        let read = |text: &str| version_in(text.as_bytes());
        assert_eq!(
            [read("6.17.0-rc1\0\0"), read("4.4.0"), read("6.18")],
            [(6, 17), (4, 4), (6, 18)]
        );
        assert_eq!(
            [read(""), read("x.y"), read("7"), read("6.1-x.3")],
            [(0, 0), (0, 0), (7, 0), (6, 1)]
        );
        let told = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a version");
        assert_eq!(kernel_version(), read(&told));
    }

    #[test]
    fn only_mapped_memory_is_readable() {
        let word = 0u64;
        assert!(is_readable(core::ptr::from_ref(&word) as usize));
        assert!(is_readable(is_readable as *const () as usize));
        for address in [0, 8, usize::MAX & !7, 1 << 63] {
            assert!(!is_readable(address), "{address:#x}");
        }
    }

    #[test]
    fn random_bits_differ() {
        assert_ne!(random(), random());
        assert_ne!(weak_random(1), weak_random(2));
    }
}
