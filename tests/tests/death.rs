//! Misuse and failure end in one exact line on standard error and SIGABRT.
//!
//! Each misuse is a child process (`tests/c/death_*.c`). The wording is an interface, because
//! people search for it. It stands here once, as templates of `lumalloc_tests::template`.

use std::path::Path;
use std::process::Output;

use lumalloc_tests::run::{ending, find_program};
use lumalloc_tests::template::{MAY_BE_OLDER, matches};
use lumalloc_tests::{Run, cc, scratch};

const CANARY: &str = "<lumalloc>: buffer overflow of {hex}: the canary behind its @ bytes was \
                      overwritten (size {n}, arena {n}{owner}){from}";
/// The message of each kind of misuse. `@` stands for the size in question.
const DOUBLE_FREE: &str = "<lumalloc>: double free of {hex} (size @, arena {n}{owner}){from}";
const LARGE_DOUBLE_FREE: &str = "<lumalloc>: double free of {hex} (arena {n}){from}";
const FOREIGN: &str = "<lumalloc>: invalid free of {hex}: not memory of this allocator{from}";
const FOREIGN_QUERY: &str =
    "<lumalloc>: invalid query of {hex}: not a block of this allocator{from}";
const INTERIOR: &str = "<lumalloc>: invalid free of {hex}: inside the block {hex} \
                        (size @, arena {n}{owner}){from}";
const INTERIOR_QUERY: &str = "<lumalloc>: invalid query of {hex}: inside the block {hex} \
                              (size @, arena {n}{owner}){from}";
const BETWEEN: &str = "<lumalloc>: buffer underflow of {hex}, or overflow of {hex}: the canary \
                       between them was overwritten (size @, arena {n}{owner}){from}";
const DELETE_OF_ARRAY: &str =
    "<lumalloc>: delete of {hex}, which new[] made (size {n}, arena {n}{owner}){from}";
const ARRAY_DELETE_OF_SINGLE: &str =
    "<lumalloc>: delete[] of {hex}, which new made (size {n}, arena {n}{owner}){from}";
const WRONG_SIZE: &str = "<lumalloc>: sized free of {hex} with size @, which is not its own \
                          (size {n}, arena {n}{owner}){from}";
const ABORT_CONF: &str = "<lumalloc>: Abort (abort_conf:true) on invalid conf value (see above).";
const ABORT: &str = "<lumalloc>: Abort (abort:true) on a warning (see above).";
const XMALLOC: &str = "<lumalloc>: out of memory: @ bytes (xmalloc:true){from}";

/// The variable in which the tests set their options.
const VARIABLE: &str = "LUMALLOC_CONF";

fn crime(source: &str, args: &[&str], conf: &str) -> Output {
    Run::preloaded(cc(source, &[])).args(args).conf(conf).output()
}

/// Checks that the child died by SIGABRT and printed exactly this one line.
fn assert_dies(output: &Output, template: &str, what: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    let how = ending(output.status);
    assert_eq!(how, "signal 6", "{what}: died otherwise, or survived (exit 42)\n{said}");
    let line = said.strip_suffix('\n').unwrap_or(&said);
    assert!(matches(template, line), "{what}:\nsaid     {line}\nexpected {template}");
}

fn with_size(template: &str, size: usize) -> String {
    template.replace('@', &size.to_string())
}

#[test]
fn double_free_of_a_small_block() {
    for who in ["own", "other", "both"] {
        for (size, class) in [("8", 8), ("64", 64), ("100", 112), ("3000", 3072), ("14336", 14336)]
        {
            let output = crime("death_double_free.c", &[size, who], "");
            let what = format!("{size} bytes freed twice by {who}");
            assert_dies(&output, &with_size(DOUBLE_FREE, class), &what);
        }
    }
}

/// The thread that finds the mistake holds locks. A handler that waited for them would never end.
#[test]
fn a_handler_of_the_signal_may_allocate_and_fork() {
    for conf in ["", "hardened:true", "guarded_sample:1", "prof:true,lg_prof_sample:0"] {
        for (size, place) in [
            ("16", "exit"),
            ("16", "flush"),
            ("16", "thread"),
            ("4096", "flush"),
            ("200000", "exit"),
            ("16", "busy"),
        ] {
            let program = cc("death_handler.c", &[]);
            let output = Run::preloaded(program).args([size, place]).conf(conf).output();
            let what = format!("{conf}: {size} bytes, found at {place}");
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(ending(output.status), "signal 6", "{what}\n{said}");
            assert!(
                said.contains("double free of ") && said.ends_with("\nhandled\n"),
                "{what}: {said}"
            );
            assert_eq!(String::from_utf8_lossy(&output.stdout), "reported\n", "{what}");
        }
    }
}

/// The hardened tier checks each free, whichever function is called.
#[test]
fn a_message_says_where_the_mistake_may_be_older_than_the_calls() {
    let said = |size: &str, conf: &str| {
        let output = crime("death_double_free.c", &[size, "own"], conf);
        String::from_utf8(output.stderr).expect("a text")
    };
    let small = said("64", "");
    assert!(small.ends_with(&format!("\n{MAY_BE_OLDER}\n")), "{small}");
    let others = [said("1048576", ""), said("64", "hardened:true")];
    for other in others {
        assert!(other.contains("double free") && !other.contains("may be older"), "{other}");
    }
}

#[test]
fn the_hardened_tier_dies_at_the_call() {
    for (size, class) in [("8", 16), ("24", 32), ("100", 112), ("3000", 3072), ("14000", 14336)] {
        let output = crime("death_modes.c", &["twice", size], "hardened:true");
        assert_dies(&output, &with_size(DOUBLE_FREE, class), &format!("{size} bytes freed twice"));
        let output = crime("death_modes.c", &["canary", size], "hardened:true");
        let requested: usize = size.parse().expect("a number");
        let template = with_size(CANARY, requested);
        // A canary that is overwritten does not tell how much of the block was requested.
        let expected = match requested + 8 == class {
            true => template.replace("behind its", "behind its at most"),
            false => template,
        };
        assert_dies(&output, &expected, &format!("{size} bytes overrun"));
    }
}

/// The hardened tier looks at the canary of the block before, too.
#[test]
fn a_write_before_a_block_ends_the_program_when_the_block_is_freed() {
    let sizes =
        [(8, 16), (24, 32), (100, 112), (1000, 1024), (3000, 3072), (4088, 4096), (14_000, 14_336)];
    for (size, class) in sizes {
        for conf in ["hardened:true", "hardened:true,tcache:false", "hardened:true,junk:true"] {
            for place in ["", " page"] {
                let way = format!("under {class}{place}");
                let output = crime("death_modes.c", &[&way, &size.to_string()], conf);
                assert_dies(&output, &with_size(BETWEEN, class), &format!("{way}, {size}, {conf}"));
            }
        }
    }
}

/// Each function that is told a size looks at it, in blocks of slabs and large ones.
#[test]
fn a_block_freed_with_the_size_of_another_class() {
    for function in ["free_sized", "free_aligned_sized", "sdallocx"] {
        for (size, told) in [("64", 256), ("256", 64), ("4096", 8192), ("1048576", 2_097_152)] {
            for conf in ["", "hardened:true"] {
                let output = crime("death_sized.c", &[function, size, &told.to_string()], conf);
                let what = format!("{function} of {size} bytes with {told}, {conf}");
                assert_dies(&output, &with_size(WRONG_SIZE, told), &what);
            }
        }
    }
}

/// In the hardened tier, in blocks of slabs and large ones, with one mode and with several.
#[test]
fn a_block_freed_by_another_operator_than_it_was_allocated_by() {
    const HARDENED: &str = "hardened:true";
    let ways = [
        ("delete", DELETE_OF_ARRAY),
        ("sized delete", DELETE_OF_ARRAY),
        ("aligned delete", DELETE_OF_ARRAY),
        ("delete[]", ARRAY_DELETE_OF_SINGLE),
        ("sized delete[]", ARRAY_DELETE_OF_SINGLE),
        ("nothrow delete[]", ARRAY_DELETE_OF_SINGLE),
    ];
    for size in ["1", "16", "4096", "32764", "1048576"] {
        for (by, message) in ways {
            for conf in [HARDENED, "hardened:true,tcache:false", "hardened:true,junk:true"] {
                let output = crime("death_operators.cc", &[by, size], conf);
                assert_dies(&output, message, &format!("{by}, {size} bytes, {conf}"));
            }
            let output = crime("death_operators.cc", &[by, size], "");
            assert_eq!(ending(output.status), "exit 0", "{by}, {size} bytes, by default");
        }
        for conf in ["", HARDENED, "hardened:true,tcache:false", "hardened:true,junk:true"] {
            let output = crime("death_operators.cc", &["mixed", size], conf);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(String::from_utf8_lossy(&output.stdout), "ok\n", "{size}, {conf}: {said}");
        }
    }
}

/// A program may have a `new[]` of its own that calls `new`, and use the library's `delete[]`. So
/// may each form of them.
#[test]
fn operators_are_not_compared_if_the_program_has_some_of_its_own() {
    for form in ["-DREPLACED", "-DNOTHROW", "-DALIGNED", "-DSIZED"] {
        let program = cc("death_operators.cc", &[form]);
        let run = Run::preloaded(&program).args(["replaced", "100"]).conf("hardened:true");
        assert_eq!(run.stdout(), "ok\n", "{form}");
    }
}

/// The fault of a guarded sample is reported in one line, and then ends the process.
#[test]
fn guarded_samples_fault() {
    for (what, begins) in [
        ("overflow", "<lumalloc>: buffer overflow at 0x"),
        ("after-free", "<lumalloc>: use after free at 0x"),
    ] {
        let output = crime("death_modes.c", &[what, "104"], "guarded_sample:4");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(ending(output.status), "signal 11", "{what}\n{said}");
        let is_about_address = |line: &str| line.starts_with("<lumalloc>: 0x");
        assert!(said.starts_with(begins) && said.lines().skip(1).all(is_about_address), "{said}");
        assert!(said.contains(" the guarded block 0x") && said.contains(" (size 104), "), "{said}");
        // From where it was allocated, and who called the function that touched it. The program
        // has no frame pointers.
        let traces = [said.split_once(" from "), said.split_once("; by ")];
        for (_, trace) in traces.map(|trace| trace.unwrap_or_else(|| panic!("{said}"))) {
            let known = trace.split(' ').take_while(|word| word.starts_with("0x")).count();
            assert!(known >= 3, "{said}");
        }
    }
}

/// What `addr2line` says about the places in `program` that a message names, in their order.
fn places(said: &str, program: &Path) -> String {
    let file = format!(" is {}+", program.display());
    let offsets = said.lines().filter_map(|line| Some(line.split_once(&file)?.1));
    let output = Run::plain(find_program("addr2line"))
        .args(["-f", "-e", program.to_str().expect("a name")])
        .args(offsets)
        .output();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The addresses of a message change from run to run. The lines below it name the file and the
/// place within it, in programs that lie anywhere and in those that do not, and in libraries.
#[test]
fn a_message_leads_to_the_function_that_freed_the_block() {
    for flags in [&["-g", "-fPIE", "-pie"][..], &["-g", "-no-pie"]] {
        let program = cc("death_double_free.c", flags);
        let output = Run::preloaded(&program).args(["5000000", "own"]).output();
        let said = String::from_utf8_lossy(&output.stderr);
        let places = places(&said, &program);
        assert!(places.contains("main\n"), "{flags:?}: {said}{places}");
        assert!(places.contains("death_double_free.c:"), "{flags:?}: {said}{places}");
        assert!(said.contains("libc.so.6+0x"), "{flags:?}: {said}");
        // With a guarded sample: from where it was allocated, freed and touched.
        let program = cc("death_modes.c", flags);
        let output =
            Run::preloaded(&program).args(["after-free", "104"]).conf("guarded_sample:1").output();
        let said = String::from_utf8_lossy(&output.stderr);
        let [main, all] =
            ["main\n", "\n"].map(|part| self::places(&said, &program).matches(part).count());
        assert!(main >= 2 && all >= 6, "{flags:?}: {said}");
    }
}

#[test]
fn double_free_of_a_large_block() {
    for who in ["own", "other", "both"] {
        let output = crime("death_double_free.c", &["5000000", who], "");
        assert_dies(&output, LARGE_DOUBLE_FREE, &format!("a large block freed twice by {who}"));
    }
}

#[test]
fn a_foreign_pointer() {
    for place in ["stack", "static", "mapped", "unmapped"] {
        for (door, template) in [("free", FOREIGN), ("realloc", FOREIGN_QUERY)] {
            let output = crime("death_foreign.c", &[place, door], "");
            assert_dies(&output, template, &format!("{door} of a {place} address"));
        }
    }
}

#[test]
fn a_pointer_inside_a_small_block() {
    for (size, inside) in [("64", "16"), ("48", "8"), ("3072", "1024"), ("64", "1")] {
        let output = crime("death_interior.c", &[size, inside, "free"], "");
        let template = with_size(INTERIOR, size.parse().expect("a number"));
        assert_dies(&output, &template, &format!("free of byte {inside} of {size}"));
    }
}

/// The page map has an entry for the first page of a large block, but none further inside it.
#[test]
fn a_pointer_inside_a_large_block() {
    for inside in ["64", "8192", "524288"] {
        let output = crime("death_interior.c", &["1048576", inside, "free"], "");
        let what = format!("free of byte {inside} of a large block");
        assert_dies(&output, &with_size(INTERIOR, 1_048_576), &what);
    }
}

/// `realloc` looks the block up before it frees it, so the misuse is found at once.
#[test]
fn reallocation_of_a_pointer_inside_a_block() {
    for (size, inside) in [("64", "16"), ("1048576", "64"), ("1048576", "524288")] {
        let output = crime("death_interior.c", &[size, inside, "realloc"], "");
        let template = with_size(INTERIOR_QUERY, size.parse().expect("a number"));
        assert_dies(&output, &template, &format!("realloc of byte {inside} of {size}"));
    }
}

#[test]
fn a_bad_option_under_abort_conf() {
    let bad = [
        ("no_such_option:true", "Invalid conf pair: no_such_option:true"),
        ("narenas:many", "Invalid conf value: narenas:many"),
        ("narenas:2 ", "Invalid conf value: narenas:2 "),
        ("narenas: ", "Invalid conf value: narenas: "),
        ("narenas:0", "Out-of-range conf value: narenas:0"),
        ("tcache:maybe", "Invalid conf value: tcache:maybe"),
    ];
    for (conf, complaint) in bad {
        let output = crime("proc_tiny.c", &[], &format!("abort_conf:true,{conf}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(ending(output.status), "signal 6", "{conf}\n{said}");
        let expected = format!("<lumalloc>: {complaint} ({VARIABLE})\n{ABORT_CONF}\n");
        assert_eq!(said, expected, "{conf}");
    }
}

#[test]
fn a_number_for_which_the_nearest_is_taken_is_told_and_no_bad_option() {
    let clipped = [
        ("lg_prof_sample:64", 63),
        ("lg_prof_sample:-1", 63),
        ("prof_bt_max:0", 1),
        ("narenas:5000", 4094),
        ("narenas: 4095", 4094),
    ];
    for (pair, taken) in clipped {
        let output = crime("proc_tiny.c", &[], &format!("abort_conf:true,{pair}"));
        let line = format!("Out-of-range conf value: {pair} ({VARIABLE}), {taken} is taken");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            (ending(output.status), said),
            ("exit 0".into(), format!("<lumalloc>: {line}\n").into())
        );
    }
}

/// A profile that cannot be written, and a flag of `dlopen`: warnings that are about no option.
#[test]
fn a_warning_under_abort() {
    let profile = "prof:true,prof_final:true,prof_prefix:/nowhere/x";
    for (conf, how) in [("abort:false", "exit 0"), ("abort:true", "signal 6")] {
        let output = crime("proc_tiny.c", &[], &format!("{conf},{profile}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(ending(output.status), how, "{conf}\n{said}");
        assert!(said.contains(" could not be written to /nowhere/x."), "{conf}: {said}");
        let last = said.lines().last() == Some(ABORT);
        assert_eq!(last, how == "signal 6", "{conf}: {said}");
    }
    let output = crime("proc_tiny.c", &[], "abort:true,no_such_option:true");
    assert_eq!(ending(output.status), "exit 0", "an option is a matter of abort_conf");
}

#[test]
fn a_bad_option_is_reported_and_survived_otherwise() {
    let output = crime("proc_tiny.c", &[], "no_such_option:true");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(ending(output.status), "exit 0", "{said}");
    assert_eq!(said, format!("<lumalloc>: Invalid conf pair: no_such_option:true ({VARIABLE})\n"));
}

/// No machine has 2^62 bytes, and no allocator may serve more than `PTRDIFF_MAX`.
#[test]
fn out_of_memory_under_xmalloc() {
    for door in ["malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign"] {
        for size in [1usize << 62, usize::MAX - 4096] {
            let args = [door, &size.to_string()];
            let silent = crime("death_memory.c", &args, "");
            assert_eq!(ending(silent.status), "exit 0", "{door} {size}");
            assert_eq!(String::from_utf8_lossy(&silent.stderr), "", "{door} {size}");
            let output = crime("death_memory.c", &args, "xmalloc:true");
            assert_dies(&output, &with_size(XMALLOC, size), &format!("{door} {size}"));
        }
    }
}

/// A program may tell wrong sizes if the option says so.
#[test]
fn sized_delete_takes_any_size_where_sizes_are_not_used() {
    let program = cc("sized_delete.cc", &["-std=c++17"]);
    for conf in ["", ",hardened:true", ",guarded_sample:2", ",tcache:false", ",mprof:true"] {
        let directory = scratch("sized-delete");
        let run =
            Run::preloaded(&program).dir(&directory).conf(&format!("sized_delete:false{conf}"));
        assert_eq!(run.stdout(), "ok\n", "{conf}");
    }
    let output = Run::preloaded(&program).output();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.starts_with("<lumalloc>: sized free of 0x"), "{told}");
}
