//! What programs rely on: the names of keys with their types, in a list that changes only on
//! purpose, and the names of jemalloc. Also the table and the section of the man page that are made
//! from the rows.
//!
//! `tests/run regenerate` writes all these files anew.

use lumalloc_namespace::key_table::rows;
use lumalloc_namespace::{Row, Type};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Compares a file with its expected text, or writes it.
fn is_golden(path: &str, expected: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&file, expected).expect("the file");
        return;
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    let differs = |(a, b): (&str, &str)| (a != b).then(|| format!("-{a}\n+{b}"));
    let difference = found.lines().zip(expected.lines()).find_map(differs);
    assert!(
        found == expected,
        "namespace/{path} is not what the rows make; if that is meant: \
         tests/run regenerate\n{}",
        difference.unwrap_or_else(|| "one is longer than the other".into()),
    );
}

fn text(text: &core::ffi::CStr) -> &str {
    text.to_str().expect("text of a row")
}

/// All rows by name.
fn by_name() -> BTreeMap<&'static str, &'static Row> {
    rows().iter().map(|row| (row.name(), row)).collect()
}

/// The type of a row, with its input: `in → out`.
fn kind(row: &Row) -> String {
    let out = text(row.kind.c_name());
    row.access.input().map_or(out.into(), |input| format!("{} → {out}", text(input.c_name())))
}

#[test]
fn the_list_of_names_changes_on_purpose_only() {
    let mut list = String::new();
    for (name, row) in by_name() {
        let access = text(row.access.notation());
        let (unit, stability) = (text(row.unit.name()), text(row.stability.name()));
        writeln!(list, "{name}\t{}\t{access}\t{unit}\t{stability}", kind(row)).unwrap();
    }
    is_golden("golden/names.tsv", &list);
}

/// Names of jemalloc, each with its type and access.
fn of_jemalloc() -> Vec<(&'static str, &'static str, &'static str)> {
    let lists =
        [include_str!("../golden/jemalloc-5.0.tsv"), include_str!("../golden/jemalloc-later.tsv")];
    let lines = lists.into_iter().flat_map(|list| list.lines().skip(1));
    let columns = |line: &'static str| {
        let mut columns = line.split('\t');
        let mut next = || columns.next().expect("three columns");
        (next(), next(), next())
    };
    lines.map(columns).collect()
}

#[test]
fn every_name_of_jemalloc_is_there_with_its_type() {
    let rows = by_name();
    let names = of_jemalloc();
    assert_eq!(names.len(), 226 + 88, "5.0, and later ones that mean something here");
    let mut missing = String::new();
    for (name, kind, access) in names {
        let Some(row) = rows.get(name) else {
            writeln!(missing, "{name}").unwrap();
            continue;
        };
        assert_eq!(text(row.access.notation()), access, "{name}");
        if !matches!(row.kind, Type::Layout(_)) {
            // Input texts are only read, but jemalloc's manual does not always say `const`.
            let constant = |kind: &str| kind.trim_start_matches("const ").to_owned();
            assert_eq!(constant(text(row.kind.c_name())), constant(kind), "{name}");
        }
    }
    is_golden("golden/missing.txt", &missing);
}

/// Names of jemalloc that have no use here, with the reason.
fn left_out() -> Vec<(&'static str, &'static str)> {
    let lines = include_str!("../golden/jemalloc-left-out.tsv").lines().skip(1);
    lines.map(|line| line.split_once('\t').expect("two columns")).collect()
}

#[test]
fn what_is_left_out_has_a_reason_and_no_row() {
    let rows = by_name();
    let left_out = left_out();
    assert_eq!(left_out.len() + of_jemalloc().len(), 462, "all names of 5.0 to 5.3.1 and after");
    for (name, reason) in left_out {
        assert!(!rows.contains_key(name), "{name} is there");
        assert!(reason.len() > 10, "{name}");
    }
}

/// The rows by the first component of their names.
fn by_branch() -> BTreeMap<&'static str, Vec<&'static Row>> {
    let mut branches = BTreeMap::<_, Vec<_>>::new();
    for (name, row) in by_name() {
        let branch = name.split_once('.').map_or("", |(branch, _)| branch);
        branches.entry(branch).or_default().push(row);
    }
    branches
}

#[test]
fn the_table_of_the_docs_is_made_from_the_rows() {
    let mut table = String::from(
        "# All keys\n\n\
         Made from the rows of `namespace/src/rows`. *Access*: `r-` read, `-w` write, `rw` both, \
         `--` an action. `in → out`: what\ncomes in by `newp` while something is read. `ENOENT` in \
         the last column: the name exists, and answers so because it is\nnot built in. `<i>` \
         stands for an index. 4096 means all arenas in `stats.arenas.<i>.*` and in `initialized`, \
         `decay`, `purge`\nand `dss` of `arena.<i>.*`, whose other keys need one arena; 4097 means \
         those destroyed, in `stats.arenas.<i>.*`.\n",
    );
    for (branch, rows) in by_branch() {
        let title = if branch.is_empty() { "version, epoch, …" } else { branch };
        write!(table, "\n## {title}\n\n| name | type | access | unit | |\n|---|---|---|---|---|\n")
            .unwrap();
        for row in rows {
            let access = text(row.access.notation());
            let note = note(row);
            let (unit, help) = (text(row.unit.name()), text(row.help()).replace('|', "\\|"));
            let kind = kind(row);
            writeln!(table, "| `{}` | `{kind}` | `{access}` | {unit} | {help}{note} |", row.name())
                .unwrap();
        }
    }
    let mut reasons = BTreeMap::<_, Vec<_>>::new();
    for (name, reason) in left_out() {
        reasons.entry(reason).or_default().push(name);
    }
    table += "\n## Names of jemalloc that are not here\n\nThey answer `ENOENT`.\n\n";
    for (reason, names) in reasons {
        writeln!(table, "- {reason}: `{}`", names.join("`, `")).unwrap();
    }
    is_golden("docs/names.md", &table);
}

/// The stability, if it is not stable, and whether the key is absent.
fn note(row: &Row) -> String {
    let mut note = String::new();
    if text(row.stability.name()) != "stable" {
        write!(note, " ({})", text(row.stability.name())).unwrap();
    }
    if matches!(row.access, lumalloc_namespace::Access::Absent(_)) {
        note.push_str(" (ENOENT)");
    }
    note
}

#[test]
fn the_section_of_the_man_page_is_made_from_the_rows() {
    let mut page = String::from(".\\\" Made from the rows of namespace/src/rows.\n");
    for (branch, rows) in by_branch() {
        if !branch.is_empty() {
            writeln!(page, ".SS {}", escaped(branch)).unwrap();
        }
        for row in rows {
            let access = escaped(text(row.access.notation()));
            let kind = escaped(&kind(row).replace('→', "->"));
            let unit = match text(row.unit.name()) {
                "-" | "count" => String::new(),
                unit => format!(", {unit}"),
            };
            writeln!(page, ".TP\n.B {}", escaped(row.name())).unwrap();
            let help = escaped(text(row.help()));
            writeln!(page, "({kind}, {access}{unit}) {help}{}.", escaped(&note(row))).unwrap();
        }
    }
    is_golden("docs/names.troff", &page);
}

/// Escapes text for troff. The fields begin no line with a dot or a quote.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}
