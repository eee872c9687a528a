//! `capi/install.sh`: pkg-config finds the installed files, programs compile with them and run,
//! programs that were built for jemalloc find lumalloc under that name, and files of other packages
//! are not replaced.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use lumalloc_tests::run::{ending, find_program};
use lumalloc_tests::{Run, cc, liblumalloc, lumalloc, root, scratch};

/// The directory of the built files: that of the library under test.
fn built() -> PathBuf {
    liblumalloc().parent().expect("a file in a directory").to_path_buf()
}

fn script() -> PathBuf {
    root().join("capi/install.sh")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// Installs into an empty directory with this name and returns the prefix.
fn install(name: &str, args: &[&str]) -> PathBuf {
    let prefix = scratch(name);
    let built = built();
    let run = Run::plain("/bin/sh").args([script()]);
    let run = run.args(["--prefix", text(&prefix), "--from", text(&built)]).args(args);
    let said = run.stdout();
    let expected = format!(
        "installed in {0}; libraries in {0}/lib\n\
         the loader does not look there by itself: link with -Wl,-rpath,{0}/lib, or set \
         LD_LIBRARY_PATH\n",
        prefix.display()
    );
    assert_eq!(said, expected);
    prefix
}

/// The compiler's arguments for a package.
fn flags(prefix: &Path, package: &str) -> Vec<String> {
    let output = Command::new(find_program("pkg-config"))
        .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"))
        .args(["--cflags", "--libs", package])
        .output()
        .expect("pkg-config starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let flags = String::from_utf8(output.stdout).expect("flags are text");
    flags.split_whitespace().map(str::to_owned).collect()
}

/// Compiles with these arguments and runs with the installed libraries.
fn compile_and_run(source: &str, prefix: &Path, args: &[String]) -> String {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let program = cc(source, &args);
    Run::plain(program).env("LD_LIBRARY_PATH", prefix.join("lib")).stdout()
}

#[test]
fn a_program_is_built_by_pkg_config() {
    let prefix = install("install", &[]);
    assert_eq!(compile_and_run("api_mallctl.c", &prefix, &flags(&prefix, "lumalloc")), "ok\n");
    for other in ["lib/libjemalloc.so.2", "lib/pkgconfig/jemalloc.pc", "include/jemalloc"] {
        assert!(!prefix.join(other).exists(), "{other} was not asked for");
    }
    let version = format!("Version: {}\n", env!("CARGO_PKG_VERSION"));
    let pc = fs::read_to_string(prefix.join("lib/pkgconfig/lumalloc.pc")).expect("the file");
    assert!(pc.contains(&version), "{pc}");
}

/// The archive of mprof(1): its programs write the data without any option.
#[test]
fn a_program_that_is_linked_with_the_archive_of_mprof_writes_its_data() {
    let prefix = install("install-mprof", &[]);
    let archive = prefix.join("lib/liblumalloc_mp.a");
    // Without the last option a static program has no unwind tables that can be found.
    let fixed = &["-static", "-Wl,--eh-frame-hdr"][..];
    for (flags, name) in [(&[][..], "dynamic"), (fixed, "static")] {
        let program = cc("reading_profiles.c", &[&[text(&archive), "-lm"], flags].concat());
        let directory = scratch(&format!("install-mprof-{name}"));
        let run = Run::plain(&program).dir(&directory).env("LUMALLOC_CONF", "mprof:false");
        assert_eq!(run.stdout(), "");
        let data = directory.join("mprof.data");
        let shown = Run::plain(lumalloc()).args(["mprof".as_ref(), program.as_os_str()]);
        let tables = shown.dir(&directory).stdout();
        assert!(data.is_file() && tables.contains("<TOTAL>"), "{name}: {tables}");
        assert!(tables.contains("> make_red_widget > make_widget"), "{name}: {tables}");
    }
}

#[test]
fn the_exporter_s_library_comes_along() {
    let prefix = install("install-exporter", &[]);
    assert!(prefix.join("lib/liblumalloc_exporter.so").is_file());
}

#[test]
fn a_program_for_jemalloc_is_built_by_pkg_config() {
    let prefix = install("install-as-jemalloc", &["--as-jemalloc"]);
    let flags = flags(&prefix, "jemalloc");
    assert_eq!(compile_and_run("api_jemalloc_header.c", &prefix, &flags), "ok\n");
}

/// The program needs `libjemalloc.so.2`, as Debian's packages do. The C library comes after it and
/// would provide the names, if the filter did not put those of lumalloc before.
#[test]
fn a_program_that_was_built_for_jemalloc_gets_lumalloc() {
    let prefix = install("install-filter", &["--as-jemalloc"]);
    let soname = "-Wl,-soname,libjemalloc.so.2";
    let theirs = cc("api_stand_in.c", &["-shared", "-fPIC", soname]);
    let arguments = ["-Wl,--no-as-needed".to_owned(), text(&theirs).to_owned()];
    assert_eq!(compile_and_run("api_jemalloc_header.c", &prefix, &arguments), "ok\n");
    let library = prefix.join("lib/libjemalloc.so.2");
    let beside = format!("-Wl,-rpath,{}", text(&built()));
    let ours = liblumalloc();
    let arguments = ["-DFOREIGN", text(&ours), beside.as_str()];
    let preloaded = Run::plain(cc("api_stats_print.c", &arguments));
    assert_eq!(preloaded.env("LD_PRELOAD", library).stdout(), "ok\n");
}

/// The machine's own cache is left alone: `ldconfig` and `id` are scripts, the first of which tells
/// when it is to renew the cache.
#[test]
fn the_cache_of_libraries_is_renewed_where_the_loader_looks() {
    let (tools, prefix) = (scratch("install-tools"), scratch("install-cached"));
    let library = prefix.join("lib");
    let renew = "[ \"$1\" != -v ] && echo \"renewed $*\" || echo \"$COVERED: (from <builtin>:0)\"";
    for (tool, script) in [("ldconfig", renew), ("id", "echo \"$USER_ID\"")] {
        fs::write(tools.join(tool), format!("#!/bin/sh\n{script}\n")).expect("a file");
        fs::set_permissions(tools.join(tool), Permissions::from_mode(0o755)).expect("a mode");
    }
    let path = format!("{}:{}", text(&tools), std::env::var("PATH").expect("a path"));
    let built = built();
    let said = |user: &str, covered: &Path, more: &[&str]| {
        let run = Run::plain("/bin/sh").args([script()]).env("PATH", &path);
        let run = run.env("USER_ID", user).env("COVERED", covered);
        let run = run.args(["--prefix", text(&prefix), "--from", text(&built)]).args(more);
        let said = run.stdout();
        said.split_once('\n').map(|(_, rest)| rest.to_owned()).expect("a first line")
    };
    assert_eq!(said("0", &library, &[]), "renewed \n");
    let left = "now run ldconfig as root, or programs do not find liblumalloc.so\n";
    assert_eq!(said("1000", &library, &[]), left);
    assert!(said("0", &tools, &[]).starts_with("the loader does not look there by itself: "));
    let package = scratch("install-package");
    assert_eq!(said("0", &library, &["--destdir", text(&package)]), "");
}

#[test]
fn installing_again_replaces_what_was_installed() {
    let prefix = install("install-again", &["--as-jemalloc"]);
    let built = built();
    let args = ["--prefix", text(&prefix), "--from", text(&built), "--as-jemalloc"];
    Run::plain("/bin/sh").args([script()]).args(args).stdout();
    assert_eq!(
        fs::read_link(prefix.join("lib/libjemalloc.so")).unwrap(),
        Path::new("liblumalloc.so")
    );
}

#[test]
fn another_one_s_files_stay_and_nothing_is_installed() {
    let prefix = scratch("install-refused");
    fs::create_dir(prefix.join("lib")).expect("a directory");
    let theirs = prefix.join("lib/libjemalloc.so.2");
    fs::write(prefix.join("lib/real.so"), "the real one").expect("a file");
    symlink("real.so", &theirs).expect("a link");
    let built = built();
    let args = ["--prefix", text(&prefix), "--from", text(&built), "--as-jemalloc"];
    let output = Run::plain("/bin/sh").args([script()]).args(args).output();
    assert_eq!(ending(output.status), "exit 1");
    let said = String::from_utf8_lossy(&output.stderr);
    let script = script();
    let expected = format!(
        "{}: {} is another one's: nothing is installed\n",
        script.display(),
        theirs.display()
    );
    assert_eq!(said, expected);
    assert_eq!(fs::read_to_string(theirs).unwrap(), "the real one");
    assert!(!prefix.join("include").exists() && !prefix.join("lib/liblumalloc.so").exists());
}

/// Root may have a umask that hides what it makes from everyone else.
#[test]
fn everyone_may_read_what_is_installed_whatever_the_umask() {
    let prefix = scratch("install-umask");
    let line = format!(
        "umask 077; exec /bin/sh '{}' --prefix '{}' --from '{}' --as-jemalloc",
        script().display(),
        prefix.display(),
        built().display()
    );
    Run::plain("/bin/sh").args(["-c", &line]).stdout();
    let listed = Run::plain(find_program("find"));
    let hidden = listed.args([text(&prefix), "-mindepth", "1", "!", "-perm", "-444"]).stdout();
    assert_eq!(hidden, "");
}

/// As for root, where Rust is a user's own. The script lies in a copy of the tree.
#[test]
fn without_cargo_the_built_files_are_taken_if_they_are_there() {
    let tree = scratch("install-no-cargo");
    for folder in ["capi", "namespace"] {
        symlink(root().join(folder), tree.join(folder)).expect("a link");
    }
    fs::create_dir(tree.join("bin")).expect("a directory");
    fs::create_dir(tree.join("target")).expect("a directory");
    for tool in [
        "sh", "dirname", "sed", "mktemp", "rm", "cc", "ld", "as", "objcopy", "ar", "install",
        "chmod", "cat", "grep",
    ] {
        symlink(find_program(tool), tree.join("bin").join(tool)).expect("a link");
    }
    let script = tree.join("capi/install.sh");
    let run = || {
        let run = Run::plain("/bin/sh").args([text(&script), "--prefix", text(&tree.join("to"))]);
        run.env("PATH", tree.join("bin")).env("CARGO_TARGET_DIR", tree.join("target")).output()
    };
    let refused = run();
    assert_eq!(ending(refused.status), "exit 1");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        said.contains(
            ": cargo is not found: name built files with --from DIR, which has what comes of \
                        cargo build --release"
        ),
        "{said}"
    );
    symlink(built(), tree.join("target/release")).expect("a link");
    let done = run();
    assert_eq!(ending(done.status), "exit 0", "{}", String::from_utf8_lossy(&done.stderr));
    assert!(tree.join("to/lib/liblumalloc.so").is_file());
}

#[test]
fn wrong_arguments_are_named() {
    let script = script();
    for (args, message) in [
        (&["--prefx", "/x"][..], "unknown option --prefx; --help lists them"),
        (&["--prefix"], "--prefix needs a directory"),
        (&["--prefix", "here"], "--prefix must be an absolute path: here"),
        (&["--libdir", "lib"], "--libdir must be an absolute path: lib"),
        (
            &["--prefix", "/a b"],
            "a path with such characters cannot stand in a .pc file: /a b /a b/lib",
        ),
        (
            &["--from", "/nowhere"],
            "/nowhere/liblumalloc.so: no such file; build it with cargo build --release",
        ),
    ] {
        let output = Run::plain("/bin/sh").args([&script]).args(args).output();
        assert_eq!(ending(output.status), "exit 1", "{args:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said, format!("{}: {message}\n", script.display()));
    }
    let help = Run::plain("/bin/sh").args([&script]).args(["--help"]).stdout();
    assert!(help.starts_with("Installs lumalloc for C programs"), "{help}");
    assert!(help.ends_with("cache, which goes by SONAMEs).\n"), "{help}");
}
