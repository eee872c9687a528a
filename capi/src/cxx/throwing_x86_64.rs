//! The throwing forms of `operator new`, and what all forms do when there is no memory, for x86-64.
//! [`exceptions`](super::exceptions) explains why this is assembly.
use super::exceptions::{again, cannot_throw, catch_all_table};
use super::forms::{NEW, NEW_ALIGNED};
use super::programs::{New, known};
use super::runtime::{find, place};
use super::{aligned_array, aligned_single, array, single};
use core::arch::naked_asm;
use core::ffi::c_void;

/// Instructions that go on in the program's function for a form, if there is one.
macro_rules! calls_program {
    () => {
        "cmp qword ptr [rip + {form}], 0
         je 3f
         push rdi
         .cfi_adjust_cfa_offset 8
         push rsi
         .cfi_adjust_cfa_offset 8
         sub rsp, 8
         .cfi_adjust_cfa_offset 8
         lea rdi, [rip + {form}]
         call {known}
         add rsp, 8
         .cfi_adjust_cfa_offset -8
         pop rsi
         .cfi_adjust_cfa_offset -8
         pop rdi
         .cfi_adjust_cfa_offset -8
         test rax, rax
         je 3f
         jmp rax
         3:"
    };
}

/// Defines a throwing `operator new(size_t)`. `$first` are instructions before all others.
macro_rules! throwing_new {
    ($($name:ident = $allocate:ident ($first:expr $(, $form:ident)?))*) => {$(
        /// `operator new`: returns a block, or throws `std::bad_alloc`.
        #[unsafe(no_mangle)]
        #[unsafe(link_section = "lumalloc_entries")]
        #[unsafe(naked)]
        #[allow(non_snake_case, reason = "the mangled name")]
        pub extern "C" fn $name(size: usize) -> *mut c_void {
            naked_asm!(
                ".cfi_startproc",
                $first,
                "push rdi",
                ".cfi_adjust_cfa_offset 8",
                "call {allocate}",
                "pop rdi",
                ".cfi_adjust_cfa_offset -8",
                "test rax, rax",
                "jz 2f",
                "ret",
                "2: mov esi, 1",
                "jmp {no_memory}",
                ".cfi_endproc",
                allocate = sym $allocate,
                no_memory = sym no_memory_throwing,
                $(form = sym $form, known = sym known,)?
            )
        }
    )*};
}
throwing_new! {
    _Znwm = single ("")
    _Znam = array (calls_program!(), NEW)
}

/// Defines a throwing `operator new(size_t, align_val_t)`, as [`throwing_new`] does.
macro_rules! throwing_aligned_new {
    ($($name:ident = $allocate:ident ($first:expr $(, $form:ident)?))*) => {$(
        /// Aligned `operator new`: returns a block, or throws `std::bad_alloc`.
        #[unsafe(no_mangle)]
        #[unsafe(link_section = "lumalloc_entries")]
        #[unsafe(naked)]
        #[allow(non_snake_case, reason = "the mangled name")]
        pub extern "C" fn $name(size: usize, alignment: usize) -> *mut c_void {
            naked_asm!(
                ".cfi_startproc",
                $first,
                "push rdi",
                ".cfi_adjust_cfa_offset 8",
                "push rsi",
                ".cfi_adjust_cfa_offset 8",
                "sub rsp, 8",
                ".cfi_adjust_cfa_offset 8",
                "call {allocate}",
                "add rsp, 8",
                ".cfi_adjust_cfa_offset -8",
                "pop rsi",
                ".cfi_adjust_cfa_offset -8",
                "pop rdi",
                ".cfi_adjust_cfa_offset -8",
                "test rax, rax",
                "jz {no_memory}",
                "ret",
                ".cfi_endproc",
                allocate = sym $allocate,
                no_memory = sym no_memory_throwing,
                $(form = sym $form, known = sym known,)?
            )
        }
    )*};
}
throwing_aligned_new! {
    _ZnwmSt11align_val_t = aligned_single ("")
    _ZnamSt11align_val_t = aligned_array (calls_program!(), NEW_ALIGNED)
}

/// The loop over the new-handler. `$on_no_handler` is the code for when no handler is installed.
macro_rules! handler_loop {
    ($before:literal, $on_no_handler:expr, $tail:expr, $($argument:tt)*) => {
        naked_asm!(
            ".cfi_startproc",
            $before,
            "push rbx",
            ".cfi_adjust_cfa_offset 8",
            ".cfi_rel_offset rbx, 0",
            "push r12",
            ".cfi_adjust_cfa_offset 8",
            ".cfi_rel_offset r12, 0",
            "sub rsp, 8",
            ".cfi_adjust_cfa_offset 8",
            "mov rbx, rdi",
            "mov r12, rsi",
            "call {find}",
            // An alignment that is no power of two: no memory would help, so no handler is called.
            "lea rax, [r12 - 1]",
            "test r12, r12",
            "jz 4f",
            "test rax, r12",
            "jnz 4f",
            concat!("2: mov rax, qword ptr [rip + ", place!(get_new_handler), "]"),
            "test rax, rax",
            "jz 4f",
            "call rax",
            "test rax, rax",
            "jz 4f",
            "5: call rax",
            "6: mov rdi, rbx",
            "mov rsi, r12",
            "call {again}",
            "test rax, rax",
            "jz 2b",
            "3: add rsp, 8",
            ".cfi_remember_state",
            ".cfi_adjust_cfa_offset -8",
            "pop r12",
            ".cfi_adjust_cfa_offset -8",
            ".cfi_restore r12",
            "pop rbx",
            ".cfi_adjust_cfa_offset -8",
            ".cfi_restore rbx",
            "ret",
            ".cfi_restore_state",
            $on_no_handler,
            "8:",
            ".cfi_endproc",
            $tail,
            find = sym find,
            again = sym again,
            $($argument)*
        )
    };
}

/// What a throwing form does when there is no memory.
#[unsafe(naked)]
pub(crate) extern "C" fn no_memory_throwing(size: usize, alignment: usize) -> *mut c_void {
    handler_loop!(
        "",
        concat!("4: mov rax, qword ptr [rip + ", place!(throw_bad_alloc), "]
            test rax, rax
            jz 7f
            call rax
         7: call {cannot_throw}
            ud2"),
        "",
        cannot_throw = sym cannot_throw,
    )
}

/// What a nothrow form does when there is no memory.
#[unsafe(naked)]
pub(crate) extern "C" fn no_memory_nothrow(size: usize, alignment: usize) -> *mut c_void {
    handler_loop!(
        // DW_EH_PE_indirect|pcrel|sdata4: a pointer to the personality; pcrel|sdata4: the table
        // below.
        ".cfi_personality 0x9b, lumalloc_personality
         .cfi_lsda 0x1b, .Llumalloc_nothrow_table
         10:",
        concat!(
            "4: xor eax, eax
            jmp 3b
         9: mov rdi, rax // landing pad: the exception
            call qword ptr [rip + ",
            place!(begin_catch),
            "]
            call qword ptr [rip + ",
            place!(end_catch),
            "]
            jmp 4b"
        ),
        catch_all_table!(".Llumalloc_nothrow_table"),
    )
}

/// Calls a form of `new` of the program. Returns NULL instead of what it throws.
#[unsafe(naked)]
pub(crate) extern "C" fn caught(size: usize, alignment: usize, new: New) -> *mut c_void {
    naked_asm!(
        ".cfi_startproc",
        // As in `no_memory_nothrow`.
        ".cfi_personality 0x9b, lumalloc_personality",
        ".cfi_lsda 0x1b, .Llumalloc_caught_table",
        "10: sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "5: call rdx",
        "6: add rsp, 8",
        ".cfi_remember_state",
        ".cfi_adjust_cfa_offset -8",
        "ret",
        ".cfi_restore_state",
        "9: mov rdi, rax // landing pad: the exception",
        concat!("call qword ptr [rip + ", place!(begin_catch), "]"),
        concat!("call qword ptr [rip + ", place!(end_catch), "]"),
        "xor eax, eax",
        "jmp 6b",
        ".cfi_endproc",
        catch_all_table!(".Llumalloc_caught_table"),
    )
}
