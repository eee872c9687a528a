//! Who holds the lock of a region that several processes share: a process, in a number that says
//! later whether the process still exists.
//!
//! ```text
//!   bits 63..52  the boot of the system     31      a thread waits (the lock's own bit)
//!        51..32  when the process began     30..22  the namespaces of numbers and clocks
//!                                           21..0   the process number
//! ```
//!
//! A process number alone does not do: the system gives it to another process later.
//!
//! The parts above the process number come from `/proc`. 0 in one of them means that it could not
//! be read then, and nothing is concluded from it.

use crate::errno;
use crate::line::Line;
use core::ffi::CStr;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU64, Ordering};
use lumalloc::{own_files, system_calls};

const NUMBER: u64 = (1 << 22) - 1;
const SPACE_SHIFT: u32 = 22;
const SPACE: u64 = 0x1ff << SPACE_SHIFT;
const START_SHIFT: u32 = 32;
const START: u64 = 0xf_ffff << START_SHIFT;
const BOOT_SHIFT: u32 = 52;
const BOOT: u64 = 0xfff << BOOT_SHIFT;

/// The process number for [`noted`], or 0 before the first call.
static NOTED: AtomicU64 = AtomicU64::new(0);

/// The number of this process, once all of it is known, or 0.
static OWN: AtomicU64 = AtomicU64::new(0);

/// Returns the number of this process. It is not 0. Without `/proc`, or without a descriptor to
/// read it, the number has fewer parts, and may get the others later.
pub(crate) fn own() -> u64 {
    let process = process();
    let known = OWN.load(Ordering::Relaxed);
    if known & NUMBER == process {
        return known;
    }
    let own = compute(process);
    if [SPACE, START, BOOT].iter().all(|part| own & part != 0) {
        OWN.store(own, Ordering::Relaxed);
    }
    own
}

/// Notes which process this is. Returns whether another one was noted before, as in the child of a
/// fork.
pub(crate) fn note() -> bool {
    OWN.store(0, Ordering::Relaxed);
    let before = NOTED.load(Ordering::Relaxed);
    ![0, note_number()].contains(&before)
}

/// Returns the process number that was noted. Only [`note`] changes it. Later calls take no call of
/// the system.
#[inline]
pub(crate) fn noted() -> u64 {
    match NOTED.load(Ordering::Relaxed) {
        0 => note_number(),
        noted => noted,
    }
}

#[cold]
fn note_number() -> u64 {
    let process = process();
    NOTED.store(process, Ordering::Relaxed);
    process
}

/// Returns the process number that the system knows a process by.
pub(crate) fn process_of(owner: u64) -> u32 {
    (owner & NUMBER) as u32
}

/// Returns whether two numbers were made for one process, as far as both say.
pub(crate) fn is_same(one: u64, other: u64) -> bool {
    let differs = |part: u64| differ(one, other, part);
    process_of(one) == process_of(other) && !differs(SPACE) && !differs(START) && !differs(BOOT)
}

/// Returns whether the process that a number was made for still exists. A process of another
/// namespace cannot be seen, and counts as alive until the system starts anew.
pub(crate) fn is_alive(owner: u64) -> bool {
    let own = own();
    if differ(owner, own, BOOT) {
        return false;
    }
    if differ(owner, own, SPACE) {
        return true;
    }
    let process = owner & NUMBER;
    if process == 0 || is_gone(process) {
        return false;
    }
    match status(process) {
        Some(status) => !status.is_dead && !differ(owner, start_part(status.start), START),
        // It has ended since, or the system hides it.
        None => !is_gone(process),
    }
}

/// Returns whether the process that a number was made for is seen to exist: it is not one of
/// another namespace, and not another one with its process number.
pub(crate) fn is_seen(owner: u64) -> bool {
    owner & START != 0 && !differ(owner, own(), SPACE) && is_alive(owner)
}

/// Returns whether this process is known to have no thread but the calling one.
pub(crate) fn is_only_thread() -> bool {
    status(process()).is_some_and(|status| status.threads == 1)
}

/// Returns whether two numbers have a part that differs. A part that is not known does not.
fn differ(one: u64, other: u64, part: u64) -> bool {
    let (one, other) = (one & part, other & part);
    one != 0 && other != 0 && one != other
}

fn process() -> u64 {
    // SAFETY: the call has no arguments and cannot fail.
    u64::from(unsafe { libc::getpid() }.cast_unsigned()) & NUMBER
}

fn compute(process: u64) -> u64 {
    let start = status(process).map_or(0, |status| start_part(status.start));
    let space = namespace().map_or(0, |space| part(space, SPACE_SHIFT, SPACE));
    process | space | start | boot().map_or(0, |boot| part(boot, BOOT_SHIFT, BOOT))
}

fn start_part(start: u64) -> u64 {
    part(start, START_SHIFT, START)
}

/// Makes a part of a known value. It is not 0, which means unknown.
fn part(value: u64, shift: u32, mask: u64) -> u64 {
    let part = value << shift & mask;
    if part == 0 { 1 << shift } else { part }
}

/// Returns whether the system knows that there is no such process.
fn is_gone(process: u64) -> bool {
    let number = libc::pid_t::try_from(process).unwrap_or(0);
    errno::keeping(|| {
        // SAFETY: signal 0 is not sent, only the process is looked for.
        let is_refused = unsafe { libc::kill(number, 0) } != 0;
        is_refused && errno::get() == libc::ESRCH
    })
}

/// What `/proc` says of a process.
struct Status {
    /// It has ended, and its parent has not noticed yet.
    is_dead: bool,
    /// How many threads it has.
    threads: u64,
    /// When it began, in ticks since the system's start.
    start: u64,
}

fn status(process: u64) -> Option<Status> {
    let mut path = [0; 40];
    let path = path_of(process, &mut path)?;
    let mut text = [0; 1024];
    parse(read(path, &mut text)?)
}

/// Reads a line of `/proc/PID/stat`. The name of the program, in parentheses, may hold anything.
fn parse(line: &[u8]) -> Option<Status> {
    let end = line.iter().rposition(|&byte| byte == b')')?;
    let mut fields = line.get(end + 1..)?.split(|&byte| byte == b' ').filter(|one| !one.is_empty());
    let state = fields.next()?;
    let threads = number(fields.nth(16)?)?;
    let start = number(fields.nth(1)?)?;
    // A first thread that has ended looks the same while others go on.
    let is_dead = matches!(state, b"Z" | b"X") && threads <= 1;
    Some(Status { is_dead, threads, start })
}

fn number(digits: &[u8]) -> Option<u64> {
    core::str::from_utf8(digits).ok()?.trim_ascii_end().parse().ok()
}

/// Makes the path `/proc/PID/stat`.
fn path_of(process: u64, into: &mut [u8; 40]) -> Option<&CStr> {
    let mut line = Line::new();
    line.text(b"/proc/").decimal(process as usize).text(b"/stat\0");
    let text = line.get();
    into.get_mut(..text.len())?.copy_from_slice(text);
    CStr::from_bytes_until_nul(into).ok()
}

/// Returns a number of the system's start.
fn boot() -> Option<u64> {
    let mut text = [0; 64];
    let path = c"/proc/sys/kernel/random/boot_id";
    let text = read(path, &mut text).filter(|text| !text.is_empty())?;
    // FNV-1a, so that each letter counts.
    let hash = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    let hash = text.iter().fold(0xcbf2_9ce4_8422_2325, hash);
    Some(hash >> (64 - 12))
}

/// Returns a number of the namespaces in which processes are seen: that of their numbers, and that
/// of clocks, because in another one all processes seem to begin at other times.
fn namespace() -> Option<u64> {
    let processes = inode_of(own_files::NAMESPACE)?;
    Some(part_of_namespaces(processes, inode_of(own_files::CLOCKS)))
}

/// Returns a number of nine bits. Where clocks are those of the system, it is the one that versions
/// computed which did not know of clocks.
fn part_of_namespaces(processes: u64, clocks: Option<u64>) -> u64 {
    /// The inode of the first namespace of clocks, in each kernel that has any.
    const FIRST: u64 = 0xefff_fffa;
    /// An odd number without structure: the golden ratio.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let clocks = clocks.filter(|clocks| *clocks != FIRST).unwrap_or(0);
    let mixed = processes ^ clocks.wrapping_mul(FACTOR).rotate_left(32);
    mixed.wrapping_mul(FACTOR) >> (64 - 9)
}

/// Returns the inode of the first of these files that can be looked at.
fn inode_of(paths: [&CStr; 2]) -> Option<u64> {
    let mut status = MaybeUninit::<libc::stat>::zeroed();
    let mut is_told = |path: &CStr| {
        // SAFETY: the path is a string of C, and the status is writable.
        errno::keeping(|| unsafe { libc::stat(path.as_ptr(), status.as_mut_ptr()) }) == 0
    };
    let is_told = paths.into_iter().any(&mut is_told);
    // SAFETY: all bytes are zeros, or what the system wrote.
    let inode = unsafe { status.assume_init() }.st_ino;
    is_told.then_some(inode)
}

/// Reads the start of a file.
fn read<'a>(path: &CStr, into: &'a mut [u8]) -> Option<&'a [u8]> {
    let length = errno::keeping(|| {
        let file = system_calls::open(path, libc::O_RDONLY | libc::O_CLOEXEC, 0);
        if file < 0 {
            return None;
        }
        let length = system_calls::read(file, into);
        system_calls::close(file);
        usize::try_from(length).ok()
    })?;
    into.get(..length)
}

/// Numbers that processes with the process number of this one would have elsewhere.
#[cfg(test)]
mod testing {
    use super::*;

    pub(crate) fn of_another_boot() -> u64 {
        with_another(BOOT)
    }

    pub(crate) fn of_another_space() -> u64 {
        with_another(SPACE)
    }

    pub(super) fn with_another(mask: u64) -> u64 {
        let shift = mask.trailing_zeros();
        own() & !mask | part((own() & mask) >> shift ^ 1 << 3, shift, mask)
    }
}

#[cfg(test)]
pub(crate) use testing::{of_another_boot, of_another_space};

#[cfg(test)]
mod tests {
    use super::testing::with_another;
    use super::*;
    use core::ffi::c_int;
    use std::process::{Command, Stdio};
    use std::vec::Vec;

    #[test]
    fn this_process_is_alive_and_keeps_its_number() {
        assert_eq!(own(), own());
        assert_eq!(own() & NUMBER, u64::from(std::process::id()));
        assert!(is_alive(own()));
    }

    #[test]
    fn a_process_that_has_ended_is_not_alive_before_and_after_its_parent_notices() {
        let sleeps = Command::new("sleep").arg("1000").stdout(Stdio::null()).spawn();
        let mut child = sleeps.expect("the program sleep");
        let number = compute(u64::from(child.id()));
        assert!(is_alive(number));
        child.kill().expect("a child");
        while is_alive(number) {
            std::thread::yield_now();
        }
        child.wait().expect("a child");
        assert!(!is_alive(number));
    }

    #[test]
    fn another_start_and_another_boot_are_another_process() {
        assert!(!is_alive(with_another(START)));
        assert!(!is_alive(with_another(BOOT)));
        assert!(is_alive(with_another(SPACE)));
        assert!(!is_alive(own() & !NUMBER));
        assert!([START, BOOT, SPACE].map(with_another).iter().all(|other| !is_same(*other, own())));
    }

    #[test]
    fn what_is_not_known_says_nothing() {
        for unknown in [SPACE, START, BOOT, SPACE | START | BOOT] {
            assert!(is_alive(own() & !unknown) && is_same(own(), own() & !unknown));
        }
        // Process 1 exists.
        assert!(is_alive(own() & !(NUMBER | START) | 1));
        // No process has the greatest number.
        assert!(!is_alive(NUMBER));
        assert!(part(1 << 20, START_SHIFT, START) != 0 && part(0, SPACE_SHIFT, SPACE) != 0);
    }

    #[test]
    fn a_process_of_another_namespace_is_not_seen() {
        assert!(is_seen(own()) && !is_seen(with_another(SPACE)) && !is_seen(with_another(BOOT)));
        assert!(is_seen(own() & !(BOOT | SPACE)) && !is_seen(own() & !START));
        assert!(!is_seen(1) && !is_seen(NUMBER));
    }

    #[test]
    fn other_threads_are_noticed() {
        std::thread::scope(|scope| {
            let another = scope.spawn(std::thread::park);
            assert!(!is_only_thread());
            another.thread().unpark();
        });
        // SAFETY: the child makes only calls of the system.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: the child ends.
            unsafe { libc::_exit(c_int::from(!is_only_thread())) };
        }
        let mut status = 1;
        // SAFETY: the status is writable.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
    }

    #[test]
    fn other_clocks_are_another_namespace() {
        let part = |clocks| part_of_namespaces(0xefff_fffc, clocks);
        // As versions computed it that did not look at clocks.
        let before = 0xefff_fffc_u64.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - 9);
        assert_eq!([part(None), part(Some(0xefff_fffa))], [before, before]);
        let others: Vec<u64> =
            (0xf000_0000..0xf000_0100).map(|clocks| part(Some(clocks))).collect();
        // Each has the number of the first one by chance, one in 512.
        assert!(others.iter().filter(|other| **other == before).count() <= 4);
        assert!(others.iter().all(|other| *other < 512));
    }

    /// There `/proc` says that processes began at other times.
    #[test]
    fn a_process_is_not_taken_for_dead_where_clocks_differ() {
        let parent = own();
        // SAFETY: the child makes only calls of the system.
        let child = unsafe { libc::fork() };
        assert!(child >= 0);
        if child == 0 {
            // SAFETY: the child ends.
            unsafe { libc::_exit(with_other_clocks(parent)) };
        }
        let mut status = 0;
        // SAFETY: the status is writable.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        match libc::WEXITSTATUS(status) {
            2 => std::eprintln!("not tried: this process may not make a namespace of clocks"),
            code => assert_eq!((libc::WIFEXITED(status), code), (true, 0)),
        }
    }

    /// Returns 0 if a process with other clocks knows that one is alive, 2 if there can be none.
    fn with_other_clocks(owner: u64) -> c_int {
        // SAFETY: the process has one thread.
        if unsafe { libc::unshare(libc::CLONE_NEWTIME) } != 0 {
            return 2;
        }
        let offsets = c"/proc/self/timens_offsets";
        let file = system_calls::open(offsets, libc::O_WRONLY | libc::O_CLOEXEC, 0);
        let text = b"boottime 5000 0\n";
        // SAFETY: the text has so many bytes.
        if unsafe { libc::write(file, text.as_ptr().cast(), text.len()) } < 0 {
            return 2;
        }
        // SAFETY: the child makes only calls of the system.
        let child = unsafe { libc::fork() };
        if child == 0 {
            note();
            let is_right = is_alive(owner) && !is_seen(owner) && !is_same(owner, own());
            // SAFETY: the child ends.
            unsafe { libc::_exit(c_int::from(!is_right)) };
        }
        let mut status = 0;
        // SAFETY: the status is writable.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        libc::WEXITSTATUS(status)
    }

    /// A process that has no descriptor left cannot read `/proc`.
    #[test]
    fn without_a_descriptor_processes_are_alive_and_the_number_gets_its_parts_later() {
        let parent = own();
        // SAFETY: the child makes only calls of the system.
        let child = unsafe { libc::fork() };
        assert!(child >= 0);
        if child == 0 {
            note();
            let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: the limit is writable.
            unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
            let none = libc::rlimit { rlim_cur: 0, ..limit };
            // SAFETY: the limit is readable.
            unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const none) };
            let few = own();
            let is_incomplete = few & (START | BOOT) == 0 && is_alive(few) && is_alive(parent);
            // SAFETY: the limit is readable.
            unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
            let is_complete = own() & START != 0 && own() & BOOT == parent & BOOT;
            let is_right = is_incomplete && is_complete && is_same(few, own()) && is_alive(few);
            // SAFETY: the child ends.
            unsafe { libc::_exit(c_int::from(!is_right)) };
        }
        let mut status = 0;
        // SAFETY: the status is writable.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
    }

    #[test]
    fn a_program_may_have_any_name() {
        let line = |state: &str, threads: u32| {
            std::format!(
                "7 (a) b (c) {state} 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 {threads} 0 4711 8 9\n"
            )
        };
        let parsed = |line: std::string::String| {
            let status = parse(line.as_bytes()).unwrap();
            (status.is_dead, status.start)
        };
        assert_eq!(parsed(line("S", 1)), (false, 4711));
        assert_eq!(parsed(line("Z", 1)), (true, 4711));
        assert_eq!(parsed(line("Z", 2)), (false, 4711));
        assert!(parse(b"7 (a").is_none());
        assert!(parse(b"7 (a) S 1 2").is_none());
    }
}
