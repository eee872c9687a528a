//! What jeprof and pprof report of a profile.

use crate::build::{cc, pprof as pprof_program, scratch};
use crate::run::Run;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a tool says of a profile.
pub struct Report {
    /// The sum of all places.
    pub total: u64,
    /// Of each function: the numbers of it alone, and with what it calls.
    of: HashMap<String, (u64, u64)>,
}

impl Report {
    /// The number of this function alone.
    pub fn alone(&self, function: &str) -> u64 {
        self.of.get(function).map_or(0, |(alone, _)| *alone)
    }

    /// The number of this function and of what it calls.
    pub fn with_callees(&self, function: &str) -> u64 {
        self.of.get(function).map_or(0, |(_, all)| *all)
    }
}

/// Runs jeprof on a profile of a program.
pub fn jeprof(program: &Path, profile: &Path, options: &[&str]) -> Report {
    let output = Command::new("jeprof")
        .args(["--text", "--show_bytes"])
        .args(options)
        .args([program, profile])
        .output()
        .expect("jeprof starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_else(|| panic!("no report: {errors}"));
    // Total: 112 B, or with --thread: Total (t7): 112 B
    let total = first.split_whitespace().nth_back(1).and_then(|number| number.parse().ok());
    let row = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [alone, _, _, all, _, name @ ..] = fields.as_slice() else { panic!("{line}") };
        let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("{line}"));
        (name.join(" "), (number(alone), number(all)))
    };
    Report { total: total.expect("a total"), of: lines.map(row).collect() }
}

/// Runs pprof on a profile of a program, for one type of values. An empty program is the one that
/// the profile names. `what`: more options.
pub fn pprof(program: &Path, profile: &Path, values: &str, what: &[&str]) -> Report {
    let text = pprof_text(program, profile, &[&["-top", values], what].concat());
    let (head, rows) = text.split_once(" flat  flat%").unwrap_or_else(|| panic!("{text}"));
    let number = |text: &str| {
        let digits = text.trim_end_matches('B').trim_end_matches("bytes");
        digits.parse().unwrap_or_else(|_| panic!("{text}"))
    };
    let total = head.split(" of ").last().and_then(|rest| rest.split_whitespace().next());
    let row = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [alone, _, _, all, _, name @ ..] = fields.as_slice() else { panic!("{line}") };
        (without_hash(&name.join(" ")), (number(alone), number(all)))
    };
    Report {
        total: number(total.unwrap_or_else(|| panic!("{text}"))),
        of: rows.lines().skip(1).map(row).collect(),
    }
}

/// A name without the hash of Rust's older names, `shop::boxed::h0123456789abcdef`, which pprof
/// leaves in.
fn without_hash(name: &str) -> String {
    let is_hash =
        |text: &str| text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let plain = name.rsplit_once("::h").filter(|(_, hash)| is_hash(hash));
    plain.map_or(name, |(plain, _)| plain).to_owned()
}

/// As [`pprof`], but returns the text.
pub fn pprof_text(program: &Path, profile: &Path, options: &[&str]) -> String {
    text_of(Command::new(pprof_program()), program, profile, options)
}

/// As [`pprof_text`], by `go tool pprof`. In programs that are not of Go it often finds no names,
/// or wrong ones.
pub fn go_pprof_text(profile: &Path, options: &[&str]) -> String {
    text_of(go_pprof(), Path::new(""), profile, options)
}

/// What `go tool pprof` says of a profile that it does not get.
pub fn go_pprof_errors(profile: &Path) -> String {
    let output = go_pprof().arg("-top").arg(profile).output().expect("pprof starts");
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn go_pprof() -> Command {
    let mut go = Command::new("go");
    // It keeps what it fetches.
    go.args(["tool", "pprof"]).env("PPROF_TMPDIR", scratch("go-tool-pprof"));
    go
}

fn text_of(mut tool: Command, program: &Path, profile: &Path, options: &[&str]) -> String {
    let output = tool
        .args(["-unit=B", "-nodecount=100000", "-nodefraction=0"])
        .args(options)
        .args([program, profile].into_iter().filter(|path| !path.as_os_str().is_empty()))
        .output()
        .expect("pprof starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Two profiles, `before.END` and `after.END`, of the program that allocates known numbers of
/// bytes, exact and built with `flags`. Returns the program and the profiles.
pub fn exact_profiles(flags: &[&str], name: &str, end: &str) -> (PathBuf, PathBuf, PathBuf) {
    let program = cc("profile_sites.cc", flags);
    let directory = scratch(name);
    let [before, after] = ["before", "after"].map(|stem| directory.join(format!("{stem}.{end}")));
    let run =
        Run::preloaded(&program).args(["exact".as_ref(), before.as_os_str(), after.as_os_str()]);
    assert_eq!(run.conf("prof:true,lg_prof_sample:0,prof_accum:true").stdout(), "");
    (program, before, after)
}
