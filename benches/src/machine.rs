//! The machine on which the numbers were measured: they mean little without it.

use crate::prepare::{Contender, finish};
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
