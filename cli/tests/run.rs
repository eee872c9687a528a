//! `lumalloc run`: the environment that it prepares, its exit statuses and its exact messages.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::RwLock;

#[path = "../../tests/src/not_tried.rs"]
mod not_tried;
#[path = "run/users.rs"]
mod users;

/// Files are written while no thread starts a child. A child that another test starts meanwhile
/// would hold the file, and a file that is open for writing cannot be executed ("text file busy").
static SPAWNING: RwLock<()> = RwLock::new(());

/// A directory for one test, which is removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("run-{name}"));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// One that each user can reach, as the build often cannot be.
    fn for_all(name: &str) -> Self {
        let build = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let is_open = |path: &Path| fs::metadata(path).is_ok_and(|path| path.mode() & 0o1 != 0);
        let is_reached = build.ancestors().all(is_open);
        let base = if is_reached { build.to_owned() } else { std::env::temp_dir() };
        let path = base.join(format!("lumalloc-run-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Self(path)
    }

    /// Returns `run` of a copy of the command in this directory.
    fn command(&self) -> Command {
        let own = fs::read(env!("CARGO_BIN_EXE_lumalloc")).unwrap();
        without_variables(Command::new(self.file("lumalloc", &own, 0o755)))
    }

    fn file(&self, name: &str, contents: &[u8], mode: u32) -> String {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _alone = SPAWNING.write().unwrap();
        fs::write(&path, contents).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns a library that does no harm when preloaded: the C library of this process.
fn harmless_library() -> String {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let path = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    path.into_iter().find(|path| path.contains("/libc")).unwrap().to_owned()
}

fn command() -> Command {
    without_variables(Command::new(env!("CARGO_BIN_EXE_lumalloc")))
}

fn without_variables(mut command: Command) -> Command {
    command.arg("run");
    for variable in ["LD_PRELOAD", "LUMALLOC_CONF", "LUMALLOC_EXPORTER", "LUMALLOC_LIBRARY"] {
        command.env_remove(variable);
    }
    command
}

fn spawn(command: &mut Command) -> Child {
    let _some = SPAWNING.read().unwrap();
    let piped = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    piped.spawn().unwrap()
}

/// Returns the exit status, standard output and standard error.
fn outcome(command: &mut Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = spawn(command).wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

/// Returns the exit status and the message of `run` when it fails before there is a program.
fn refusal(command: &mut Command) -> (Option<i32>, String) {
    let (status, stdout, stderr) = outcome(command);
    assert_eq!(stdout, "");
    (status, stderr)
}

#[test]
fn the_program_gets_its_environment_and_keeps_its_status() {
    let library = harmless_library();
    let script = "echo \"$LD_PRELOAD|${LUMALLOC_CONF-unset}|$0|$1\"; exit 7";
    let words = ["--", "sh", "-c", script, "zero", "--one"];
    let result = outcome(command().args(["--library", &library]).args(words));
    assert_eq!(result, (Some(7), format!("{library}|unset|zero|--one\n"), String::new()));

    let mut full = command();
    full.env("LUMALLOC_LIBRARY", &library).env("LD_PRELOAD", &library);
    full.env("LUMALLOC_CONF", "narenas:4").args(["--conf", "narenas:1,tcache:false"]);
    let result = outcome(full.args(["--conf", "a.b:"]).args(words));
    let shown = format!("{library}|narenas:4,narenas:1,tcache:false,a.b:|zero|--one\n");
    assert_eq!(result, (Some(7), shown, String::new()));
}

#[test]
fn an_exporter_is_preloaded_behind_the_library_and_told_where() {
    let directory = Directory::new("exporter");
    let harmless = fs::read(harmless_library()).unwrap();
    let library = directory.file("liblumalloc.so", &harmless, 0o644);
    let script = "echo \"$LD_PRELOAD|${LUMALLOC_EXPORTER-unset}\"";
    let mut run = command();
    run.args(["--library", &library, "--exporter", "unix:/run/%p.sock", "--", "sh", "-c", script]);
    let (status, words) = refusal(&mut run);
    assert_eq!(status, Some(125));
    assert!(words.contains("liblumalloc_exporter.so: no such file: "), "{words}");
    let exporter = directory.file("liblumalloc_exporter.so", &harmless, 0o644);
    let shown = format!("{library}:{exporter}|unix:/run/%p.sock\n");
    assert_eq!(outcome(&mut run), (Some(0), shown, String::new()));
}

#[test]
fn the_exporter_s_variable_means_the_same_and_the_option_wins() {
    let directory = Directory::new("exporter-variable");
    let harmless = fs::read(harmless_library()).unwrap();
    let library = directory.file("liblumalloc.so", &harmless, 0o644);
    let script = "echo \"$LD_PRELOAD|${LUMALLOC_EXPORTER-unset}\"";
    let run = |variable: &str, options: &[&str]| {
        let mut run = command();
        run.env("LUMALLOC_EXPORTER", variable).args(["--library", &library]).args(options);
        outcome(run.args(["--", "sh", "-c", script]))
    };
    let shows = |shown: String| (Some(0), shown, String::new());
    let missing = format!(
        "lumalloc: run: {}: no such file: LUMALLOC_EXPORTER needs it beside liblumalloc.so; build \
         both with 'cargo build --release'\n",
        directory.0.join("liblumalloc_exporter.so").display()
    );
    assert_eq!(run("127.0.0.1:9464", &[]), (Some(125), String::new(), missing));
    assert_eq!(run("127.0.0.1:9464", &["--exporter", ""]), shows(format!("{library}|unset\n")));
    assert_eq!(run("", &[]), shows(format!("{library}|unset\n")));

    let exporter = directory.file("liblumalloc_exporter.so", &harmless, 0o644);
    let both = format!("{library}:{exporter}");
    let wish = "127.0.0.1:9464,program:sh";
    assert_eq!(run(wish, &[]), shows(format!("{both}|{wish}\n")));
    let options = ["--exporter", "unix:/run/%p.sock"];
    assert_eq!(run(wish, &options), shows(format!("{both}|unix:/run/%p.sock\n")));
}

#[test]
fn options_are_the_program_s_alone() {
    // The library in the program reports bad options. Here another library is preloaded, which does
    // not.
    let mut command = command();
    command.env("LUMALLOC_CONF", "nonsense:1").args(["--conf", "more:2"]);
    command.args(["--library", &harmless_library(), "--", "true"]);
    assert_eq!(outcome(&mut command), (Some(0), String::new(), String::new()));
}

#[test]
fn a_signal_is_the_programs_own() {
    use std::os::unix::process::ExitStatusExt;
    let library = harmless_library();
    let mut command = command();
    command.args(["--library", &library, "--", "sh", "-c", "kill -TERM $$"]);
    assert_eq!(spawn(&mut command).wait().unwrap().signal(), Some(15));
}

#[test]
fn a_closed_stream_stays_closed() {
    let run = env!("CARGO_BIN_EXE_lumalloc");
    let library = harmless_library();
    let looks = |stream: u8, before: &str| {
        let looks =
            format!("readlink -q /proc/$$/fd/{stream} >/dev/null && echo open || echo closed");
        let own = if stream == 1 { format!("({looks}) >&2; :") } else { looks };
        let script = format!("exec '{run}' run --library '{library}' -- sh -c '{own}' {before}");
        let (status, text, errors) = outcome(Command::new("sh").args(["-c", &script]));
        assert_eq!(status, Some(0));
        text + &errors
    };
    for (stream, closed) in [(0, "<&-"), (1, ">&-"), (2, "2>&-")] {
        assert_eq!(looks(stream, closed), "closed\n", "{closed}");
        assert_eq!(looks(stream, ""), "open\n", "{stream}");
    }
}

#[test]
fn an_ignored_broken_pipe_stays_ignored() {
    let run = env!("CARGO_BIN_EXE_lumalloc");
    let library = harmless_library();
    // The signal's bit in the mask of the ignored ones of the program.
    let looks = "grep SigIgn /proc/self/status";
    let ignores = |before: &str| {
        let script = format!("{before} exec '{run}' run --library '{library}' -- {looks}");
        let (status, text, errors) = outcome(Command::new("sh").args(["-c", &script]));
        assert_eq!((status, errors.as_str()), (Some(0), ""));
        let mask = u64::from_str_radix(text.trim_start_matches("SigIgn:").trim(), 16).unwrap();
        mask & 1 << (13 - 1) != 0
    };
    assert!(ignores("trap '' PIPE;"));
    assert!(!ignores(""));
}

#[test]
fn the_library_is_found_beside_the_executable_and_in_lib() {
    let directory = Directory::new("installed");
    let own = fs::read(env!("CARGO_BIN_EXE_lumalloc")).unwrap();
    let executable = directory.file("bin/lumalloc", &own, 0o755);
    let find = |expected: &str| {
        let mut command = Command::new(&executable);
        command.env_remove("LD_PRELOAD").env_remove("LUMALLOC_LIBRARY");
        let result = outcome(command.args(["run", "sh", "-c", "echo $LD_PRELOAD"]));
        assert_eq!(result, (Some(0), format!("{expected}\n"), String::new()));
    };
    let library = fs::read(harmless_library()).unwrap();
    find(&directory.file("lib/liblumalloc.so", &library, 0o644));
    find(&directory.file("bin/liblumalloc.so", &library, 0o644));
}

#[test]
fn a_missing_library_says_where_it_was_looked_for() {
    let directory = Directory::new("missing");
    let own = fs::read(env!("CARGO_BIN_EXE_lumalloc")).unwrap();
    let executable = directory.file("bin/lumalloc", &own, 0o755);
    let mut command = Command::new(executable);
    command.env_remove("LUMALLOC_LIBRARY").args(["run", "--", "true"]);
    let root = directory.0.display();
    let expected = format!(
        "lumalloc: run: liblumalloc.so not found: looked for {root}/bin/liblumalloc.so and \
         {root}/lib/liblumalloc.so, in {root}/lib/* and in {root}/lib64; build it with \
         'cargo build --release', or name it with --library PATH or LUMALLOC_LIBRARY\n"
    );
    assert_eq!(refusal(&mut command), (Some(125), expected));
}

#[test]
fn a_named_library_must_be_one() {
    let directory = Directory::new("named");
    let library = fs::read(harmless_library()).unwrap();
    let spaced = directory.file("a b.so", &library, 0o644);
    let script = directory.file("text.so", b"no library\n", 0o644);
    let cases = [
        ("/nowhere/l.so", "/nowhere/l.so (from --library): no such file".to_owned()),
        (&script, format!("{script}: not a shared library")),
        (&spaced, format!("{spaced}: a path with a space or a colon cannot stand in LD_PRELOAD")),
    ];
    for (path, words) in cases {
        let expected = (Some(125), format!("lumalloc: run: {words}\n"));
        assert_eq!(refusal(command().args(["--library", path, "--", "true"])), expected);
    }
    let expected = "lumalloc: run: /nowhere/l.so (from LUMALLOC_LIBRARY): no such file\n";
    let mut command = command();
    command.env("LUMALLOC_LIBRARY", "/nowhere/l.so").args(["--", "true"]);
    assert_eq!(refusal(&mut command), (Some(125), expected.to_owned()));
}

#[test]
fn programs_that_cannot_be_started() {
    let directory = Directory::new("programs");
    let library = harmless_library();
    let data = directory.file("data", b"text\n", 0o644);
    let orphan = directory.file("orphan", b"#!/nowhere/sh\n", 0o755);
    let cases = [
        ("no-such-program", 127, "no-such-program: program not found".to_owned()),
        ("./no-such-program", 127, "./no-such-program: program not found".to_owned()),
        ("", 127, "'': program not found".to_owned()),
        (&data, 126, format!("{data}: not executable")),
        ("/", 126, "/: is a directory".to_owned()),
        (&orphan, 126, format!("{orphan}: cannot be executed: no such file or directory")),
    ];
    for (program, status, words) in cases {
        let expected = (Some(status), format!("lumalloc: run: {words}\n"));
        assert_eq!(refusal(command().args(["--library", &library, "--", program])), expected);
    }
}

#[test]
fn arguments_are_checked_first() {
    let conf = refusal(command().args(["--conf", "narenas", "--", "true"]));
    let expected = "error: invalid value 'narenas' for '--conf <K:V,...>': 'narenas' is not \
                    KEY:VALUE\n\nFor more information, try '--help'.\n";
    assert_eq!(conf, (Some(125), expected.to_owned()));
    assert_eq!(refusal(&mut command()).0, Some(125));
}

/// Returns an executable without an interpreter, whose only code is `exit(5)`.
#[cfg(target_arch = "x86_64")]
fn static_program() -> Vec<u8> {
    const BASE: u64 = 0x40_0000;
    const CODE: [u8; 12] = [0xb8, 60, 0, 0, 0, 0xbf, 5, 0, 0, 0, 0x0f, 0x05];
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    let halves = |file: &mut Vec<u8>, numbers: &[u16]| {
        numbers.iter().for_each(|number| file.extend(number.to_le_bytes()));
    };
    let longs = |file: &mut Vec<u8>, numbers: &[u64]| {
        numbers.iter().for_each(|number| file.extend(number.to_le_bytes()));
    };
    halves(&mut file, &[2, 62, 1, 0]);
    longs(&mut file, &[BASE + 120, 64, 0]);
    halves(&mut file, &[0, 0, 64, 56, 1, 0, 0, 0]);
    halves(&mut file, &[1, 0, 5, 0]);
    longs(&mut file, &[0, BASE, BASE, 132, 132, 0x1000]);
    file.extend(CODE);
    file
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_static_program_runs_with_a_warning() {
    let directory = Directory::new("static");
    let program = directory.file("static", &static_program(), 0o755);
    let result = outcome(command().args(["--library", &harmless_library(), "--", &program]));
    let warning = format!(
        "lumalloc: run: warning: {program}: statically linked program; preloading has no effect\n"
    );
    assert_eq!(result, (Some(5), String::new(), warning));
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut unheard = command();
    unheard.args(["--library", &harmless_library(), "--", &program]).stderr(full);
    let _some = SPAWNING.read().unwrap();
    assert_eq!(unheard.status().unwrap().code(), Some(5));
}

/// The loader of glibc under the name that musl's has.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_program_for_another_c_library_runs_without_the_library() {
    let directory = Directory::new("musl");
    let theirs: &[u8] = b"/lib64/ld-linux-x86-64.so.2\0";
    let name = b"./ld-musl-x86_64.so.1";
    let mut bytes = fs::read("/usr/bin/printenv").unwrap();
    let at = bytes.windows(theirs.len()).position(|window| window == theirs).unwrap();
    bytes[at..at + theirs.len()].fill(0);
    bytes[at..at + name.len()].copy_from_slice(name);
    let program = directory.file("printenv", &bytes, 0o755);
    let loader = directory.0.join("ld-musl-x86_64.so.1");
    std::os::unix::fs::symlink("/lib64/ld-linux-x86-64.so.2", loader).unwrap();
    let mut run = command();
    run.args(["--library", &harmless_library(), "--", &program, "LD_PRELOAD"]);
    let result = outcome(run.current_dir(&directory.0));
    let warning = format!(
        "lumalloc: run: warning: {program}: program for musl, and the library is for glibc; \
         nothing is preloaded\n"
    );
    assert_eq!(result, (Some(1), String::new(), warning));
}
