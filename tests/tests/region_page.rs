//! vmalloc(3): clean troff, every name of `vmalloc.h` and no other, and examples that compile.

use std::collections::BTreeSet;
use std::fs;

use lumalloc_tests::build::compile;
use lumalloc_tests::run::find_program;
use lumalloc_tests::{Run, root, scratch};

fn page() -> String {
    fs::read_to_string(root().join("capi/man/vmalloc.3")).expect("the page")
}

#[test]
fn the_page_is_clean_troff() {
    let path = root().join("capi/man/vmalloc.3");
    let output =
        Run::plain(find_program("mandoc")).args(["-Tlint", "-Wwarning"]).args([path]).output();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    assert!(output.status.success());
}

/// The names of functions, variables and constants in a text.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let is_lower = |word: &str| word.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_name = |word: &&str| match word.get(..2) {
        // Vmbest and the like; not the names of types.
        Some("Vm") => word.len() > 2 && is_lower(&word[1..]),
        Some("vm") => word.len() > 2 && is_lower(word),
        Some("VM") => word.starts_with("VM_") && word.len() > 3,
        _ => ["setregmax", "cfree"].contains(word),
    };
    words.filter(is_name).collect()
}

#[test]
fn the_page_has_each_name_of_the_header_and_no_other() {
    let header = fs::read_to_string(root().join("capi/include/vmalloc.h")).expect("the header");
    let page = page();
    let (in_header, on_page) = (names(&header), names(&page));
    assert!(in_header.len() > 50, "{in_header:?}");
    let missing: Vec<_> = in_header.difference(&on_page).collect();
    let surplus: Vec<_> = on_page.difference(&in_header).collect();
    assert!(missing.is_empty() && surplus.is_empty(), "missing: {missing:?}, surplus: {surplus:?}");
}

#[test]
fn the_examples_compile() {
    let page = page();
    let examples: Vec<&str> = page.split(".EX\n").skip(1).collect();
    assert!(examples.len() >= 3);
    let dir = scratch("region-examples");
    for (place, example) in examples.iter().enumerate() {
        let code = example.split(".EE\n").next().expect("its end");
        let file = dir.join(format!("region_example_{place}.c"));
        fs::write(&file, code.replace("\\e", "\\").replace("\\-", "-")).expect("a file");
        let file = file.to_str().expect("a path in UTF-8");
        for compiler in ["gcc", "clang"] {
            compile(compiler, file, &["-c", "-pedantic", "-std=gnu89"]);
        }
    }
}
