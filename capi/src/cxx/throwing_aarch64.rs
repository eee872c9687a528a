//! The throwing forms of `operator new`, and what all forms do when there is no memory, for
//! AArch64. [`exceptions`](super::exceptions) explains why this is assembly.
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
        "adrp x16, {form}
         ldr x16, [x16, :lo12:{form}]
         cbz x16, 3f
         stp x29, x30, [sp, #-32]!
         .cfi_adjust_cfa_offset 32
         .cfi_offset x29, -32
         .cfi_offset x30, -24
         mov x29, sp
         stp x0, x1, [sp, #16]
         adrp x0, {form}
         add x0, x0, :lo12:{form}
         bl {known}
         mov x16, x0
         ldp x0, x1, [sp, #16]
         ldp x29, x30, [sp], #32
         .cfi_adjust_cfa_offset -32
         .cfi_restore x29
         .cfi_restore x30
         cbz x16, 3f
         br x16
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
                "hint #34", // bti c
                $first,
                "stp x29, x30, [sp, #-32]!",
                ".cfi_adjust_cfa_offset 32",
                ".cfi_offset x29, -32",
                ".cfi_offset x30, -24",
                "mov x29, sp",
                "str x0, [sp, #16]",
                "bl {allocate}",
                "ldr x2, [sp, #16]",
                "ldp x29, x30, [sp], #32",
                ".cfi_adjust_cfa_offset -32",
                ".cfi_restore x29",
                ".cfi_restore x30",
                "cbz x0, 2f",
                "ret",
                "2: mov x0, x2",
                "mov x1, #1",
                "b {no_memory}",
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
                "hint #34", // bti c
                $first,
                "stp x29, x30, [sp, #-32]!",
                ".cfi_adjust_cfa_offset 32",
                ".cfi_offset x29, -32",
                ".cfi_offset x30, -24",
                "mov x29, sp",
                "stp x0, x1, [sp, #16]",
                "bl {allocate}",
                "ldp x2, x1, [sp, #16]",
                "ldp x29, x30, [sp], #32",
                ".cfi_adjust_cfa_offset -32",
                ".cfi_restore x29",
                ".cfi_restore x30",
                "cbz x0, 2f",
                "ret",
                "2: mov x0, x2",
                "b {no_memory}",
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

/// Loads a function of the C++ runtime to `x8`.
macro_rules! load {
    ($name:ident) => {
        concat!("adrp x8, ", place!($name), "\n ldr x8, [x8, :lo12:", place!($name), "]")
    };
}

/// The loop over the new-handler. `$on_no_handler` is the code for when no handler is installed.
macro_rules! handler_loop {
    ($before:literal, $on_no_handler:expr, $tail:expr, $($argument:tt)*) => {
        naked_asm!(
            ".cfi_startproc",
            $before,
            "stp x29, x30, [sp, #-32]!",
            ".cfi_adjust_cfa_offset 32",
            ".cfi_offset x29, -32",
            ".cfi_offset x30, -24",
            "mov x29, sp",
            "stp x19, x20, [sp, #16]",
            ".cfi_offset x19, -16",
            ".cfi_offset x20, -8",
            "mov x19, x0",
            "mov x20, x1",
            "bl {find}",
            // An alignment that is no power of two: no memory would help, so no handler is called.
            "cbz x20, 4f",
            "sub x8, x20, #1",
            "tst x20, x8",
            "b.ne 4f",
            "2:",
            load!(get_new_handler),
            "cbz x8, 4f",
            "blr x8",
            "cbz x0, 4f",
            "5: blr x0",
            "6: mov x0, x19",
            "mov x1, x20",
            "bl {again}",
            "cbz x0, 2b",
            "3: ldp x19, x20, [sp, #16]",
            "ldp x29, x30, [sp], #32",
            ".cfi_remember_state",
            ".cfi_adjust_cfa_offset -32",
            ".cfi_restore x19",
            ".cfi_restore x20",
            ".cfi_restore x29",
            ".cfi_restore x30",
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
        concat!("4: ", load!(throw_bad_alloc), "
            cbz x8, 7f
            blr x8
         7: bl {cannot_throw}
            brk #1"),
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
            "4: mov x0, xzr
            b 3b
         9: // landing pad: the exception is in x0
            ",
            load!(begin_catch),
            "
            blr x8
            ",
            load!(end_catch),
            "
            blr x8
            b 4b"
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
        "10: stp x29, x30, [sp, #-16]!",
        ".cfi_adjust_cfa_offset 16",
        ".cfi_offset x29, -16",
        ".cfi_offset x30, -8",
        "mov x29, sp",
        "5: blr x2",
        "6: ldp x29, x30, [sp], #16",
        ".cfi_remember_state",
        ".cfi_adjust_cfa_offset -16",
        ".cfi_restore x29",
        ".cfi_restore x30",
        "ret",
        ".cfi_restore_state",
        "9:", // landing pad: the exception is in x0
        load!(begin_catch),
        "blr x8",
        load!(end_catch),
        "blr x8",
        "mov x0, xzr",
        "b 6b",
        ".cfi_endproc",
        catch_all_table!(".Llumalloc_caught_table"),
    )
}
