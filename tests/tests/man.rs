//! lumalloc(3), mprof(1) and mtreplay(1), as `capi/install.sh` installs them: clean troff, every
//! option with an effect, every name, and examples that compile and run.

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use lumalloc_tests::run::find_program;
use lumalloc_tests::{Run, cc, liblumalloc, root, scratch};

/// The installed page.
fn page() -> &'static (PathBuf, String) {
    static PAGE: OnceLock<(PathBuf, String)> = OnceLock::new();
    PAGE.get_or_init(|| {
        let prefix = scratch("man");
        let built = liblumalloc().parent().expect("a file in a directory").to_path_buf();
        let run = Run::plain("/bin/sh").args([root().join("capi/install.sh")]);
        run.args(["--prefix".as_ref(), prefix.as_os_str()])
            .args(["--from".as_ref(), built.as_os_str()])
            .stdout();
        let path = prefix.join("share/man/man3/lumalloc.3");
        let text = fs::read_to_string(&path).expect("the page");
        (path, text)
    })
}

#[test]
fn the_pages_are_clean_troff() {
    // The page of the command is installed with the command, which is built with the library.
    let mprof = page().0.with_file_name("../man1/mprof.1");
    let mtreplay = page().0.with_file_name("../man1/mtreplay.1");
    for path in [&page().0, &mprof, &mtreplay] {
        let output =
            Run::plain(find_program("mandoc")).args(["-Tlint", "-Wwarning"]).args([path]).output();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "");
        assert!(output.status.success());
    }
}

/// mprof(1) describes each option of `lumalloc mprof`.
#[test]
fn the_page_of_mprof_has_each_option() {
    let text = fs::read_to_string(root().join("capi/man/mprof.1")).expect("the page");
    let table =
        fs::read_to_string(root().join("cli/src/profile/arguments.rs")).expect("the options");
    let list = table.split("const MPROF_OPTIONS").nth(1).expect("the list");
    let list = list.split(';').nth(1).expect("its end");
    let options: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
    assert_eq!(options.len(), 8, "{options:?}");
    for option in options {
        let name = option.replace('-', "\\-");
        let (alone, with_value) = (format!("\n.B {name}\n"), format!("\n.BI {name} "));
        assert!(text.contains(&alone) || text.contains(&with_value), "{option}");
    }
}

/// mtreplay(1) describes each option of `lumalloc replay`.
#[test]
fn the_page_of_mtreplay_has_each_option() {
    let page = fs::read_to_string(root().join("capi/man/mtreplay.1")).expect("the page");
    let table =
        fs::read_to_string(root().join("cli/src/replay/arguments.rs")).expect("the options");
    let options = table.split("#[arg(long").skip(1).map(|rest| {
        let field = rest.split("pub(crate) ").nth(1).expect("the field");
        field.split(':').next().expect("its name")
    });
    let options: Vec<&str> = options.collect();
    assert_eq!(options.len(), 5, "{options:?}");
    for option in options {
        assert!(page.contains(&format!("\\-\\-{option}")), "{option}");
    }
}

#[test]
fn every_option_with_an_effect_is_described_and_no_other() {
    let table = fs::read_to_string(root().join("alloc-core/src/ground/conf_table.rs")).unwrap();
    let code: String = table.split("#[cfg(test)]").next().unwrap().split_whitespace().collect();
    let rows = code.split("row(\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    let rows: Vec<&str> = rows.collect();
    assert!(rows.len() > 25, "{rows:?}");
    let tuning = page().1.split(".SH TUNING\n").nth(1).expect("the section");
    let tuning = tuning.split("\n.SH ").next().expect("its end");
    let lines = tuning.lines().filter_map(|line| line.strip_prefix(".BR "));
    let described: Vec<&str> =
        lines.filter_map(|line| line.split_once(" \": ").map(|(name, _)| name)).collect();
    let missing: Vec<_> = rows.iter().filter(|row| !described.contains(row)).collect();
    let surplus: Vec<_> = described.iter().filter(|name| !rows.contains(name)).collect();
    assert!(missing.is_empty() && surplus.is_empty(), "missing: {missing:?}, surplus: {surplus:?}");
}

/// The defaults on the page are those in force in a program without options.
#[test]
fn the_defaults_are_true() {
    let program = cc("api_stats_keys.c", &[&stand_in()]);
    let said = Run::preloaded(program).args(["mdablexw"]).stdout();
    let in_force = |option: &str| {
        let line =
            said.lines().find_map(|line| line.trim().strip_prefix(&format!("opt.{option}: ")));
        line.map(|value| value.split(" (").next().unwrap_or(value).trim_matches('"').to_owned())
    };
    let lines = page().1.lines().filter_map(|line| line.strip_prefix(".BR "));
    let mut compared = 0;
    for (name, default) in lines.filter_map(|line| line.split_once(" \": ")) {
        let default = default.trim_end_matches('"').replace("\\-", "-");
        let is_word = !default.contains(' ') && default != "none" && default != "unlimited";
        if let Some(value) = in_force(name).filter(|_| is_word) {
            assert_eq!(value, default, "{name}");
            compared += 1;
        }
    }
    assert!(compared > 20, "{compared}");
}

fn stand_in() -> String {
    cc("api_stand_in.c", &["-shared", "-fPIC"]).display().to_string()
}

#[test]
fn every_name_is_listed() {
    let names = fs::read_to_string(root().join("namespace/golden/names.tsv")).expect("the names");
    let names = names.lines().filter(|line| !line.starts_with('#'));
    let names: Vec<&str> = names.filter_map(|line| line.split('\t').next()).collect();
    assert!(names.len() > 100);
    let listed = |name: &&&str| page().1.contains(&format!("\n.B {name}\n"));
    let missing: Vec<_> = names.iter().filter(|name| **name != "name" && !listed(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_examples_compile_and_run() {
    let examples: Vec<&str> = page().1.split(".EX\n").skip(1).collect();
    assert!(examples.len() >= 3);
    let dir = scratch("man-examples");
    let library = liblumalloc();
    let lib = library.parent().and_then(|dir| dir.to_str()).expect("a directory in UTF-8");
    for (place, example) in examples.iter().enumerate() {
        let code = example.split(".EE\n").next().expect("its end");
        let file = dir.join(format!("example_{place}.c"));
        fs::write(&file, code.replace("\\e", "\\").replace("\\-", "-")).expect("a file");
        let file = file.to_str().expect("a path in UTF-8");
        let program = cc(file, &[&format!("-L{lib}"), "-llumalloc"]);
        let said = Run::plain(program).env("LD_LIBRARY_PATH", lib).stdout();
        assert!(said.starts_with(|first: char| first.is_ascii_digit() || first == '{'), "{said}");
    }
}
