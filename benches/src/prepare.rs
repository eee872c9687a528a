//! Builds everything that is measured: the C program, the launcher, the shared objects of the
//! peers, one Rust binary per allocator. All results go to `bench/` in the target directory.

use crate::commands::{cargo_build, finish};
use crate::peers::Peer;
use crate::places::Places;
use crate::sources::{commit_of, debian_version, shared_object_of};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The C sources of the measured program. The launcher is a program of its own.
const C_SOURCES: [&str; 13] = [
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
    "producer.c",
    "large.c",
];

/// Compiles a program of `c/` that needs no harness, and returns its path.
pub(crate) fn c_program(places: &Places, name: &str, more: &[&str]) -> Result<PathBuf, String> {
    let path = places.built(&format!("lumalloc-bench-{name}"));
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"]).args(more);
    finish(gcc.arg(places.benches(&format!("c/{name}.c"))).arg("-o").arg(&path))?;
    Ok(path)
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
        c: places.built("lumalloc-bench-c"),
        launch: places.built("lumalloc-bench-launch"),
        scratch: places.scratch(),
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
    if for_c {
        let (path, version) = shared_object_of(places, peer.preload)?;
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

/// Builds the Rust program of a checkout with an allocator, in the directory `build`.
fn rust_binary_of(
    places: &Places,
    checkout: &Path,
    build: &str,
    feature: &str,
) -> Result<PathBuf, String> {
    let target = places.built(build);
    let features = ["--no-default-features", "--features", feature];
    cargo_build(&checkout.join("benches/peers/Cargo.toml"), &target, &features)?;
    let binary = places.built(&format!("lumalloc-bench-rust-{build}-{feature}"));
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
