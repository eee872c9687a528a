//! Typed keys, JSON by name, and their errors.
#![allow(unsafe_code, reason = "destroys an arena of its own")]

use lumalloc_ctl::{CtlError, keys, read_json, write_json};

#[test]
fn typed_keys_read_write_act_and_answer() {
    let before = keys::EPOCH.read().unwrap();
    assert!(keys::EPOCH.update(0).unwrap() > before);
    assert_eq!(keys::stats::ALLOCATED.name(), "stats.allocated");
    assert!(keys::stats::RESIDENT.read().unwrap() > 0);
    assert_eq!(keys::VERSION.read().unwrap().to_str(), Ok(lumalloc::VERSION));
    assert_eq!(keys::arenas::bin::NREGS.at([0]).unwrap().read(), Ok(8192));
    keys::arena::PURGE.at([4096]).unwrap().act().unwrap();
    assert_eq!(keys::ctl::ACCESS.ask(Some("epoch")), Ok(c"rw"));
}

#[test]
fn errors_of_typed_keys_say_what_was_wrong() {
    let text = |error: CtlError| error.to_string();
    assert_eq!(
        text(keys::opt::UTRACE.read().unwrap_err()),
        "opt.utrace: has no value here (ENOENT)"
    );
    assert_eq!(
        text(keys::MAX_BACKGROUND_THREADS.write(usize::MAX).unwrap_err()),
        "max_background_threads: the value is out of range (EINVAL)"
    );
    assert_eq!(
        text(keys::arena::PURGE.at([5000]).err().unwrap()),
        "arena.<i>.purge: no such index: [5000]"
    );
    assert_eq!(
        text(keys::ctl::HELP.ask(Some("nothing")).unwrap_err()),
        "ctl.help: does not exist here (ENOENT)"
    );
    assert_eq!(
        text(keys::ctl::HELP.ask(Some("a\0b")).unwrap_err()),
        "ctl.help: its type is const char *, not a text with a NUL in it (EINVAL)"
    );
    assert_eq!(
        text(keys::ctl::HELP.ask(None).unwrap_err()),
        "ctl.help: the value is out of range (EINVAL)"
    );
}

#[test]
fn names_lead_to_json_and_back() {
    let whole = read_json("arenas").unwrap();
    assert_eq!(whole["bin"].as_object().unwrap().len(), 41);
    assert_eq!(whole["page"], 4096);
    assert_eq!(
        read_json("prof").unwrap(),
        serde_json::json!({
            "active": false,
            "gdump": false,
            "interval": 0,
            "lg_sample": 0,
            "thread_active_init": false,
            "samples": {"taken": 0, "missed": 0, "live": 0, "stacks": 0, "bytes": 0},
        }),
        "it is off"
    );
    assert_eq!(read_json("").unwrap_err().to_string(), "no key is named \"\"");
    write_json("vm.regmax", &9.into()).unwrap();
    assert_eq!(read_json("vm.regmax").unwrap(), 9);
    for (value, given) in
        [(serde_json::json!(-1), "-1"), (serde_json::json!(1u64 << 40), "1099511627776")]
    {
        assert_eq!(
            write_json("vm.regmax", &value).unwrap_err().to_string(),
            format!("vm.regmax: its type is unsigned, not {given} (EINVAL)")
        );
    }
    assert_eq!(
        read_json("arena.0.purge").unwrap_err().to_string(),
        "arena.<i>.purge: cannot read it: its access is -- (EPERM)"
    );
    assert_eq!(
        read_json("opt.utrace").unwrap_err().to_string(),
        "opt.utrace: has no value here (ENOENT)"
    );
}

/// A program without `unsafe` cannot discard blocks that it uses, nor make the allocator call what
/// is no function.
#[test]
fn keys_that_trust_their_caller_are_unsafe() {
    let arena = keys::arenas::CREATE.create().unwrap();
    for action in ["reset", "destroy"] {
        assert_eq!(
            write_json(&format!("arena.{arena}.{action}"), &serde_json::Value::Null)
                .unwrap_err()
                .to_string(),
            format!("arena.<i>.{action}: cannot write it: its access is -- (EPERM)")
        );
    }
    let index = [arena as usize];
    let hooks = keys::arena::EXTENT_HOOKS.at(index).unwrap();
    assert!(!hooks.read().unwrap().is_null());
    // SAFETY: the arena has no block.
    unsafe { keys::arena::DESTROY.at(index).unwrap().act() }.unwrap();
    assert!(hooks.read().is_err());
}
