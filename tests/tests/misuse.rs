//! What misuse is caught: by default, in the hardened tier, and by glibc.
//!
//! Each misuse is a child process of a program in `tests/c`, `misuse.c`, `misuse.cc` or
//! `misuse_operators.cc` (preloaded), or of `alloc-core/examples/misuse.rs` (linked). Golden
//! results say how each ends, with the line that it prints; the table of `docs/misuse.md` is made
//! from them. `tests/run regenerate` writes both.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::Output;

use lumalloc_tests::run::ending;
use lumalloc_tests::{Run, cc};
use lumalloc_tests::{cargo, root, target_dir};

/// Small, some pages, a large block that does not fill its class, and one that does.
const SIZES: [usize; 4] = [16, 4096, 200_000, 1 << 20];
/// Runs of each child when the golden results are written.
const RUNS: usize = 12;
const SOMETIMES: &str = "sometimes";
const SEVERAL: &str = ": by one of several lines";
const GOLDEN: &str = "tests/golden/misuse.txt";
const PAGE: &str = "docs/misuse.md";
const BEGIN: &str = "<!-- The table is written by `tests/run regenerate`. -->\n";
const END: &str = "<!-- The end of the table. -->\n";

/// What stands between a misuse and the program that commits it.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Default,
    Hardened,
    Glibc,
}

const WAYS: [Way; 3] = [Way::Default, Way::Hardened, Way::Glibc];

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Default => "default",
            Way::Hardened => "hardened",
            Way::Glibc => "glibc",
        }
    }
}

/// A program with misuses.
struct Program {
    language: &'static str,
    path: PathBuf,
    /// Whether the allocator is part of the program, so that glibc's cannot take its place.
    is_linked: bool,
}

/// A misuse of a program: its name, and its sizes, or 0 if no size matters.
struct Kind {
    name: String,
    sizes: Vec<usize>,
}

fn programs() -> [Program; 4] {
    let rust = ["build", "--release", "--quiet", "-p", "lumalloc", "--example", "misuse"];
    cargo(&rust);
    let linked = target_dir().join("release/examples/misuse");
    let c = cc("misuse.c", &["-Wno-free-nonheap-object"]);
    [
        Program { language: "C", path: c, is_linked: false },
        Program { language: "operators", path: cc("misuse_operators.cc", &[]), is_linked: false },
        Program { language: "C++", path: cc("misuse.cc", &[]), is_linked: false },
        Program { language: "Rust", path: linked, is_linked: true },
    ]
}

impl Program {
    fn kinds(&self) -> Vec<Kind> {
        let list = Run::plain(&self.path).args(["list"]).stdout();
        let kind = |line: &str| match line.strip_suffix(" sized") {
            Some(name) => Kind { name: name.to_owned(), sizes: SIZES.to_vec() },
            None => Kind { name: line.to_owned(), sizes: vec![0] },
        };
        list.lines().map(kind).collect()
    }

    /// Returns how a misuse ends, and the line that it prints. `None` if it cannot be tried.
    fn commit(&self, kind: &str, size: usize, way: Way) -> Option<String> {
        if self.is_linked && way == Way::Glibc {
            return None;
        }
        let run = if self.is_linked || way == Way::Glibc {
            Run::plain(&self.path)
        } else {
            Run::preloaded(&self.path)
        };
        let conf = if way == Way::Hardened { "hardened:true" } else { "" };
        let args = [kind.to_owned(), size.to_string()];
        Some(result(&run.conf(conf).args(args).output()))
    }

    /// As [`Program::commit`], several times. Results that differ are told as `sometimes`.
    fn commit_often(&self, kind: &str, size: usize, way: Way) -> Option<String> {
        let results: Option<BTreeSet<String>> =
            (0..RUNS).map(|_| self.commit(kind, size, way)).collect();
        let results = results?;
        let states: BTreeSet<&str> = results.iter().map(|result| state(result)).collect();
        let all = results.first().expect("a run");
        Some(match (results.len(), states.len()) {
            (1, _) => all.clone(),
            (_, 1) => format!("{}{SEVERAL}", state(all)),
            _ => SOMETIMES.to_owned(),
        })
    }
}

/// Returns what stands before the first colon.
fn state(result: &str) -> &str {
    result.split(':').next().unwrap_or_default()
}

fn result(output: &Output) -> String {
    let is_unnoticed = output.stdout.starts_with(b"unnoticed");
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said.lines().next().map(general).unwrap_or_default();
    match (ending(output.status).as_str(), is_unnoticed) {
        ("exit 0", true) => "no".to_owned(),
        ("exit 0", false) => "kept".to_owned(),
        (how, true) => format!("at exit: {how} {line}").trim_end().to_owned(),
        (how, false) => format!("at once: {how} {line}").trim_end().to_owned(),
    }
}

/// Returns a message without what differs from run to run: addresses, the owner, the callers.
fn general(line: &str) -> String {
    let line = line.split("; from ").next().unwrap_or_default();
    let mut words = Vec::new();
    for word in line.split(' ') {
        let rest =
            word.trim_start_matches("0x").trim_start_matches(|c: char| c.is_ascii_hexdigit());
        let is_address = word.starts_with("0x");
        words.push(if is_address { format!("{{hex}}{rest}") } else { word.to_owned() });
    }
    words.join(" ").replace(", owner cache 0)", "{owner})").replace(", owner cache 1)", "{owner})")
}

/// A misuse of a size, and its result in each way.
struct Row {
    language: &'static str,
    name: String,
    size: usize,
    results: [Option<String>; 3],
}

fn all_rows(runs: impl Fn(&Program, &str, usize, Way) -> Option<String>) -> Vec<Row> {
    let mut rows = Vec::new();
    for program in programs() {
        for Kind { name, sizes } in program.kinds() {
            for size in sizes {
                let results = WAYS.map(|way| runs(&program, &name, size, way));
                let (language, name) = (program.language, name.clone());
                rows.push(Row { language, name, size, results });
            }
        }
    }
    rows
}

/// The line above the results of a misuse.
fn heading(language: &str, name: &str, size: usize) -> String {
    let size = if size == 0 { String::new() } else { format!(" {size}") };
    format!("{language} {name}{size}")
}

/// Returns the golden results that differ from run to run, by heading and way.
fn open(golden: &str) -> BTreeMap<(&str, &str), &str> {
    let mut heading = "";
    let mut open = BTreeMap::new();
    for line in golden.lines() {
        let Some(result) = line.strip_prefix("  ") else {
            heading = line;
            continue;
        };
        if is_open(result) {
            let (way, result) = result.split_once(' ').expect("a way and a result");
            open.insert((heading, way), result.trim_start());
        }
    }
    open
}

/// Returns whether a golden result differs from run to run.
fn is_open(result: &str) -> bool {
    result.ends_with(&format!(" {SOMETIMES}")) || result.ends_with(SEVERAL)
}

fn golden(rows: &[Row]) -> String {
    let mut text = String::new();
    for Row { language, name, size, results } in rows {
        text += &format!("{}\n", heading(language, name, *size));
        for (way, result) in WAYS.iter().zip(results) {
            if let Some(result) = result {
                text += &format!("  {:8} {result}\n", way.name());
            }
        }
    }
    text
}

/// The table of the page: a line for each kind, a column for each way, the sizes side by side.
fn table(golden: &str) -> String {
    let mut lines: Vec<(String, [Vec<String>; 3])> = Vec::new();
    for line in golden.lines() {
        if let Some(result) = line.strip_prefix("  ") {
            let (way, result) = result.split_once(' ').expect("a way and a result");
            let at = WAYS.iter().position(|its| its.name() == way).expect("a way");
            let cells = &mut lines.last_mut().expect("a kind").1[at];
            cells.push(state(result.trim_start()).to_owned());
        } else {
            let words: Vec<&str> = line.split(' ').collect();
            let name = format!("{} | {}", words[0], words[1].replace('_', " "));
            if lines.last().is_none_or(|(last, _)| *last != name) {
                lines.push((name, Default::default()));
            }
        }
    }
    let mut text =
        String::from("| | misuse | default | hardened | glibc |\n|---|---|---|---|---|\n");
    for (name, cells) in &lines {
        let cells = cells.each_ref().map(|cells| short(cells));
        text += &format!("| {name} | {} |\n", cells.join(" | "));
    }
    text + &counts(&lines)
}

/// The states of the sizes of a kind. One word if they are equal.
fn short(cells: &[String]) -> String {
    let is_same = cells.windows(2).all(|two| two[0] == two[1]);
    match cells.first() {
        None => "–".to_owned(),
        Some(all) if is_same => all.clone(),
        Some(_) => cells.join(", "),
    }
}

/// All states of a result.
const ALL: &[&str] = &["at once", "at exit", "kept", SOMETIMES, "no"];

/// The lines below the table: in how many programs the misuse is found.
fn counts(lines: &[(String, [Vec<String>; 3])]) -> String {
    let of = |languages: &[&str], column: usize, states: &[&str]| {
        let is_of =
            |name: &str| name.split_once(" | ").is_some_and(|(l, _)| languages.contains(&l));
        let each = lines.iter().filter(|(name, _)| is_of(name));
        let cells = each.flat_map(|(_, cells)| &cells[column]);
        cells.filter(|cell| states.contains(&cell.as_str())).count()
    };
    let rows = |languages: &[&str]| {
        let row = |name: &str, states: &[&str]| {
            let counts = [0, 1, 2].map(|column| match of(languages, column, ALL) {
                0 => "–".to_owned(),
                _ => of(languages, column, states).to_string(),
            });
            format!("| {} | **{name}** | {} |\n", languages.join(", "), counts.join(" | "))
        };
        row("programs", ALL)
            + &row("found, or the promise kept", &["at once", "at exit", "kept"])
            + &row("of these, at exit only", &["at exit"])
    };
    rows(&["C", "operators"]) + &rows(&["C++"]) + &rows(&["Rust"])
}

fn with_table(page: &str, table: &str) -> String {
    let (before, rest) = page.split_once(BEGIN).expect("the beginning of the table");
    let (_, after) = rest.split_once(END).expect("the end of the table");
    format!("{before}{BEGIN}\n{table}\n{END}{after}")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Compares lumalloc's results. Those of glibc depend on its version.
#[test]
fn each_misuse_ends_as_the_golden_results_say() {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        // What differs from run to run stays open, because some results are rare. A line that is no
        // longer open has to be deleted before this.
        let before = read(GOLDEN);
        let open = open(&before);
        let golden = golden(&all_rows(|program, kind, size, way| {
            let heading = heading(program.language, kind, size);
            match open.get(&(heading.as_str(), way.name())) {
                Some(result) => Some((*result).to_owned()),
                None => program.commit_often(kind, size, way),
            }
        }));
        let page = with_table(&read(PAGE), &table(&golden));
        fs::write(root().join(GOLDEN), golden).expect("written");
        fs::write(root().join(PAGE), page).expect("written");
        return;
    }
    let rows = all_rows(|program, kind, size, way| match way {
        Way::Glibc => None,
        _ => program.commit(kind, size, way),
    });
    let expected = read(GOLDEN);
    let expected: Vec<&str> =
        expected.lines().filter(|line| !line.starts_with("  glibc")).collect();
    let seen = golden(&rows);
    let (mut kind, mut wrong) = ("", String::new());
    assert_eq!(seen.lines().count(), expected.len(), "as many results");
    for (seen, expected) in seen.lines().zip(expected) {
        if !expected.starts_with("  ") {
            kind = expected;
        }
        let is_open = expected.ends_with(&format!(" {SOMETIMES}"))
            || expected.strip_suffix(SEVERAL).is_some_and(|begin| seen.starts_with(begin));
        if !is_open && seen != expected {
            wrong += &format!("{kind}\n seen    {seen}\n expected{expected}\n");
        }
    }
    assert!(wrong.is_empty(), "tests/run regenerate writes the results anew\n{wrong}");
}

#[test]
fn the_table_of_the_page_is_made_from_the_golden_results() {
    if std::env::var_os("UPDATE_GOLDEN").is_none() {
        let page = read(PAGE);
        assert_eq!(page, with_table(&page, &table(&read(GOLDEN))), "tests/run regenerate");
    }
}
