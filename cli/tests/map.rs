//! `lumalloc map` beside an exporter of this process.

use lumalloc_exporter::Exporter;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

#[global_allocator]
static ALLOCATOR: lumalloc::Lumalloc = lumalloc::Lumalloc;

/// Returns the exit status, standard output and standard error of `lumalloc map`.
fn map(words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lumalloc"));
    let Output { status, stdout, stderr } = command.arg("map").args(words).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

#[track_caller]
fn shown(words: &[&str]) -> String {
    let (status, text, complaint) = map(words);
    assert_eq!((status, complaint.as_str()), (Some(0), ""), "{words:?}");
    text
}

fn exporter() -> (Exporter, String) {
    let exporter = Exporter::builder().listen("127.0.0.1:0".parse().unwrap()).start().unwrap();
    let address = exporter.address().unwrap().to_string();
    (exporter, address)
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[test]
fn the_picture_json_and_a_place_tell_of_a_block() {
    let (_exporter, address) = exporter();
    // Two rows of cells. Wherever it begins, one row shows nearly nothing else.
    let block = vec![1u8; 8 << 20];
    let base = block.as_ptr().addr();
    let picture = shown(&[&address, "--cell", "16", "--width", "64"]);
    assert!(picture.contains(&"L".repeat(60)), "{picture}");
    assert!(picture.contains("\nA cell is 64 KiB.\n") && !picture.contains('\x1b'), "{picture}");
    let json = shown(&[&format!("http://{address}/"), "--json"]);
    let run = json.lines().find(|line| line.contains(&format!("\"base\":\"{base:#x}\"")));
    assert!(run.is_some_and(|run| run.contains("\"state\":\"large\"")), "{run:?}");
    let place = shown(&[&address, "--at", &format!("{:x}", base + 5000)]);
    let first = format!("{:#x}: large, 8 MiB from {base:#x} on, arena ", base + 5000);
    assert!(place.starts_with(&first), "{place}");
}

/// The exporter is asked for 10000 runs at a time.
#[test]
fn a_long_map_is_fetched_in_parts() {
    let (_exporter, address) = exporter();
    let blocks: Vec<*mut u8> = (0..10_500).map(|_| lumalloc::raw::malloc(40 << 10)).collect();
    let json = shown(&[&address, "--json"]);
    let bases: std::collections::BTreeSet<&str> = json
        .lines()
        .filter_map(|line| line.strip_prefix("{\"base\":\"")?.split('"').next())
        .collect();
    let missing = blocks.iter().filter(|block| !bases.contains(&*format!("{:#x}", block.addr())));
    assert_eq!(missing.count(), 0);
}

#[test]
fn a_block_that_came_and_one_that_went_are_told() {
    let (_exporter, address) = exporter();
    let [before, after] = ["before.json", "after.json"].map(file);
    let gone = vec![1u8; 3 << 20];
    std::fs::write(&before, shown(&[&address, "--json"])).unwrap();
    drop(gone);
    let _come = vec![1u8; 5 << 20];
    std::fs::write(&after, shown(&[&address, "--json"])).unwrap();
    let [before, after] = [&before, &after].map(|path| path.to_str().unwrap());
    let told = shown(&["--diff", before, after]);
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = told.lines().map(words).collect();
    assert!(lines.contains(&"5 MiB 0 B 5 MiB +5 MiB".to_owned()), "{told}");
    assert!(lines.contains(&"3 MiB 3 MiB 0 B -3 MiB".to_owned()), "{told}");
    assert!(told.contains('+'), "{told}");
    let live = shown(&[&address, "--diff", before, "--letters"]);
    assert!(live.contains(" +  in use now, and was not\n"), "{live}");
}

/// The process of the next test: serves at a socket that has its number in its name.
#[test]
fn serves_for_another_test() {
    let wish = std::env::var("LUMALLOC_EXPORTER").unwrap_or_default();
    if !wish.starts_with("unix:map-%p.sock") {
        return;
    }
    let path = format!("map-{}.sock", std::process::id());
    let _exporter = Exporter::builder().listen_unix(&path).start().unwrap();
    std::io::stdout().write_all(b"x").unwrap();
    std::io::stdout().flush().unwrap();
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn a_process_names_its_exporter_in_its_environment() {
    let mut other = Command::new(std::env::current_exe().unwrap());
    other.args(["--exact", "serves_for_another_test", "--nocapture", "-q"]);
    other.env("LUMALLOC_EXPORTER", "unix:map-%p.sock,program:x").current_dir(file(""));
    let mut other = other.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut text = String::new();
    let from = other.stdout.as_mut().unwrap();
    while !text.ends_with('x') {
        let mut byte = [0];
        from.read_exact(&mut byte).unwrap();
        text.push(char::from(byte[0]));
    }
    let (status, text, complaint) = map(&["--pid", &other.id().to_string()]);
    other.kill().unwrap();
    other.wait().unwrap();
    let _ = std::fs::remove_file(file(&format!("map-{}.sock", other.id())));
    assert_eq!((status, complaint.as_str()), (Some(0), ""));
    assert!(text.contains(" slab "), "{text}");
}

/// A child has the environment of its parent, but not its exporter.
#[test]
fn the_heap_of_another_process_is_not_shown() {
    let (_exporter, address) = exporter();
    let mut other = Command::new("cat");
    other.env("LUMALLOC_EXPORTER", format!("{address},program:x"));
    let mut other = other.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    other.stdin.as_mut().unwrap().write_all(b"x").unwrap();
    // A process has its environment only when its program has begun.
    other.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let (theirs, ours) = (other.id(), std::process::id());
    for more in [&[][..], &["--at", "0x10"]] {
        let answer = map(&[&["--pid", &theirs.to_string()][..], more].concat());
        let expected = format!(
            "lumalloc: map: process {theirs} does not serve its heap: {address} is the exporter of \
             process {ours}\n"
        );
        assert_eq!(answer, (Some(1), String::new(), expected));
    }
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn a_port_that_the_system_chose_is_not_in_the_environment() {
    let mut other = Command::new("cat");
    other.env("LUMALLOC_EXPORTER", "127.0.0.1:0,program:x");
    let mut other = other.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    other.stdin.as_mut().unwrap().write_all(b"x").unwrap();
    // A process has its environment only when its program has begun.
    other.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let answer = map(&["--pid", &other.id().to_string()]);
    other.kill().unwrap();
    other.wait().unwrap();
    let expected = format!(
        "lumalloc: map: the system chose the port of the exporter of process {} (port 0): name the \
         address, which it said on standard error, in place of --pid\n",
        other.id()
    );
    assert_eq!(answer, (Some(1), String::new(), expected));
}

#[test]
fn a_socket_and_one_arena() {
    let path = file("map.sock");
    let _ = std::fs::remove_file(&path);
    let _exporter = Exporter::builder().listen_unix(&path).start().unwrap();
    let socket = format!("unix:{}", path.display());
    let arena = lumalloc::Arena::new().unwrap();
    let block = arena.run(|| lumalloc::raw::malloc(100)).unwrap();
    let json = shown(&[&socket, "--json", "--arena", &arena.index().to_string()]);
    let address = format!("\"base\":\"{:#x}\"", block.addr() & !4095);
    assert!(json.contains(&address) && !json.contains("\"arena\":null"), "{json}");
}

#[test]
fn a_token_opens_what_asks_for_one() {
    let path = file("map.token");
    let _ = std::fs::remove_file(&path);
    let mut options = std::fs::OpenOptions::new();
    let mut made = options.write(true).create_new(true).mode(0o600).open(&path).unwrap();
    made.write_all(b"0123456789abcdef0123456789abcdef\n").unwrap();
    let builder = Exporter::builder().listen("127.0.0.1:0".parse().unwrap()).token_file(&path);
    let exporter = builder.start().unwrap();
    let address = exporter.address().unwrap().to_string();
    let (status, _, complaint) = map(&[&address]);
    let begin = format!("lumalloc: map: {address} refused with 401: ");
    assert!(status == Some(1) && complaint.starts_with(&begin), "{complaint}");
    let picture = shown(&[&address, "--token-file", path.to_str().unwrap()]);
    assert!(picture.contains(" slab "), "{picture}");
}

#[test]
fn what_fails_is_said_in_a_line() {
    let (_exporter, address) = exporter();
    let empty = file("no-runs.json").to_str().unwrap().to_owned();
    std::fs::write(&empty, "{\"page\":4096,\"runs\":[],\"next\":null}").unwrap();
    let nonsense = file("nonsense.json");
    std::fs::write(&nonsense, "{}").unwrap();
    let nonsense = nonsense.to_str().unwrap();
    let control = file("control.json");
    std::fs::write(&control, "{\"page\":4096,\"runs\":[{\"base\":\"\\u001b[2J\"").unwrap();
    let control = control.to_str().unwrap();
    let long = file("long-run.json");
    let run = r#"{"base":"0xffffffffffff0000","bytes":65537,"state":"slab","arena":0,"block":0,
        "blocks":0,"used":0,"huge":false,"purgeable":0,"absent":0,"oldest_ms":null}"#;
    std::fs::write(&long, format!("{{\"page\":4096,\"runs\":[{run}],\"next\":null}}")).unwrap();
    let long = long.to_str().unwrap();
    for (words, expected) in [
        (vec![&*address, "--at", "0x10"], "0x10 does not lie in the heap".to_owned()),
        (
            vec![&address, "--arena", "4000"],
            format!("{address} refused with 404: no such arena: 4000"),
        ),
        (vec![&empty, "--arena", "77"], format!("{empty} has no run of arena 77")),
        (
            vec![&empty, "--arena", "77", "--diff", &empty],
            format!("{empty} has no run of arena 77"),
        ),
        (
            vec!["unix:/nowhere"],
            "cannot connect to unix:/nowhere: no such file or directory".into(),
        ),
        (vec!["nothing.json"], "cannot read nothing.json: no such file or directory".into()),
        (
            vec![nonsense],
            format!(
                "{nonsense} is not what `lumalloc map --json` writes: \
                 missing field `page` at line 1 column 2"
            ),
        ),
        (
            vec![long],
            format!(
                "{long} is not what `lumalloc map --json` writes: the run at 0xffffffffffff0000 \
                 ends behind the last address"
            ),
        ),
        (
            vec![control],
            format!(
                "{control} is not what `lumalloc map --json` writes: '\u{fffd}[2J' is not an \
                 address like 0x7f0000001000 at line 1 column 40"
            ),
        ),
    ] {
        let expected = (Some(1), String::new(), format!("lumalloc: map: {expected}\n"));
        assert_eq!(map(&words), expected, "{words:?}");
    }
    let (status, _, complaint) = map(&["--json", "--at", "0x10"]);
    assert_eq!(status, Some(2), "{complaint}");
}
