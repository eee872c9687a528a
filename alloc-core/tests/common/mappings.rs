//! Flags of this process's mappings, as the system reports them.

use super::not_tried::not_tried;

/// Whether the system gives huge pages on request.
pub(crate) fn listens() -> bool {
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    std::fs::read_to_string(path).is_ok_and(|text| !text.contains("[never]"))
}

/// Whether the system gives huge pages on request. If not, this says what is not tried.
pub(crate) fn listens_for(what: &str) -> bool {
    let listens = listens();
    if !listens {
        not_tried(what, "this system gives no huge pages on request");
    }
    listens
}

/// Whether the system knows huge pages, given or not: its mappings have flags for them. If not,
/// this says what is not tried.
pub(crate) fn has_flags_for(what: &str) -> bool {
    let has = std::fs::exists("/sys/kernel/mm/transparent_hugepage/enabled").expect("known");
    if !has {
        not_tried(what, "this system knows no huge pages");
    }
    has
}

/// The flags of each mapping of this process, with its first and last address.
pub(crate) fn flags() -> Vec<(usize, usize, String)> {
    let text = std::fs::read_to_string("/proc/self/smaps").expect("smaps");
    let (mut found, mut range) = (Vec::new(), (0, 0));
    for line in text.lines() {
        let first = line.split(' ').next().expect("a word");
        let number = |text| usize::from_str_radix(text, 16);
        if let Some((from, to)) = first.split_once('-')
            && let (Ok(from), Ok(to)) = (number(from), number(to))
        {
            range = (from, to);
        }
        if let Some(flags) = line.strip_prefix("VmFlags:") {
            found.push((range.0, range.1, format!("{flags} ")));
        }
    }
    found
}

/// Whether huge pages were requested for the mapping of an address.
pub(crate) fn is_advised(block: *mut u8) -> bool {
    flags_of(block).contains(" hg ")
}

/// The flags of the mapping that contains an address.
pub(crate) fn flags_of(block: *mut u8) -> String {
    let address = block as usize;
    let mut flags = flags().into_iter();
    let mapping = flags.find(|(from, to, _)| (*from..*to).contains(&address)).expect("mapped");
    mapping.2
}
