//! Dashboards and alerts rely on the list of all families, so it changes only on purpose. The docs
//! have a table of them. `tests/run regenerate` writes both anew.

use super::families::families;
use super::family::Family;
use super::group::Group;
use super::kinds::Unit;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Compares a file with its expected text, or writes it.
fn is_golden(path: &str, expected: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        return fs::write(&file, expected).unwrap();
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    let differs = |(a, b): (&str, &str)| (a != b).then(|| format!("-{a}\n+{b}"));
    let difference = found.lines().zip(expected.lines()).find_map(differs);
    assert!(
        found == expected,
        "exporter/{path} is not what the table makes; if that is meant: \
         tests/run regenerate\n{}",
        difference.unwrap_or_else(|| "one is longer than the other".into()),
    );
}

fn unit(family: &Family) -> &'static str {
    if family.unit == Unit::None { "-" } else { family.unit.name() }
}

#[test]
fn the_list_of_families_changes_on_purpose_only() {
    let mut list = String::from("name\ttype\tunit\tlabels\tcollector\thelp\n");
    for family in families() {
        let labels = if family.labels.is_empty() { "-".into() } else { family.labels.join(",") };
        writeln!(
            list,
            "{}\t{}\t{}\t{labels}\t{}\t{}",
            family.name,
            family.kind.name(),
            unit(family),
            family.group.name(),
            family.help
        )
        .unwrap();
    }
    is_golden("golden/families.tsv", &list);
}

const HEAD: &str = "\
# All metrics

Made from the table in `exporter/src/metrics/families`. All are of one snapshot, which is taken for
the scrape. Counters never go back, whatever is reset in the allocator.

`/metrics` answers in the text format 0.0.4, or in OpenMetrics 1.0 to those who ask for it; by gzip
where it is accepted. `?collect[]=NAME` (again, or with commas) adds the collectors marked *detail*.
A collector that fails leaves its families out, and says so in `lumalloc_collector_success`.

Arenas are shown by their names; those that nobody named are together: `auto`, and `manual` for
created ones. The sum over the label `arena` is the number of all. What an arena counted stays with
its name when it is destroyed; what it counted after the last scrape stands under `destroyed`. There
are at most 64 labels, and none is given up, so that no count goes back: arenas of further names are
counted as `overflow` until the process ends. `?collect[]=arenas` shows these too, by index.

Regions of vmalloc(3) are shown by their names too, and only if there are any; those without a name
are together: `unnamed`. Numbers of regions of one name are summed. There are at most 64 labels: the
rest, in the order of their numbers, is summed as `overflow`. Numbers from 4096 on are left out.

Units of keys become base units: milliseconds and nanoseconds seconds, pages bytes. Never, and no
limit, is `+Inf`.

In OpenMetrics a counter of an arena has `_created`: when its name came. All others began with the
allocator: `lumalloc_start_time_seconds`.
";

#[test]
fn the_docs_are_made_from_the_table() {
    let mut page = String::from(HEAD);
    for group in Group::ALL {
        let detail = if group.is_detail() { " (detail)" } else { "" };
        write!(
            page,
            "\n## {}{detail}\n\n| metric | type | labels | | keys |\n|---|---|---|---|---|\n",
            group.name()
        )
        .unwrap();
        for family in families().iter().filter(|family| family.group == group) {
            let quoted = |names: &[&str]| match names {
                [] => String::new(),
                names => format!("`{}`", names.join("`, `")),
            };
            let mut keys = family.keys.clone();
            keys.dedup();
            let (labels, keys) = (quoted(&family.labels), quoted(&keys));
            let (name, kind, help) = (family.name, family.kind.name(), &family.help);
            writeln!(page, "| `{name}` | {kind} | {labels} | {help} | {keys} |").unwrap();
        }
    }
    is_golden("docs/metrics.md", &page);
}
