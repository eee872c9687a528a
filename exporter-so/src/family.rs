//! Whether an ancestor of this process was told to serve at the same address. Then the address is
//! taken as intended, and the programs that this process's parent starts need not report it.
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

/// The most ancestors that are looked at. No tree of processes in use has more.
const MOST: usize = 64;

/// Whether the environment that an ancestor was started with has the variable with this value.
pub(crate) fn has_ancestor_with(variable: &str, value: &OsStr) -> bool {
    let mut wanted = variable.as_bytes().to_vec();
    wanted.push(b'=');
    wanted.extend_from_slice(value.as_bytes());
    let mut process = parent_of("self");
    for _ in 0..MOST {
        let Some(ancestor) = process.filter(|&process| process > 0) else { return false };
        let environment = fs::read(format!("/proc/{ancestor}/environ")).unwrap_or_default();
        if environment.split(|&byte| byte == 0).any(|entry| entry == wanted) {
            return true;
        }
        process = parent_of(&ancestor.to_string());
    }
    false
}

/// Returns the second number behind the command, which is in parentheses and may hold any text.
fn parent_of(process: &str) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, behind) = stat.rsplit_once(')')?;
    behind.split_whitespace().nth(1)?.parse().ok()
}
