//! Files that a program opens with `RTLD_DEEPBIND` use the program's malloc, not that of the C
//! library, unless `dlopen_deepbind` says otherwise. The loader still sees which module opens them.

use std::path::{Path, PathBuf};
use std::process::Command;

use lumalloc_tests::run::ending;
use lumalloc_tests::{Run, cc, liblumalloc, liblumalloc_archive, machine, scratch};

const SAME: &str = "the same malloc\n";
const OWN: &str = "its own malloc\n";

fn module() -> PathBuf {
    cc("deepbind_module.c", &["-shared", "-fPIC"])
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// Opens the module and another copy of it. Returns the outputs on both streams.
#[track_caller]
fn opened(how: &str, conf: &str) -> (String, String) {
    let program = cc("deepbind_program.c", &[]);
    let other = cc("deepbind_module.c", &["-shared", "-fPIC", "-DOTHER"]);
    let run = Run::preloaded(program).conf(conf);
    let output = run.args([how.as_ref(), module().as_os_str(), other.as_os_str()]).output();
    let said = |bytes| String::from_utf8(bytes).expect("text");
    let errors = said(output.stderr);
    assert_eq!(ending(output.status), "exit 0", "{errors}");
    (said(output.stdout), errors)
}

#[test]
fn a_deeply_bound_module_uses_the_program_s_malloc() {
    for how in ["open", "mopen"] {
        assert_eq!(opened(how, ""), (SAME.repeat(2), String::new()));
    }
}

#[test]
fn the_first_file_is_named_where_it_is_asked_for() {
    for (how, function) in [("open", "dlopen"), ("mopen", "dlmopen")] {
        let expected = format!(
            "<lumalloc>: {function} of {}: RTLD_DEEPBIND was removed, because the file would use \
             the C library's malloc and free and the program uses lumalloc's \
             (dlopen_deepbind:keep passes the flag on)\n",
            module().display()
        );
        assert_eq!(opened(how, "dlopen_deepbind:warn"), (SAME.repeat(2), expected));
    }
}

#[test]
fn the_flag_is_passed_on_where_it_is_kept() {
    for how in ["open", "mopen"] {
        assert_eq!(opened(how, "dlopen_deepbind:keep"), (OWN.repeat(2), String::new()));
    }
}

#[test]
fn another_namespace_has_its_own_malloc() {
    assert_eq!(opened("new", "dlopen_deepbind:warn"), (OWN.repeat(2), String::new()));
}

#[test]
fn a_long_path_is_cut_and_a_missing_file_is_named_by_the_loader() {
    let path = format!("/{}", "x".repeat(2000));
    let program = cc("deepbind_program.c", &[]);
    let run = Run::preloaded(program).conf("dlopen_deepbind:warn").args(["open", &path]);
    let output = run.output();
    assert_eq!(ending(output.status), "exit 1");
    let said = String::from_utf8(output.stdout).expect("text");
    let reason = "cannot open shared object file: File name too long";
    assert_eq!(said, format!("{path}: {reason}\n"));
    let errors = String::from_utf8(output.stderr).expect("text");
    let beginning = format!("<lumalloc>: dlopen of {}: RTLD_DEEPBIND was removed", &path[..700]);
    assert!(errors.starts_with(&beginning), "{errors}");
    assert!(errors.ends_with("(dlopen_deepbind:keep passes the flag on)\n"), "{errors}");
}

/// The loader finds the caller by the return address.
#[test]
fn a_module_is_found_by_the_caller_s_runpath() {
    let dir = scratch("deepbind-runpath");
    std::fs::copy(module(), dir.join("libdeepbindmodule.so")).expect("the module is copied");
    let runpath = format!("-Wl,--enable-new-dtags,-rpath,{}", dir.display());
    let opener = cc("deepbind_opener.c", &["-shared", "-fPIC", &runpath]);
    let program = cc("deepbind_program.c", &["-DOPENER", text(&opener)]);
    for how in ["open", "mopen"] {
        let run = Run::preloaded(&program).args([how, "the one that the library opens"]);
        assert_eq!(run.stdout(), SAME, "{how}");
    }
}

#[test]
fn a_program_linked_with_the_library_is_served_too() {
    let library = liblumalloc();
    let dir = library.parent().expect("a file in a directory");
    let ours = ["-Wl,--no-as-needed", text(&library)];
    let run = Run::plain(cc("deepbind_program.c", &ours)).env("LD_LIBRARY_PATH", dir);
    assert_eq!(run.args(["open", text(&module())]).stdout(), SAME);
}

/// The archive would bring its `dlopen` into static programs, which have no other one. It only asks
/// whether there is one.
#[test]
fn the_archive_leaves_dlopen_alone() {
    let archive = liblumalloc_archive();
    let output = Command::new(machine::tool("nm")).arg(&archive).output().expect("nm starts");
    let symbols = String::from_utf8_lossy(&output.stdout);
    let named = |name: &&str| ["dlopen", "dlmopen", "dlsym"].contains(name);
    let found: Vec<&str> = symbols
        .lines()
        .filter(|line| line.split_whitespace().next_back().is_some_and(|name| named(&name)))
        .map(str::trim)
        .collect();
    assert_eq!(found, ["w dlopen", "w dlsym"]);
    let program = cc("deepbind_program.c", &[text(&archive)]);
    assert_eq!(Run::plain(program).args(["open", text(&module())]).stdout(), OWN);
}
