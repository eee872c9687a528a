//! The machine on which the numbers were measured: they mean little without it.

use crate::commands::finish;
use crate::prepare::Contender;
use std::fs;
use std::process::Command;

/// Facts as pairs of name and value, in the order in which they are printed.
pub(crate) fn facts(contenders: &[Contender], command_line: &str) -> Vec<(String, String)> {
    let mut facts = vec![
        fact("command", format!("cargo run --release -p lumalloc-bench -- {command_line}")),
        fact("date", said(Command::new("date").args(["-u", "+%F"]))),
        fact("machine", format!("{}, {} cores", processor(), cores())),
        fact("kernel", file("/proc/sys/kernel/osrelease")),
        fact("huge pages", file("/sys/kernel/mm/transparent_hugepage/enabled")),
        fact("load at start", file("/proc/loadavg")),
        fact("rustc", said(Command::new("rustc").arg("--version"))),
        fact("gcc", said(Command::new("gcc").arg("-dumpfullversion"))),
    ];
    for contender in contenders {
        let (c, rust) = &contender.versions;
        let doors = [("from C", c), ("from Rust", rust)];
        let versions: Vec<String> = doors
            .iter()
            .filter_map(|(door, version)| version.as_ref().map(|v| format!("{door} {v}")))
            .collect();
        if !versions.is_empty() {
            facts.push(fact(contender.peer.name, versions.join(", ")));
        }
    }
    facts
}

/// Those of the newer facts, and behind them the earlier ones that differ, for rows that were
/// measured earlier and are kept.
pub(crate) fn merged(
    newer: Vec<(String, String)>,
    earlier: Vec<(String, String)>,
) -> Vec<(String, String)> {
    let mut facts = newer;
    for (name, value) in earlier {
        let name = match name.strip_suffix(OF_EARLIER) {
            Some(_) => name,
            None if facts.contains(&(name.clone(), value.clone())) => continue,
            None => name + OF_EARLIER,
        };
        let fact = (name, value);
        if !facts.contains(&fact) {
            facts.push(fact);
        }
    }
    facts
}

/// Follows the names of facts of rows that were measured before others of the same file.
const OF_EARLIER: &str = ", of earlier rows";

fn fact(name: &str, value: String) -> (String, String) {
    (name.to_owned(), value)
}

fn said(command: &mut Command) -> String {
    finish(command).unwrap_or_else(|_| "unknown".to_owned())
}

fn file(path: &str) -> String {
    fs::read_to_string(path).map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

fn processor() -> String {
    let cpus = file("/proc/cpuinfo");
    let value = |key: &str| -> String {
        let line = cpus.lines().find(|line| line.starts_with(key));
        line.and_then(|l| l.split(':').nth(1)).unwrap_or("?").trim().to_owned()
    };
    // Virtual machines often hide the model's name, but family and model number identify it.
    format!("{} (family {}, model {})", value("model name"), value("cpu family"), value("model\t"))
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::{fact, merged};

    #[test]
    fn facts_of_earlier_rows_stay_where_they_differ() {
        let facts = |command: &str| {
            vec![fact("command", command.to_owned()), fact("kernel", "6".to_owned())]
        };
        let two = merged(facts("second"), facts("first"));
        let names = |facts: &[(String, String)]| -> Vec<String> {
            facts.iter().map(|(name, value)| format!("{name}: {value}")).collect()
        };
        let earlier = "command, of earlier rows: first";
        assert_eq!(names(&two), ["command: second", "kernel: 6", earlier]);
        let three = merged(facts("third"), two);
        let second = "command, of earlier rows: second";
        assert_eq!(names(&three), ["command: third", "kernel: 6", second, earlier]);
    }
}
