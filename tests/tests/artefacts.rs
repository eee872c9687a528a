//! The files that the documented commands build: which libraries the shared objects need, whether
//! programs link with them by each linker, and whether the programs start.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lumalloc_tests::run::find_program;
use lumalloc_tests::{
    Run, cargo, cc, compile, liblumalloc, liblumalloc_exporter, root, scratch, target_dir,
};

/// The output of a program of binutils about a file.
fn told(program: &str, args: &[&str], file: &Path) -> String {
    let output = Command::new(find_program(program)).args(args).arg(file).output();
    let output = output.unwrap_or_else(|error| panic!("{program} does not start: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The libraries that a shared object needs, without the loader itself.
fn needed(file: &Path) -> BTreeSet<String> {
    let entries = told("readelf", &["--dynamic", "--wide"], file);
    let needed = entries.lines().filter(|line| line.contains("(NEEDED)"));
    let name = |line: &str| line.split(['[', ']']).nth(1).expect("a name in brackets").to_owned();
    needed.map(name).filter(|name| !name.starts_with("ld-linux")).collect()
}

/// The undefined symbols without a version. Weak ones are left out, because their library may be
/// absent.
fn unversioned(file: &Path) -> Vec<String> {
    let undefined = told("nm", &["--dynamic", "--undefined-only"], file);
    let strong = undefined.lines().filter_map(|line| line.trim_start().strip_prefix("U "));
    strong.filter(|name| !name.contains('@')).map(str::to_owned).collect()
}

#[track_caller]
fn asks_for(file: &Path, libraries: &[&str]) {
    let expected: BTreeSet<String> = libraries.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(needed(file), expected, "{}", file.display());
    assert_eq!(unversioned(file), [""; 0], "{}", file.display());
}

/// A debugger calls `malloc` for the strings in an expression. It would take a function with that
/// name and without a path for it, if the debug information had one.
#[test]
fn no_other_function_is_taken_for_one_of_c() {
    let entries = told("readelf", &["--debug-dump=info", "--dwarf-depth=2"], &liblumalloc());
    let functions = entries
        .split("\n <1>")
        .filter(|entry| entry.contains("(DW_TAG_subprogram)") && entry.contains("DW_AT_low_pc"));
    let name = |entry: &str| -> Option<String> {
        let line = entry.lines().find(|line| line.contains("DW_AT_name"))?;
        Some(line.rsplit(": ").next()?.to_owned())
    };
    let names: BTreeSet<String> = functions.filter_map(name).collect();
    assert!(names.len() > 100, "{names:?}");
    let taken = ["malloc", "calloc", "realloc", "free"].iter().find(|name| names.contains(**name));
    assert_eq!(taken, None);
}

#[allow(dead_code, reason = "the tests link nothing")]
#[path = "../../capi/build/working_set.rs"]
mod working_set;

#[test]
fn the_code_that_every_program_runs_is_side_by_side() {
    let options = ["--demangle", "--defined-only", "--numeric-sort"];
    let listed = told("nm", &options, &liblumalloc());
    let functions = listed.lines().filter_map(|line| Some(line.split_once(" t ")?.1));
    let functions: Vec<&str> = functions.collect();
    let first = |module: &&str| {
        let ends =
            |rest: &str| !rest.starts_with(|next: char| next == '_' || next.is_alphanumeric());
        let is_of = |name: &&str| name.split(&format!("lumalloc::{module}")).skip(1).any(ends);
        functions.iter().position(is_of)
    };
    let set = [working_set::ALWAYS.as_slice(), &working_set::WITH_THREADS].concat();
    let missing: Vec<&str> = set.iter().copied().filter(|module| first(module).is_none()).collect();
    assert_eq!(missing, [""; 0]);
    for other in ["front::life::fork", "ground::fatal", "control::arenas"] {
        let begin = first(&other).expect("functions of the module");
        let later = set.iter().find(|module| first(module) > Some(begin));
        assert_eq!(later, None, "behind {other}");
    }
}

#[test]
fn linkers_that_take_no_script_are_known_by_the_flags() {
    let found = |flags: &[&'static str]| working_set::without_script(flags.iter().copied());
    for (flags, linker) in [
        (&["-C", "link-arg=-fuse-ld=mold"][..], Some("mold")),
        (&["-Clink-arg=-fuse-ld=/usr/bin/ld.gold", "-g"], Some("gold")),
        (&["-Clink-args=-s -fuse-ld=gold -v"], Some("gold")),
        (&["link-arg=--ld-path=/opt/bin/mold"], Some("mold")),
        (&["linker=/opt/bin/wild"], Some("wild")),
        (&["-Clink-arg=-fuse-ld=lld"], None),
        (&["-Clink-arg=-fuse-ld=bfd", "linker=clang"], None),
        (&["--remap-path-prefix=/home/gold/old=/gold", "--cfg", "mold"], None),
        (&[""], None),
    ] {
        assert_eq!(found(flags), linker, "{flags:?}");
    }
}

/// The large tables are in the list of build/working_set.rs, so the small variables share pages.
#[test]
fn the_large_tables_lie_behind_the_small_variables() {
    let library = liblumalloc();
    let sections = told("readelf", &["--sections", "--wide"], &library);
    let range = |name: &str| {
        let line = sections.lines().find_map(|line| line.split_once(&format!("] {name} ")))?;
        let mut fields = line.1.split_whitespace().skip(1);
        let address = u64::from_str_radix(fields.next()?, 16).ok()?;
        Some(address..address + u64::from_str_radix(fields.nth(1)?, 16).ok()?)
    };
    let small = [".data", ".bss"].map(|name| range(name).expect("a section with such variables"));
    let symbols = told("nm", &["--demangle", "--defined-only", "--print-size"], &library);
    let large = symbols.lines().filter(|line| {
        let [address, size] = [0, 1].map(|at| line.split(' ').nth(at).unwrap_or_default());
        let number = |text| u64::from_str_radix(text, 16).unwrap_or(0);
        number(size) >= 1024 && small.iter().any(|range| range.contains(&number(address)))
    });
    assert_eq!(large.collect::<Vec<&str>>(), [""; 0]);
    assert!(small.iter().all(|range| !range.is_empty() && range.end - range.start < 8192));
}

/// What a small program runs is in the list of build/working_set.rs, so none of it is elsewhere.
#[test]
fn a_small_program_runs_no_other_code_of_the_library() {
    let profile = scratch("working_set").join("profile");
    Run::preloaded(find_program("valgrind"))
        .args(["--quiet", "--tool=callgrind", "--demangle=no"])
        .args([format!("--callgrind-out-file={}", profile.display()).as_str()])
        .args([cc("proc_tiny.c", &[])])
        .stdout();
    let (library, text) = (liblumalloc(), fs::read_to_string(&profile).expect("a profile"));
    let run = executed(&text, &library);
    assert!(run.contains("malloc") && run.len() > 40, "{run:?}");
    let symbols = told("nm", &["--defined-only"], &library);
    let addresses = symbols.lines().filter_map(|line| {
        let (address, name) = line.split_once(' ')?;
        Some((u64::from_str_radix(address, 16).ok()?, name.split_once(' ')?.1))
    });
    let end = addresses.clone().find(|(_, name)| *name == "__stop_lumalloc_entries");
    let (end, _) = end.expect("the end of the code that every program runs");
    let elsewhere = addresses.filter(|(address, name)| *address > end && run.contains(*name));
    let elsewhere: Vec<&str> = elsewhere.map(|(_, name)| name).collect();
    assert_eq!(elsewhere, [""; 0]);
}

/// The functions of an object that ran, by a profile of callgrind. There the object of a function
/// stands on a line before it, and the names of both only where they come first.
fn executed(profile: &str, object: &Path) -> BTreeSet<String> {
    let (mut objects, mut functions) = (BTreeMap::new(), BTreeMap::new());
    let (mut is_ours, mut executed) = (false, BTreeSet::new());
    for line in profile.lines() {
        let Some((key, value)) = line.split_once("=(") else { continue };
        let Some((number, rest)) = value.split_once(')') else { continue };
        let names = match key {
            "ob" | "cob" => &mut objects,
            "fn" | "cfn" => &mut functions,
            _ => continue,
        };
        if let Some(name) = rest.strip_prefix(' ') {
            names.insert(number, name);
        }
        match key {
            "ob" => is_ours = objects.get(number).is_some_and(|name| Path::new(name) == object),
            // Behind an apostrophe is the depth of a recursion.
            "fn" if is_ours => {
                let name = functions.get(number).expect("the name came before");
                executed.insert(name.split('\'').next().unwrap_or(name).to_owned());
            }
            _ => {}
        }
    }
    executed
}

/// The tests use the results of `cargo build --release`, so no other command may be documented.
#[test]
fn one_command_is_documented() {
    for file in ["README.md", "capi/install.sh", "deploy/Dockerfile", "tests/run"] {
        let text = fs::read_to_string(root().join(file)).expect("a text of the repository");
        let after = text.split("cargo build").skip(1);
        let options: Vec<&str> = after
            .map(|rest| rest.split(['#', ')', '\\', '"', '`', '\n']).next().unwrap_or("").trim())
            .collect();
        assert!(!options.is_empty(), "{file} builds nothing");
        let known = |options: &&str| ["--release", "--release --locked"].contains(options);
        assert!(options.iter().all(known), "{file}: {options:?}");
    }
}

#[test]
fn the_libraries_ask_for_what_they_use() {
    asks_for(&liblumalloc(), &["libc.so.6"]);
    asks_for(&liblumalloc_exporter(), &["libc.so.6", "libgcc_s.so.1", "libm.so.6"]);
}

/// Tracers find the probes by their notes.
#[test]
fn the_probes_are_noted_with_their_arguments() {
    let readelf = Run::plain(find_program("readelf")).args(["-n", "-W"]);
    let notes = readelf.args([liblumalloc()]).stdout();
    for (name, arguments, least) in
        [("alloc", 2, 5), ("free", 1, 5), ("sample", 3, 1), ("purge", 2, 1), ("arena_made", 2, 1)]
    {
        let of_name = notes
            .split("Provider: lumalloc")
            .filter(|note| note.lines().any(|line| line.trim() == format!("Name: {name}")));
        let counts = of_name.map(|note| {
            let line = note.lines().find_map(|line| line.trim().strip_prefix("Arguments: "));
            line.expect("arguments").split_whitespace().count()
        });
        let counts: Vec<usize> = counts.collect();
        assert!(counts.len() >= least, "{name}: {counts:?}");
        assert!(counts.iter().all(|count| *count == arguments), "{name}: {counts:?}");
    }
}

/// Cargo resolves features for each command, and `libc` links nothing itself if its feature `std`
/// is on.
#[test]
fn the_library_built_alone_asks_for_the_same() {
    cargo(&["build", "--quiet", "-p", "lumalloc-capi"]);
    asks_for(&target_dir().join("debug/liblumalloc.so"), &["libc.so.6"]);
}

/// `cargo run` builds the same libraries as `cargo build`, for `lumalloc run` to preload.
#[test]
fn the_command_built_and_run_by_cargo_preloads_the_library() {
    let library = liblumalloc();
    let built = fs::read(&library).expect("the library");
    let preloaded = ["run", "--", "/bin/sh", "-c", "echo $LD_PRELOAD"];
    let said = [&["run", "--release", "--quiet", "--"], &preloaded[..]].concat();
    let expected = format!("{}\n", library.display());
    assert_eq!(cargo(&said), expected);
    assert!(fs::read(&library).expect("the library") == built, "cargo run builds another one");
    let command = target_dir().join("release/lumalloc");
    assert_eq!(Run::plain(command).args(preloaded).stdout(), expected);
}

/// The directory that has rustup's `rust-lld` under the name that gcc looks for.
fn rust_lld() -> PathBuf {
    let output = Command::new(find_program("rustc")).args(["--print", "sysroot"]).output();
    let sysroot = output.expect("rustc starts").stdout;
    let sysroot = String::from_utf8(sysroot).expect("a path in UTF-8");
    let host = format!("lib/rustlib/{}-unknown-linux-gnu/bin/gcc-ld", std::env::consts::ARCH);
    let dir = Path::new(sysroot.trim()).join(host);
    assert!(dir.join("ld.lld").is_file(), "{}: no rust-lld", dir.display());
    dir
}

/// Links three programs and runs them: one with the library, one with the C library before it, and
/// one with a library that was itself linked with lumalloc.
fn linked_by(compiler: &str, linker: &[&str]) {
    let library = liblumalloc();
    let dir = library.parent().expect("a file in a directory").to_str().expect("UTF-8");
    let search = format!("-L{dir}");
    let ours = [search.as_str(), "-Wl,--no-as-needed", "-llumalloc"];
    let linked = |source: &str, args: &[&str]| compile(compiler, source, &[linker, args].concat());

    let with = linked("artefact_program.c", &ours);
    let behind =
        linked("artefact_program.c", &[&["-Wl,--no-as-needed", "-lc"], &ours[..]].concat());
    let between = linked("artefact_library.c", &[&["-shared", "-fPIC"], &ours[..]].concat());
    let between = between.to_str().expect("a path in UTF-8");
    let path = format!("-Wl,-rpath-link,{dir}");
    let through = linked("artefact_program.c", &["-DTHROUGH", between, &path]);
    for program in [with, behind, through] {
        let run = Run::plain(&program).env("LD_LIBRARY_PATH", dir);
        assert_eq!(run.stdout(), "ok\n", "{compiler} {linker:?}: {}", program.display());
    }
}

#[test]
fn programs_are_linked_by_gcc() {
    linked_by("gcc", &[]);
}

#[test]
fn programs_are_linked_by_clang() {
    linked_by("clang", &[]);
}

#[test]
fn programs_are_linked_by_lld() {
    linked_by("clang", &["-fuse-ld=lld"]);
}

#[test]
fn programs_are_linked_by_rust_lld() {
    let dir = format!("-B{}", rust_lld().display());
    linked_by("gcc", &["-fuse-ld=lld", &dir]);
}

/// Without `--from` the script builds, and installs the same files that the tests use.
#[test]
fn the_install_script_installs_the_same() {
    let library = liblumalloc();
    let prefix = scratch("install-built");
    let run = Run::plain("/bin/sh").args([root().join("capi/install.sh")]);
    let run = run.args(["--prefix".as_ref(), prefix.as_os_str()]);
    run.env("CARGO_TARGET_DIR", target_dir()).stdout();
    for (installed, file) in
        [("lib/liblumalloc.so", &library), ("lib/liblumalloc_exporter.so", &liblumalloc_exporter())]
    {
        let installed = fs::read(prefix.join(installed)).expect("an installed file");
        assert!(installed == fs::read(file).expect("the library"), "{}", file.display());
    }
}
