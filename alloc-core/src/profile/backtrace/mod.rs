//! The return addresses of a thread's callers, without locks and without allocation.
//!
//! ```text
//!   registers ──▶ rule of the address ──▶ registers of the caller ──▶ …
//!                   │ rule table: one look
//!                   └ else the unwind tables, once for each address of a module that stays
//! ```
//! The unwind tables (`.eh_frame`) are right for code with and without frame pointers. Code without
//! tables, such as code that a program compiles while it runs, is followed by its frame pointer.
//! From there on the system is asked whether the stack can be read. Code that is not in the tables
//! of its module is followed so only behind a call: else a coroutine begins there.
//!
//! Rules are kept only of modules that are never unloaded: those that were loaded with the program.
//! After `dlclose` another module may have the same addresses, and the C library tells nobody of it
//! without a lock.

mod cursor;
mod checked;
mod machine;
mod rule;
mod callers;
mod last_walk;
mod frame_program;
mod modules;
mod tables;
mod code_place;
pub(crate) mod messages;

use crate::ground::os;
use callers::Callers;
#[cfg(test)]
pub(crate) use checked::testing as depths;
use checked::{Checked, LONG_FRAME};
pub use code_place::CodePlace;
pub(crate) use code_place::code_place;
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use last_walk::Known;
use machine::{FRAME_WORDS, LONGEST_CALL, Registers, ends_in_call, stripped};
pub(crate) use modules::Heap;
use modules::Module;
use rule::{Base, Packed, Plain, Rule, RuleTable, Step, WORD};

/// Return addresses whose rules are kept. The table is part of the library's addresses, which count
/// where a user may lock little memory.
const RULES: usize = 8192;
/// How many frames of the allocator there may be.
pub(crate) const MOST_OWN: usize = 24;
/// The longest stack that a walk goes through, own frames included.
pub(crate) const DEEPEST: usize = 512;
/// A frame with more bytes is not followed at all.
const LONGEST_FRAME: usize = 64 << 20;

/// Writes at most as many return addresses of the callers as it is told, the innermost first, and
/// returns how many. The shape of backtrace(3).
pub type Unwinder = unsafe extern "C" fn(*mut *mut c_void, c_int) -> c_int;

static TABLE: RuleTable<RULES> = RuleTable::new();

/// Where the section of the functions that inlined code calls begins and ends. Their attribute is
/// `link_section = "lumalloc_entries"`. A stack begins with the caller of the outermost of them. A
/// program that calls none of them has no such section, and the range is empty.
fn entries() -> Range<usize> {
    let (start, stop): (usize, usize);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: forms two addresses, which the linker defines for each such section.
    unsafe {
        core::arch::asm!(
            ".weak __start_lumalloc_entries",
            ".hidden __start_lumalloc_entries",
            ".weak __stop_lumalloc_entries",
            ".hidden __stop_lumalloc_entries",
            "lea {start}, [rip + __start_lumalloc_entries]",
            "lea {stop}, [rip + __stop_lumalloc_entries]",
            start = out(reg) start,
            stop = out(reg) stop,
            options(nomem, nostack, preserves_flags),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        core::arch::asm!(
            ".weak __start_lumalloc_entries",
            ".hidden __start_lumalloc_entries",
            ".weak __stop_lumalloc_entries",
            ".hidden __stop_lumalloc_entries",
            "adrp {start}, __start_lumalloc_entries",
            "add {start}, {start}, :lo12:__start_lumalloc_entries",
            "adrp {stop}, __stop_lumalloc_entries",
            "add {stop}, {stop}, :lo12:__stop_lumalloc_entries",
            start = out(reg) start,
            stop = out(reg) stop,
            options(nomem, nostack, preserves_flags),
        );
    }
    start..stop
}

/// Keeps the frame of the calling function of that section on the stack until here. Without it, a
/// last call would be a jump, which leaves no frame.
#[inline(always)]
pub(crate) fn keep_frame() {
    // SAFETY: no instruction.
    unsafe { core::arch::asm!("", options(nomem, nostack, preserves_flags)) };
}

/// The module of the allocator, if it is a shared object of its own. Else 0.
static OWN_MODULE: AtomicUsize = AtomicUsize::new(0);

/// Notes that all code of this module is the allocator's, unless the module is the program, and
/// which modules were loaded with the program. Called once, when the library is loaded.
pub(crate) fn own_module(heap: Heap) {
    modules::begin();
    modules::note_start(heap);
    // SAFETY: the system hands this number to every process.
    let program = modules::find(unsafe { libc::getauxval(libc::AT_ENTRY) } as usize);
    let own = modules::find(own_module as *const () as usize);
    if let (Some(own), Some(program)) = (own, program)
        && own.begin != program.begin
    {
        OWN_MODULE.store(own.begin, Relaxed);
        TABLE.clear();
        last_walk::forget();
    }
}

/// Notes that the calling thread begins. Called before the first walk through its stack.
pub(crate) fn begin_thread() {
    checked::forget_depth();
}

/// Returns the first address of the module that contains an address, or `None` if none does.
pub(crate) fn module_begin(address: usize) -> Option<usize> {
    modules::find(address).map(|module| module.begin)
}

/// Returns room for return addresses, which is not cleared: that takes part of a sample's time.
pub(crate) const fn room<const N: usize>() -> [MaybeUninit<usize>; N] {
    [const { MaybeUninit::uninit() }; N]
}

/// What the program called.
#[derive(Clone, Copy)]
pub(crate) enum Call {
    Allocation,
    Free,
}

/// Returns at most `most` return addresses of the calling thread's callers, the innermost first,
/// without the allocator's own frames. `stack` must have room for own frames too ([`MOST_OWN`]),
/// which come first.
#[inline(never)]
pub(crate) fn take(stack: &mut [MaybeUninit<usize>], most: usize, call: Call) -> &mut [usize] {
    let (here, callers) = (Registers::here(), Callers::new(stack, most));
    match Known::of_thread(call, here.stack) {
        Some(known) => walk_with(known, here, callers).found(),
        None => walk_from(here, callers).found(),
    }
}

/// As [`take`], but returns none if no frame of the allocator is on the stack.
#[inline(never)]
pub(crate) fn take_of_calls(stack: &mut [MaybeUninit<usize>], most: usize) -> &mut [usize] {
    let callers = walk_from(Registers::here(), Callers::new(stack, most));
    if callers.has_own { callers.found() } else { &mut [] }
}

#[inline(always)]
fn walk_from(mut at: Registers, mut callers: Callers<'_>) -> Callers<'_> {
    let mut checked = Checked::new(at.stack);
    let mut place = 0;
    // A return address of 0 or 1 is none.
    while at.back > 1 {
        let known = TABLE.get_next(&mut place, at.back);
        let rule = known.unwrap_or_else(|| new_rule_of(at.back));
        if !callers.see(at.back, rule.is_own()) {
            break;
        }
        let plain = rule.plain().and_then(|step| follow_plain(&at, step, checked.end));
        let Some(next) = plain.or_else(|| caller(&at, rule, &mut checked)) else { break };
        at = next;
    }
    callers
}

/// As [`walk_from`], with what is known of a walk before.
#[inline(always)]
fn walk_with(mut known: Known, mut at: Registers, mut callers: Callers<'_>) -> Callers<'_> {
    let mut checked = Checked::new(at.stack);
    let mut place = 0;
    while at.back > 1 {
        let is_known = known.has(&at, checked.end);
        if is_known {
            let Some(last) = known.follow(at.frame, &mut callers) else { break };
            at = last;
        }
        let kept = TABLE.get_next(&mut place, at.back);
        let rule = kept.unwrap_or_else(|| new_rule_of(at.back));
        let is_wanted = is_known || callers.see(at.back, rule.is_own());
        let plain = rule.plain().filter(|_| is_wanted);
        let next = plain.and_then(|step| follow_plain(&at, step, checked.end));
        // Rules that are not kept may be others the next time.
        if kept.is_some() {
            known.note(&at, rule, next);
        }
        if !is_wanted {
            break;
        }
        let Some(next) = next.or_else(|| caller(&at, rule, &mut checked)) else { break };
        at = next;
    }
    known.end();
    callers
}

/// As [`take`], but takes the return addresses as `unwind` finds them.
///
/// # Safety
/// `unwind` must write no more addresses than it is told, and return how many.
#[inline(never)]
pub(crate) unsafe fn take_by(
    unwind: Unwinder,
    stack: &mut [MaybeUninit<usize>],
    most: usize,
) -> &mut [usize] {
    let mut found = [core::ptr::null_mut::<c_void>(); DEEPEST];
    // SAFETY: there is room for so many.
    let count = unsafe { unwind(found.as_mut_ptr(), DEEPEST as c_int) };
    let mut callers = Callers::new(stack, most);
    let found = found.iter().take(count.max(0).cast_unsigned() as usize);
    for back in found.map(|back| back.addr()).take_while(|back| *back > 1) {
        if !callers.see(back, rule_of(back).is_own()) {
            break;
        }
    }
    callers.found()
}

/// Returns the registers of the caller, or `None` if there is none.
#[cold]
#[inline(never)]
fn caller(at: &Registers, rule: Packed, checked: &mut Checked) -> Option<Registers> {
    match rule.rule() {
        Rule::End => None,
        Rule::Unknown => by_frame_pointer(at, checked),
        Rule::Signal => interrupted(at, checked),
        Rule::Step(step) => follow(at, step, checked),
    }
}

fn rule_of(back: usize) -> Packed {
    TABLE.get(back).unwrap_or_else(|| new_rule_of(back))
}

#[cold]
#[inline(never)]
fn new_rule_of(back: usize) -> Packed {
    // Code may lie in no module now and in one later: a static program allocates before the C
    // library knows its modules.
    let Some((rule, stays)) = look_up(back) else { return Rule::Unknown.pack() };
    let rule = rule.pack();
    if stays {
        TABLE.put(back, rule);
    }
    rule
}

/// Finds the rule of a return address in the unwind tables, and whether it stays true. Returns
/// `None` if the address is in no module.
fn look_up(back: usize) -> Option<(Rule, bool)> {
    let call = back - 1;
    let module = modules::find(call)?;
    if module.tables == 0 {
        return Some((Rule::Unknown, module.stays));
    }
    // SAFETY: the module has code that runs, so it is not unloaded now.
    let rule = match unsafe { tables::find(module.tables, call) } {
        Some(found) => match found.rule {
            Rule::Step(step) => {
                Rule::Step(Step { is_own: is_own(&module, found.function), ..step })
            }
            other => other,
        },
        // Code such as V8's, which a compiler of its own has made, keeps the frame pointer.
        None if has_call_before(&module, back) => Rule::Unknown,
        None => Rule::End,
    };
    Some((rule, module.stays))
}

/// Returns whether a call may stand before a return address in a module. Before the code that
/// begins a coroutine stands none: nothing has called it, and the frame pointer is any number.
fn has_call_before(module: &Module, back: usize) -> bool {
    let begin = back.wrapping_sub(LONGEST_CALL);
    if begin < module.begin {
        return false;
    }
    let place = core::ptr::with_exposed_provenance::<[u8; LONGEST_CALL]>(begin);
    // Code may be such that it can be run only.
    // SAFETY: bytes of one segment of the module, which the system can read.
    !os::is_readable(begin) || ends_in_call(unsafe { place.read_unaligned() })
}

fn is_own(module: &Module, function: usize) -> bool {
    entries().contains(&function) || module.begin == OWN_MODULE.load(Relaxed)
}

/// As [`follow`], if the frame is short and below `end`. `None`: something else has to be checked.
#[inline(always)]
fn follow_plain(at: &Registers, step: Plain, end: usize) -> Option<Registers> {
    let stack = step.base(at.stack, at.frame).wrapping_add_signed(step.offset());
    let bytes = stack.wrapping_sub(at.stack);
    if bytes > LONG_FRAME || stack > end || !stack.is_multiple_of(size_of::<usize>()) {
        return None;
    }
    // The words of the frame are those from the stack pointer on.
    let above = core::ptr::with_exposed_provenance::<usize>(stack);
    let word = |offset: isize| {
        // As an offset of a pointer this is one instruction.
        let place = above.wrapping_offset(offset);
        // SAFETY: a word of a frame that has not returned, which only unwind tables have led to.
        (place.addr().wrapping_sub(at.stack) < bytes).then(|| unsafe { place.read_volatile() })
    };
    let frame = match step.frame() {
        Some(offset) => word(offset)?,
        None => at.frame,
    };
    Some(Registers { back: stripped(word(step.back())?), stack, frame })
}

fn follow(at: &Registers, step: Step, checked: &mut Checked) -> Option<Registers> {
    let base = match step.base {
        Base::Stack => at.stack,
        Base::Frame | Base::WordAtFrame | Base::WordAtLinkedFrame => at.frame,
    };
    let mut stack = base.wrapping_add_signed(step.offset as isize);
    if matches!(step.base, Base::WordAtFrame | Base::WordAtLinkedFrame) {
        stack = checked.word(at.stack, stack)?;
    }
    if !is_above(stack, at.stack) {
        return None;
    }
    let word = |offset: i16, checked: &mut Checked| {
        checked.word(at.stack, stack.wrapping_add_signed(isize::from(offset) * WORD))
    };
    let frame = match step.frame {
        Some(offset) => word(offset, checked)?,
        None if step.base == Base::WordAtLinkedFrame => checked.word(at.stack, at.frame)?,
        None => at.frame,
    };
    // Only a function that calls none has its return address in the link register.
    let back = stripped(word(step.back?, checked)?);
    Some(Registers { back, stack, frame })
}

/// Returns the registers of the code that a signal has interrupted, where its handler returns. The
/// handler may have a stack of its own.
#[cold]
#[inline(never)]
fn interrupted(at: &Registers, checked: &mut Checked) -> Option<Registers> {
    let [frame, stack, instruction] = machine::INTERRUPTED?;
    let mut word = |offset: usize| checked.word(at.stack, at.stack.wrapping_add(offset));
    let (frame, stack, instruction) = (word(frame)?, word(stack)?, word(instruction)?);
    if !is_above(stack, at.stack) {
        *checked = Checked::new(stack);
    }
    // One further, as if a call stood there.
    Some(Registers { back: instruction.wrapping_add(1), stack, frame })
}

/// Follows the chain of frame pointers.
#[cold]
#[inline(never)]
fn by_frame_pointer(at: &Registers, checked: &mut Checked) -> Option<Registers> {
    checked.end = 0;
    let stack = at.frame.wrapping_add(FRAME_WORDS * size_of::<usize>());
    if !is_above(stack, at.stack) {
        return None;
    }
    let frame = checked.word(at.stack, at.frame)?;
    let back = checked.word(at.stack, at.frame + size_of::<usize>())?;
    Some(Registers { back: stripped(back), stack, frame })
}

/// Returns whether a caller's stack pointer may be right.
fn is_above(stack: usize, before: usize) -> bool {
    stack.is_multiple_of(size_of::<usize>()) && stack > before && stack - before <= LONGEST_FRAME
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// As [`super::take`], which is called where this is, and returns how many.
    #[inline(always)]
    fn take(stack: &mut [usize], most: usize) -> usize {
        let mut room = room::<DEEPEST>();
        let found =
            super::take(room.get_mut(..stack.len()).expect("less room"), most, Call::Allocation);
        stack.iter_mut().zip(found.iter()).for_each(|(place, back)| *place = *back);
        found.len()
    }

    #[inline(never)]
    fn deep(depth: usize, stack: &mut [usize]) -> usize {
        if depth == 0 {
            return core::hint::black_box(take(stack, DEEPEST));
        }
        // The addition keeps this from being a jump.
        deep(depth - 1, stack) + core::hint::black_box(0)
    }

    #[test]
    fn a_stack_has_each_caller_once() {
        let mut stack = [0; DEEPEST];
        let shallow = deep(1, &mut stack);
        let inner = stack.get(1).copied().expect("the call in itself");
        let deeper = deep(41, &mut stack);
        assert_eq!(deeper, shallow + 40);
        let same = stack.iter().filter(|back| **back == inner).count();
        assert_eq!(same, 41);
        let function = deep as *const () as usize;
        assert!(stack.iter().take(42).all(|back| back.wrapping_sub(function) < 4096));
    }

    #[test]
    fn the_stack_of_a_thread_ends_where_the_thread_began() {
        let count =
            std::thread::spawn(|| take(&mut [0; DEEPEST], DEEPEST)).join().expect("a stack");
        assert!((3..40).contains(&count), "{count}");
    }

    #[cfg(target_arch = "x86_64")]
    static IN_HANDLER: [AtomicUsize; 64] = [const { AtomicUsize::new(0) }; 64];

    #[cfg(target_arch = "x86_64")]
    extern "C" fn handler(_: c_int) {
        let mut stack = [0; 64];
        let count = take(&mut stack, DEEPEST);
        let found = stack.iter().take(count);
        IN_HANDLER.iter().zip(found).for_each(|(place, back)| place.store(*back, Relaxed));
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(never)]
    fn interrupted_here() {
        // SAFETY: the signal has a handler.
        assert_eq!(core::hint::black_box(unsafe { libc::raise(libc::SIGUSR2) }), 0);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_stack_goes_on_behind_a_signal_handler() {
        let room = std::vec![0_u8; 64 << 10].leak();
        let other =
            libc::stack_t { ss_sp: room.as_mut_ptr().cast(), ss_flags: 0, ss_size: 64 << 10 };
        // SAFETY: the stack is this thread's and stays.
        assert_eq!(unsafe { libc::sigaltstack(&raw const other, core::ptr::null_mut()) }, 0);
        for flags in [0, libc::SA_ONSTACK] {
            // SAFETY: all-zero bytes are a valid value.
            let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
            (action.sa_sigaction, action.sa_flags) = (handler as *const () as usize, flags);
            // SAFETY: the handler takes the number of the signal.
            unsafe { libc::sigaction(libc::SIGUSR2, &raw const action, core::ptr::null_mut()) };
            IN_HANDLER.iter().for_each(|place| place.store(0, Relaxed));
            interrupted_here();
            let found: Vec<usize> = IN_HANDLER.iter().map(|place| place.load(Relaxed)).collect();
            let function = interrupted_here as *const () as usize;
            // The handler, which is the first, may lie right behind the function.
            let behind = found.iter().skip(3);
            let from = behind.skip_while(|back| back.wrapping_sub(function) >= 4096);
            assert!(from.take_while(|back| **back != 0).count() > 1, "{found:x?}");
        }
    }

    /// Code that a program compiles while it runs has no unwind tables.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn code_without_tables_is_followed_by_its_frame_pointer() {
        // push rbp; mov rbp, rsp; call rdi; pop rbp; ret
        const CODE: [u8; 8] = [0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3];
        const RETURN: usize = 6;
        static SEEN: [AtomicUsize; 64] = [const { AtomicUsize::new(0) }; 64];
        extern "C" fn called() {
            let mut stack = [0; 64];
            let count = take(&mut stack, DEEPEST);
            for (place, back) in SEEN.iter().zip(stack).take(count) {
                place.store(back, Relaxed);
            }
        }
        let (access, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON);
        let nothing = core::ptr::null_mut();
        // SAFETY: new memory, wherever there is room.
        let page = unsafe { libc::mmap(nothing, 4096, access, flags, -1, 0) };
        assert_ne!(page, libc::MAP_FAILED);
        // SAFETY: the page is writable and new.
        unsafe { page.cast::<[u8; 8]>().write(CODE) };
        // SAFETY: the page is this test's.
        assert_eq!(unsafe { libc::mprotect(page, 4096, libc::PROT_READ | libc::PROT_EXEC) }, 0);
        // SAFETY: the code is a function that calls its argument.
        let run: extern "C" fn(extern "C" fn()) = unsafe { core::mem::transmute(page) };
        run(called);
        let seen: Vec<usize> = SEEN.iter().map(|back| back.load(Relaxed)).collect();
        let at = seen.iter().position(|back| *back == page as usize + RETURN).expect("the code");
        let test = code_without_tables_is_followed_by_its_frame_pointer as *const () as usize;
        let caller = seen.get(at + 1).copied().expect("its caller");
        assert!(caller.wrapping_sub(test) < 4096, "{seen:x?}");
        assert!(seen.get(at + 3).is_some_and(|back| *back != 0), "and the callers of that");
    }

    /// The C library's code that begins such a coroutine is not in its tables. The frame pointer is
    /// that of the code that has made the coroutine.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_stack_of_a_coroutine_ends_where_it_begins() {
        static SEEN: [AtomicUsize; 64] = [const { AtomicUsize::new(0) }; 64];
        extern "C" fn coroutine() {
            let mut stack = [0; 64];
            let count = take(&mut stack, DEEPEST);
            SEEN.iter().zip(stack).take(count).for_each(|(place, back)| place.store(back, Relaxed));
        }
        let mut memory = std::vec![0_usize; 32 << 10];
        let (room, frame) = memory.split_at_mut((32 << 10) - 2);
        frame.copy_from_slice(&[0, the_stack_of_a_coroutine_ends_where_it_begins as fn() as usize]);
        // SAFETY: all-zero bytes are a valid value.
        let [mut own, mut other]: [libc::ucontext_t; 2] = unsafe { core::mem::zeroed() };
        // SAFETY: a place for the registers.
        assert_eq!(unsafe { libc::getcontext(&raw mut other) }, 0);
        other.uc_stack.ss_sp = room.as_mut_ptr().cast();
        other.uc_stack.ss_size = size_of_val(room);
        other.uc_link = &raw mut own;
        // SAFETY: the function takes no arguments, and its stack is this test's.
        unsafe { libc::makecontext(&raw mut other, coroutine, 0) };
        let pointer = other.uc_mcontext.gregs.get_mut(libc::REG_RBP as usize).expect("registers");
        *pointer = frame.as_ptr() as i64;
        // SAFETY: both were made above.
        assert_eq!(unsafe { libc::swapcontext(&raw mut own, &raw const other) }, 0);
        let seen: Vec<usize> = SEEN.iter().map(|back| back.load(Relaxed)).collect();
        let of_c = module_begin(libc::abort as *const () as usize);
        let at = seen.iter().position(|back| module_begin(*back) == of_c).expect("its begin");
        assert_eq!(seen.get(at + 1), Some(&0), "{seen:x?}");
    }

    #[test]
    fn no_more_is_written_than_there_is_room_for() {
        let mut short = [0; 3];
        assert_eq!(deep(10, &mut short), 3);
        let mut long = [0; DEEPEST];
        deep(10, &mut long);
        assert_eq!(short[1..], long[1..3], "the innermost ones");
        assert_eq!(take(&mut [], DEEPEST), 0);
    }

    #[test]
    fn rules_of_the_table_are_those_of_the_search() {
        let mut stack = [0; DEEPEST];
        let count = take(&mut stack, DEEPEST);
        let backs: Vec<usize> = stack.iter().take(count).copied().collect();
        for back in backs {
            assert_eq!(Some((rule_of(back).rule(), true)), look_up(back), "{back:#x}");
        }
    }

    #[test]
    fn nothing_is_read_behind_the_stack_or_where_a_frame_pointer_led() {
        let nothing = core::ptr::null_mut();
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
        let page = os::system_page();
        // SAFETY: new memory, wherever there is room.
        let place = unsafe { libc::mmap(nothing, 2 * page, libc::PROT_READ, flags, -1, 0) };
        assert_ne!(place, libc::MAP_FAILED);
        let (stack, end) = (place.expose_provenance(), place.expose_provenance() + page);
        let behind = core::ptr::with_exposed_provenance_mut(end);
        // SAFETY: the page is this test's.
        assert_eq!(unsafe { libc::mprotect(behind, page, libc::PROT_NONE) }, 0);
        let mut bounded = Checked { end, page: 0 };
        assert_eq!((bounded.word(stack, end - 8), bounded.word(stack, end)), (Some(0), None));
        let mut unsure = Checked { end: 0, page: 0 };
        assert_eq!((unsure.word(stack, end - 8), unsure.word(stack, end)), (Some(0), None));
    }

    #[test]
    fn the_end_of_a_stack_is_above_it() {
        let own_end = || {
            let stack = Registers::here().stack;
            let end = Checked::new(stack).end;
            assert!(end > stack && os::is_readable(end), "{end:#x} {stack:#x}");
            end
        };
        let end = own_end();
        assert_ne!(std::thread::spawn(own_end).join().expect("an end"), end);
    }
}
