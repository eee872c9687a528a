//! The programs under test: the library, and programs compiled from `tests/c`.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::directories::{root, target_dir};
use crate::machine;

/// Names another shared object to preload.
pub const LIBRARY_VARIABLE: &str = "LUMALLOC_TEST_LIBRARY";
/// Names another static library for the programs that link one.
pub const ARCHIVE_VARIABLE: &str = "LUMALLOC_TEST_ARCHIVE";

/// The flags of every C and C++ program: malloc/free pairs are kept, and warnings are errors.
const COMPILER_FLAGS: [&str; 8] =
    ["-O1", "-g", "-fno-builtin", "-Wall", "-Wextra", "-Werror", "-pthread", "-D_GNU_SOURCE"];

/// The shared object under test. It is built once per process, unless another one is named.
pub fn liblumalloc() -> PathBuf {
    library(LIBRARY_VARIABLE, "liblumalloc.so")
}

/// The static library under test. It is built together with the shared object.
pub fn liblumalloc_archive() -> PathBuf {
    library(ARCHIVE_VARIABLE, "liblumalloc.a")
}

/// The exporter's shared object. It is built together with [`liblumalloc`].
pub fn liblumalloc_exporter() -> PathBuf {
    release_dir().join("liblumalloc_exporter.so")
}

/// The command `lumalloc`. It is built together with [`liblumalloc`].
pub fn lumalloc() -> PathBuf {
    release_dir().join("lumalloc")
}

/// Whether the tests run on another allocator than lumalloc.
pub fn is_foreign() -> bool {
    std::env::var_os(LIBRARY_VARIABLE).is_some()
}

fn library(variable: &str, file: &str) -> PathBuf {
    if let Some(path) = std::env::var_os(variable) {
        let path = PathBuf::from(path);
        assert!(path.is_file(), "{variable} names {}, which is no file", path.display());
        return path;
    }
    let path = release_dir().join(file);
    assert!(path.is_file(), "cargo build --release left no {}", path.display());
    path
}

/// Builds the release files by the command that README.md, `capi/install.sh` and
/// `deploy/Dockerfile` name, and returns their directory. Other packages on the command line would
/// make other libraries, because cargo chooses the features of a dependency for everything that one
/// command builds.
fn release_dir() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let mut args = vec!["build", "--release", "--quiet"];
        let target = machine::target();
        args.extend(target.iter().flat_map(|target| ["--target", target]));
        cargo(&args);
        target_dir().join(target.unwrap_or_default()).join("release")
    })
}

/// Runs cargo at the root of the workspace, requires success and returns the standard output. It
/// builds what a user would build: the way in which `tests/run` has its own programs panic does not
/// hold for it.
pub fn cargo(args: &[&str]) -> String {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.env_remove("CARGO_PROFILE_DEV_PANIC");
    let output = command.args(args).current_dir(root()).output().expect("cargo starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {args:?}: {}\n{errors}", output.status);
    String::from_utf8(output.stdout).expect("cargo's output is text")
}

/// Compiles `tests/c/<source>` with gcc for the machine under test and returns the program. `args`
/// follow the source on the command line. `*.cc` is C++.
///
/// It is compiled once per process. The path depends on the program's bytes, and so on all that it
/// was made of: another process that compiles another state of the sources puts nothing in its
/// place. A program is moved into place when it is complete, so tests may compile at the same time.
pub fn cc(source: &str, args: &[&str]) -> PathBuf {
    compile(&machine::tool(if source.ends_with(".cc") { "g++" } else { "gcc" }), source, args)
}

/// As [`cc`], but with another compiler.
pub fn compile(compiler: &str, source: &str, args: &[&str]) -> PathBuf {
    static COMPILED: Mutex<BTreeMap<String, Arc<OnceLock<PathBuf>>>> = Mutex::new(BTreeMap::new());
    let key = format!("{compiler} {source} {args:?}");
    let compiled = {
        let mut all = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(key).or_default())
    };
    compiled.get_or_init(|| compile_anew(compiler, source, args)).clone()
}

fn compile_anew(compiler: &str, source: &str, args: &[&str]) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let stem = Path::new(source).file_stem().expect("a file name").to_string_lossy();
    let dir = target_dir().join("test-programs");
    std::fs::create_dir_all(&dir).expect("a directory for the test programs");
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let partial = dir.join(format!("{stem}.{}.{count}", std::process::id()));

    let output = Command::new(compiler)
        .args(COMPILER_FLAGS)
        .arg("-o")
        .arg(&partial)
        .arg(root().join("tests/c").join(source))
        .arg(format!("-I{}", root().join("capi/include").display()))
        .args(args)
        .output()
        .unwrap_or_else(|error| panic!("{compiler} does not start: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    let status = output.status;
    assert!(status.success(), "{compiler} {source} {args:?}: {status}\n{errors}");
    let mut hasher = DefaultHasher::new();
    (compiler, source, args).hash(&mut hasher);
    std::fs::read(&partial).expect("the program is there").hash(&mut hasher);
    let program = dir.join(format!("{stem}-{:016x}", hasher.finish()));
    // A program that runs must not be replaced by an equal one: its profiles name its file.
    match std::fs::hard_link(&partial, &program) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            panic!("{} cannot be made: {error}", program.display())
        }
        _ => std::fs::remove_file(&partial).expect("the other name goes"),
    }
    program
}

/// The program `pprof`, built from the sources that Debian packages. (`go tool pprof` finds names
/// in programs of Go only.)
pub fn pprof() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let dir = target_dir().join("test-programs");
        std::fs::create_dir_all(&dir).expect("a directory for the test programs");
        let partial = dir.join(format!("pprof.{}", std::process::id()));
        let output = Command::new("go")
            .args(["build", "-o"])
            .arg(&partial)
            .arg("github.com/google/pprof")
            .envs([("GO111MODULE", "off"), ("GOPATH", "/usr/share/gocode"), ("GOFLAGS", "")])
            .env("GOCACHE", target_dir().join("go-cache"))
            .output()
            .expect("go starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let program = dir.join("pprof");
        std::fs::rename(&partial, &program).expect("the program moves into place");
        program
    };
    BUILT.get_or_init(build).clone()
}

/// An empty directory with this name for a test's files.
pub fn scratch(name: &str) -> PathBuf {
    let dir = target_dir().join("test-scratch").join(name);
    if dir.exists() {
        std::fs::remove_dir_all(&dir).expect("the old scratch directory goes");
    }
    std::fs::create_dir_all(&dir).expect("a scratch directory");
    dir
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Run;

    #[test]
    fn a_program_is_that_of_its_sources_headers_and_arguments() {
        let dir = scratch("build-program");
        let source = dir.join("made.c");
        let path = source.to_str().expect("text");
        let include = "#include \"made.h\"\n#include <stdio.h>\n";
        let write = |main: &str, header: &str| {
            std::fs::write(dir.join("made.h"), header).expect("a header");
            std::fs::write(&source, format!("{include}int main(void) {{ {main} }}\n")).expect("C");
        };
        let make = |args: &[&str]| compile_anew("gcc", path, args);
        write("puts(TEXT); return 0;", "#define TEXT \"a\"\n");
        let first = make(&[]);
        assert_eq!(make(&[]), first, "nothing has changed");
        let other_argument = make(&["-DUNUSED"]);
        write("puts(TEXT); return 0;", "#define TEXT \"b\"\n");
        let other_header = make(&[]);
        write("puts(TEXT TEXT); return 0;", "#define TEXT \"b\"\n");
        let other_source = make(&[]);
        let programs = [first, other_argument, other_header, other_source];
        let said = programs.map(|program| Run::plain(program).stdout());
        assert_eq!(said, ["a\n", "a\n", "b\n", "bb\n"]);
    }
}
