//! The keys that requests may write, and the reason for each key that they may not.
use super::refusal::Refusal;
use crate::memory;
use crate::metrics::OVERFLOW;
use crate::namespace::Target;
use crate::namespace::walk::ARENA_NAME;
use lumalloc_namespace::{Door, Fact, Type};

/// The keys that may be written or triggered.
const ALLOWED: [&str; 24] = [
    "arena.<i>.decay",
    "arena.<i>.dirty_decay_ms",
    "arena.<i>.limit",
    "arena.<i>.muzzy_decay_ms",
    ARENA_NAME,
    "arena.<i>.purge",
    "arenas.dirty_decay_ms",
    "arenas.muzzy_decay_ms",
    "background_thread",
    "background_thread_auto",
    "epoch",
    "limit.hard",
    "limit.soft",
    "max_background_threads",
    "monitor.stop",
    "mprof.autosave",
    "mprof.stop",
    "prof.active",
    "prof.gdump",
    "prof.log_stop",
    "prof.reset",
    "prof.thread_active_init",
    "stats.mutexes.reset",
    "vm.regmax",
];

/// The labels of arenas that no request named.
const LABELS: [&str; 5] = ["auto", "destroyed", memory::NAME, "manual", OVERFLOW];

/// Checks that a key may be written or triggered.
pub(super) fn check(row: &'static Fact) -> Result<(), Refusal> {
    if ALLOWED.contains(&row.name) {
        return Ok(());
    }
    if !row.is_written() && matches!(row.door, Door::Read) {
        return Err(Refusal::ReadOnly(row));
    }
    Err(Refusal::Forbidden(row, reason(row)))
}

/// Checks that a key may be written for this arena. The settings of the exporter's own arena may
/// not, because the exporter serves the request that would undo them.
pub(super) fn check_arena(target: &Target, own: Option<u32>) -> Result<(), Refusal> {
    let is_own = own.is_some_and(|own| target.mib().get(1) == Some(&(own as usize)));
    let reason = match target.row.name {
        "arena.<i>.limit" => {
            "it is the exporter's own arena, which must go on when others are at a limit"
        }
        "arena.<i>.dirty_decay_ms" | "arena.<i>.muzzy_decay_ms" => {
            "it is the exporter's own arena, which gives its memory back after each answer"
        }
        ARENA_NAME => "it is the exporter's own arena, which is known by its name",
        _ => return Ok(()),
    };
    if is_own { Err(Refusal::Forbidden(target.row, reason)) } else { Ok(()) }
}

/// Checks that an arena may have a name, which becomes a label of its metrics.
pub(super) fn check_name(row: &'static Fact, name: &str) -> Result<(), Refusal> {
    if LABELS.contains(&name) {
        let reason = "auto, destroyed, exporter, manual and overflow are not given as names, \
                      because /metrics has other arenas under them";
        return Err(Refusal::Forbidden(row, reason));
    }
    Ok(())
}

/// Returns why a key may not be written.
fn reason(row: &Fact) -> &'static str {
    let of = |branch: &str| row.name.starts_with(branch);
    if of("thread.") || of("tcache.") {
        return "it is about the thread that asks, which would be the exporter's own";
    }
    if of("prof.write_") {
        return "it writes to an open file of the program, which no request may name";
    }
    if (of("prof.") || of("mprof.") || of("monitor.")) && row.kind == Type::Str {
        return "it names a file, which no request may";
    }
    if matches!(row.name, "arena.<i>.reset" | "arena.<i>.destroy") {
        return "it discards blocks that the program may be using";
    }
    if row.name == "vm.region.<i>.compact" {
        return "it calls the region's discipline, which may be a function of the program, in \
                another thread";
    }
    let input =
        if let Door::Ask(input) | Door::Create(input) = row.door { input } else { row.kind };
    let is_made = row.name == "experimental.arenas_create_ext";
    if is_made || matches!(input, Type::Pointer(_) | Type::Layout(_)) {
        return "it takes addresses, which no request may give";
    }
    match row.door {
        Door::Ask(_) | Door::Exchange | Door::Raw => "it answers questions, and changes nothing",
        _ => "it is not among the keys that requests may write: GET /ctl tells which are",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lumalloc_namespace::facts;

    #[test]
    fn what_is_allowed_can_be_written() {
        for name in ALLOWED {
            let row = facts().iter().find(|row| row.name == name).expect(name);
            let changes = row.is_written() || matches!(row.door, Door::Trigger | Door::Absent);
            assert!(changes || name == ARENA_NAME, "{name}");
        }
    }

    #[test]
    fn what_is_not_allowed_has_its_reason() {
        let reason = |name: &str| match check(facts().iter().find(|row| row.name == name).unwrap())
        {
            Err(Refusal::Forbidden(_, reason)) => reason,
            other => panic!("{name}: {other:?}"),
        };
        let thread = "it is about the thread that asks, which would be the exporter's own";
        let unlisted = "it is not among the keys that requests may write: GET /ctl tells which are";
        for (name, expected) in [
            ("thread.arena", thread),
            ("thread.idle", thread),
            ("thread.prof.name", thread),
            ("tcache.create", thread),
            ("tcache.destroy", thread),
            ("prof.dump", "it names a file, which no request may"),
            (
                "prof.write_pprof",
                "it writes to an open file of the program, which no request may name",
            ),
            ("monitor.start", "it names a file, which no request may"),
            ("mprof.restart", "it names a file, which no request may"),
            ("prof.prefix", "it names a file, which no request may"),
            ("prof.log_start", "it names a file, which no request may"),
            ("arena.<i>.reset", "it discards blocks that the program may be using"),
            ("arena.<i>.destroy", "it discards blocks that the program may be using"),
            ("arena.<i>.extent_hooks", "it takes addresses, which no request may give"),
            ("limit.callback", "it takes addresses, which no request may give"),
            ("arenas.create", "it takes addresses, which no request may give"),
            ("arenas.lookup", "it takes addresses, which no request may give"),
            ("experimental.utilization.query", "it takes addresses, which no request may give"),
            ("experimental.arenas_create_ext", "it takes addresses, which no request may give"),
            (
                "vm.region.<i>.compact",
                "it calls the region's discipline, which may be a function of the program, in \
                 another thread",
            ),
            ("ctl.help", "it answers questions, and changes nothing"),
            ("arena.<i>.dss", unlisted),
            ("arena.<i>.retain_grow_limit", unlisted),
        ] {
            assert_eq!(reason(name), expected, "{name}");
        }
    }

    /// A key that is added to the namespace is closed until it is put on the list.
    #[test]
    fn no_other_key_is_open() {
        let open = facts().iter().filter(|row| check(row).is_ok());
        assert_eq!(open.count(), ALLOWED.len());
    }
}
