//! Blocks of malloc over regions that `realloc` or `rallocx` moves.

use lumalloc_tests::linked::linked;
use lumalloc_tests::run::ending;

/// Runs the program of all options with one of its arguments.
fn run(what: &str, options: &str) {
    let program = linked("malloc_options.c").args([what]).env("VMALLOC_OPTIONS", options);
    let output = program.output();
    assert!(output.status.success(), "{what} with {options}: {}", ending(output.status));
}

/// The size of a block is known as long as it is the last one.
#[test]
fn a_block_that_is_not_the_last_keeps_its_contents() {
    for options in ["", "method=last", "keep,method=last", "method=debug,period=0"] {
        run("contents", options);
    }
}

#[test]
fn the_option_keep_leaves_the_block_that_moves() {
    for options in
        ["keep", "keep,trace=/dev/null", "keep,method=debug,period=0", "keep,method=last"]
    {
        run("moved", options);
    }
}
