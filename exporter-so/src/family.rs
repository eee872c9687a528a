//! Whether an ancestor of this process was told to serve at the same address: then the address is
//! taken as it should be, and the programs that this one's parent starts need not say so.
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

/// No more ancestors than any tree of processes has in use.
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

/// The second number behind the command, which stands in parentheses and may hold any.
fn parent_of(process: &str) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, behind) = stat.rsplit_once(')')?;
    behind.split_whitespace().nth(1)?.parse().ok()
}
