//! Builds everything that is measured: the C program, the launcher, the shared objects of the
//! peers, one Rust binary per allocator. All results go to `bench/` in the target directory.

use crate::peers::{OLD_CHECKOUT, Peer};
use crate::sources::{commit_of, debian_version, shared_object_of};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The C sources of the measured program. The launcher is a program of its own.
const C_SOURCES: [&str; 12] = [
    "main.c",
    "pair.c",
    "batch.c",
    "random.c",
    "class.c",
    "grow.c",
    "threads.c",
    "succession.c",
    "transfer.c",
    "sharing.c",
    "idle.c",
    "large.c",
];

/// The directories of the sources and of the built files.
pub(crate) struct Places {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
    bench: PathBuf,
}

impl Places {
    /// Finds the directories from the place of this program: `TARGET/release/lumalloc-bench`.
    pub(crate) fn find() -> Result<Self, String> {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
            .ok_or("start it by `cargo run --release -p lumalloc-bench -- ...`")?;
        let root = Path::new(&manifest).parent().ok_or("benches has no parent")?.to_owned();
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let target = program.ancestors().nth(2).ok_or("no target directory")?.to_owned();
        let bench = target.join("bench");
        fs::create_dir_all(&bench).map_err(|error| format!("no directory to build in: {error}"))?;
        Ok(Self { root, target, bench })
    }

    /// The checkout that the old build comes from.
    pub(crate) fn old(&self) -> Result<PathBuf, String> {
        old_checkout(std::env::var_os(OLD_CHECKOUT))
    }

    /// A path in `benches/`.
    pub(crate) fn benches(&self, path: &str) -> PathBuf {
        self.root.join("benches").join(path)
    }

    /// The path of a built file in `TARGET/bench`.
    pub(crate) fn built(&self, name: &str) -> PathBuf {
        self.bench.join(name)
    }
}

/// Compiles a program of `c/` that needs no harness, and returns its path.
pub(crate) fn c_program(places: &Places, name: &str, more: &[&str]) -> Result<PathBuf, String> {
    let path = places.built(&format!("lumalloc-bench-{name}"));
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"]).args(more);
    finish(gcc.arg(places.benches(&format!("c/{name}.c"))).arg("-o").arg(&path))?;
    Ok(path)
}

/// The full path of the checkout that `LUMALLOC_OLD` names.
fn old_checkout(named: Option<OsString>) -> Result<PathBuf, String> {
    let named = named.ok_or_else(|| {
        format!("{OLD_CHECKOUT} must name the checkout that the old build comes from")
    })?;
    fs::canonicalize(&named).map_err(|error| format!("{OLD_CHECKOUT}={}: {error}", named.display()))
}

/// The programs that run and start the C workloads.
pub(crate) struct Programs {
    pub(crate) c: PathBuf,
    pub(crate) launch: PathBuf,
    /// A directory for files that the tools write.
    pub(crate) scratch: PathBuf,
}

/// A peer that is ready to run.
pub(crate) struct Contender {
    pub(crate) peer: &'static Peer,
    /// The value of `LD_PRELOAD`; `None` for the C library's own allocator.
    pub(crate) shared_object: Option<PathBuf>,
    pub(crate) rust_binary: Option<PathBuf>,
    /// The versions for C and for Rust programs.
    pub(crate) versions: (Option<String>, Option<String>),
}

impl Contender {
    /// Sets `LD_PRELOAD` and the environment of the peer for a C program.
    pub(crate) fn preload(&self, command: &mut Command) {
        command.envs(self.shared_object.iter().map(|path| ("LD_PRELOAD", path)));
        command.envs(self.peer.environment.iter().copied());
    }
}

/// Compiles the C program and the launcher.
pub(crate) fn programs(places: &Places) -> Result<Programs, String> {
    let programs = Programs {
        c: places.bench.join("lumalloc-bench-c"),
        launch: places.bench.join("lumalloc-bench-launch"),
        scratch: places.bench.clone(),
    };
    let mut compiler = Command::new("gcc");
    compiler.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"]);
    for name in ["malloc", "calloc", "realloc", "free"] {
        compiler.arg(format!("-fno-builtin-{name}"));
    }
    let sources = C_SOURCES.map(|source| places.benches("c").join(source));
    finish(compiler.args(sources).arg("-o").arg(&programs.c))?;
    let launcher = places.benches("c/launch.c");
    finish(
        Command::new("gcc").args(["-O2", "-static"]).arg(launcher).arg("-o").arg(&programs.launch),
    )?;
    Ok(programs)
}

/// Builds one peer for C programs, for Rust programs, or for both.
pub(crate) fn contender(
    places: &Places,
    peer: &'static Peer,
    (for_c, for_rust): (bool, bool),
) -> Result<Contender, String> {
    let (mut shared_object, mut c_version) = (None, None);
    if let Some(preload) = peer.preload.filter(|_| for_c) {
        let (path, version) = shared_object_of(places, preload)?;
        (shared_object, c_version) = (path, Some(version));
    }
    let (mut rust_binary, mut rust_version) = (None, None);
    if let Some((feature, package)) = peer.rust.filter(|_| for_rust) {
        let (checkout, build) = if peer.is_old() {
            (places.old()?, "old-peers")
        } else {
            (places.root.clone(), "peers")
        };
        rust_binary = Some(rust_binary_of(places, &checkout, build, feature)?);
        rust_version = Some(match peer.is_ours() {
            true => commit_of(&checkout),
            false => rust_version_of(places, package)?,
        });
    }
    Ok(Contender { peer, shared_object, rust_binary, versions: (c_version, rust_version) })
}

/// The directory into which cargo unpacked a package of `benches/peers`: that of a path in cargo's
/// metadata that ends in `/PACKAGE-VERSION/Cargo.toml`.
pub(crate) fn package_directory(places: &Places, package: &str) -> Result<PathBuf, String> {
    let mut cargo = Command::new("cargo");
    cargo.args(["metadata", "--format-version=1", "--all-features", "--manifest-path"]);
    let metadata = finish(cargo.arg(places.benches("peers/Cargo.toml")))?;
    let here = format!("/{package}-");
    let found = metadata
        .split('"')
        .filter_map(|text| text.strip_suffix("/Cargo.toml"))
        .find(|path| path.rfind(&here).is_some_and(|at| !path[at + 1..].contains('/')));
    found.map(PathBuf::from).ok_or_else(|| format!("cargo metadata names no {package}"))
}

/// Builds the Rust program of a checkout with an allocator, in the directory `build`.
fn rust_binary_of(
    places: &Places,
    checkout: &Path,
    build: &str,
    feature: &str,
) -> Result<PathBuf, String> {
    let target = places.bench.join(build);
    let features = ["--no-default-features", "--features", feature];
    cargo_build(&checkout.join("benches/peers/Cargo.toml"), &target, &features)?;
    let binary = places.bench.join(format!("lumalloc-bench-rust-{build}-{feature}"));
    fs::copy(target.join("release/lumalloc-bench-peer"), &binary)
        .map_err(|error| format!("the binary for {feature}: {error}"))?;
    Ok(binary)
}

/// The version in the lock file of `benches/peers`; for no package, that of the C library.
fn rust_version_of(places: &Places, package: &str) -> Result<String, String> {
    if package.is_empty() {
        return Ok(debian_version("libc6"));
    }
    let lock = fs::read_to_string(places.benches("peers/Cargo.lock"))
        .map_err(|error| format!("Cargo.lock: {error}"))?;
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name).skip(1);
    let version = lines.next().and_then(|line| line.split('"').nth(1));
    let version = version.ok_or_else(|| format!("Cargo.lock names no {package}"))?;
    Ok(format!("{package} {version}"))
}

/// Builds a package in release mode.
pub(crate) fn cargo_build(
    manifest: &Path,
    target: &Path,
    arguments: &[&str],
) -> Result<(), String> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--release", "--manifest-path"]).arg(manifest);
    finish(cargo.arg("--target-dir").arg(target).args(arguments)).map(drop)
}

/// Runs a command to its end and returns its standard output.
pub(crate) fn finish(command: &mut Command) -> Result<String, String> {
    let name = Path::new(command.get_program()).file_name().unwrap_or(OsStr::new("command"));
    let name = name.to_string_lossy().into_owned();
    let done = command.output().map_err(|error| format!("{name}: {error}"))?;
    if !done.status.success() {
        return Err(format!("{name} failed:\n{}", String::from_utf8_lossy(&done.stderr)));
    }
    Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_checkout_must_be_named_and_be_there() {
        assert_eq!(
            old_checkout(None),
            Err("LUMALLOC_OLD must name the checkout that the old build comes from".to_owned())
        );
        assert_eq!(
            old_checkout(Some("/nowhere/at-all".into())),
            Err("LUMALLOC_OLD=/nowhere/at-all: No such file or directory (os error 2)".to_owned())
        );
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(
            old_checkout(Some(here.into())),
            fs::canonicalize(here).map_err(|_| String::new())
        );
    }
}
