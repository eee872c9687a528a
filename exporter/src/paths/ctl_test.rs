//! Requests to the namespace, with the exact text of each answer.

use super::*;
use crate::testing::{context, get, json as told, post, said};
use serde_json::json;

#[track_caller]
fn read_of(name: &str) -> (u16, String) {
    said(read(&context(), &get(&format!("/ctl/{name}"))))
}

#[track_caller]
fn write_of(name: &str, body: &str) -> (u16, String) {
    said(write(&context(), &post(&format!("/ctl/{name}"), body)))
}

#[test]
fn the_list_has_every_key() {
    let all = told(list(&context(), &get("/ctl")));
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), lumalloc_namespace::facts().len());
    let of = |name: &str| all.iter().find(|key| key["name"] == name).unwrap();
    assert_eq!(
        *of("arena.<i>.dirty_decay_ms"),
        json!({
            "name": "arena.<i>.dirty_decay_ms", "type": "ssize_t", "unit": "ms", "access": "rw",
            "stability": "stable", "get": true, "post": true,
            "help": "time until unused dirty pages are purged; a write purges what is unused now",
        })
    );
    assert_eq!(of("arenas.lookup")["input"], "void *");
    assert_eq!(of("arena.<i>.reset")["post"], false);
    // It is not built in yet.
    assert_eq!(
        (&of("thread.prof.name")["get"], &of("thread.prof.name")["post"]),
        (&json!(false), &json!(false))
    );
    assert_eq!(of("tcache.create")["get"], false);
    assert_eq!(told(read(&context(), &get("/ctl/"))).as_array().unwrap().len(), all.len());
    let (_, text) = said(list(&context(), &get("/ctl?format=text")));
    let line = "version  const char *  -  r-  stable  get  -  version of the library";
    assert!(text.lines().any(|found| found == line), "{text}");
    assert_eq!(text.lines().count(), all.len() + 1);
}

#[test]
fn one_value_comes_with_its_description() {
    assert_eq!(
        told(read(&context(), &get("/ctl/arenas.bin.1.size"))),
        json!({
            "name": "arenas.bin.1.size", "type": "size_t", "unit": "bytes", "access": "r-",
            "stability": "stable", "get": true, "post": false, "help": "size of a block",
            "value": 16,
        })
    );
    assert_eq!(read_of("arenas.page?format=text"), (200, "4096\n".into()));
    let (status, text) = read_of("version?format=text");
    assert_eq!((status, text.trim_end()), (200, env!("CARGO_PKG_VERSION")));
    assert_eq!(told(read(&context(), &get("/ctl/arena.0.name")))["value"], "auto_0");
    assert_eq!(read_of("arena%2e0.name?format=text"), (200, "auto_0\n".into()));
}

#[test]
fn a_branch_is_an_object_of_what_is_below() {
    let bin = told(read(&context(), &get("/ctl/arenas.bin.1")));
    assert_eq!(bin["size"], 16);
    let (status, text) = read_of("arenas.bin.1?format=text");
    assert_eq!(status, 200);
    assert_eq!(text, "nregs: 4096\nnshards: 1\nsize: 16\nslab_size: 65536\n");
}

#[test]
fn statistics_are_of_the_moment() {
    let epoch = || told(read(&context(), &get("/ctl/epoch")))["value"].as_u64().unwrap();
    let before = epoch();
    assert!(told(read(&context(), &get("/ctl/stats.allocated")))["value"].is_u64());
    assert!(told(read(&context(), &get("/ctl/stats")))["allocated"].is_u64());
    assert!(told(read(&context(), &get("/ctl/vm.stat.s_busy")))["value"].is_u64());
    assert!(epoch() >= before + 3);
}

#[test]
fn what_cannot_be_read_says_why() {
    for (name, status, text) in [
        ("stats.alocated", 404, "no key is named \"stats.alocated\"; is it stats.allocated?"),
        ("some.thing.else", 404, "no key is named \"some.thing.else\"; GET /ctl lists them all"),
        ("a%22%0ab", 404, "no key is named \"a\\\"\\nb\"; GET /ctl lists them all"),
        ("arena.99999.purge", 404, "arena.99999.purge: no such index"),
        ("stats.arenas.4000.pactive", 404, "stats.arenas.4000.pactive: no such index"),
        (
            "experimental.prof_recent.alloc_max",
            404,
            "experimental.prof_recent.alloc_max: has no value here (ENOENT)",
        ),
        ("arena.0.purge", 405, "arena.<i>.purge: there is nothing to read; use POST"),
        ("tcache.flush", 405, "tcache.flush: there is nothing to read; use POST"),
        ("arena.0.extent_hooks", 403, "arena.<i>.extent_hooks: addresses are not told over HTTP"),
        (
            "thread.allocated",
            403,
            "thread.allocated: it is about the thread that asks, which would be the exporter's own",
        ),
        ("arenas.lookup", 403, "arenas.lookup: it answers questions, which requests cannot ask"),
        ("limit.callback", 403, "limit.callback: it answers questions, which requests cannot ask"),
        ("version?format=xml", 400, "format is json or text, not \"xml\""),
        ("version?x=1", 400, "no such parameter: \"x\"; there are: format"),
    ] {
        assert_eq!(read_of(name), (status, format!("{text}\n")), "{name}");
    }
    let long = "x".repeat(129);
    let text = "no key's name has 129 bytes: at most 128 are looked at\n";
    assert_eq!(read_of(&long), (404, text.into()));
    assert_eq!(write_of(&long, ""), (404, text.into()));
}

#[test]
fn a_write_answers_what_was_before_and_what_is() {
    let written = |body: &str| told(write(&context(), &post("/ctl/arena.0.muzzy_decay_ms", body)));
    let first = written("1500");
    let before = first["before"].clone();
    assert_eq!(first, json!({ "name": "arena.0.muzzy_decay_ms", "before": before, "value": 1500 }));
    assert_eq!(written("{\"value\": -1}")["before"], 1500);
    assert_eq!(write_of("arena.0.muzzy_decay_ms?format=text", "-1"), (200, "-1\n".into()));
    assert_eq!(written(&before.to_string())["value"], before);
    let namespace = context().namespace;
    let arena = namespace.create(&namespace.find("arenas.create").unwrap()).unwrap();
    let name = format!("arena.{arena}.name");
    let named = told(write(&context(), &post(&format!("/ctl/{name}"), "\"main\"")));
    assert_eq!((&named["name"], &named["value"]), (&name.into(), &"main".into()));
}

#[test]
fn an_action_is_done() {
    for body in ["", " \n", "null"] {
        let done = told(write(&context(), &post("/ctl/arena.4096.purge", body)));
        assert_eq!(done, json!({ "name": "arena.4096.purge", "done": true }));
    }
    assert_eq!(write_of("stats.mutexes.reset?format=text", ""), (200, "done\n".into()));
}

#[test]
fn what_cannot_be_written_says_why() {
    for (name, body, status, text) in [
        ("limit.sofd", "1", 404, "no key is named \"limit.sofd\"; is it limit.soft?"),
        ("arena.0", "1", 400, "arena.0 is a branch; GET /ctl/arena.0 tells what is below"),
        ("arena.99999.purge", "", 404, "arena.99999.purge: no such index"),
        ("version", "\"2\"", 403, "version: it can only be read"),
        (
            "arena.0.reset",
            "",
            403,
            "arena.<i>.reset: it discards blocks that the program may be using",
        ),
        ("prof.gdump", "true", 404, "prof.gdump: has no value here (ENOENT)"),
        ("prof.dump", "\"/x\"", 403, "prof.dump: it names a file, which no request may"),
        ("arena.0.purge", "1", 400, "arena.<i>.purge: it takes no value: leave the body empty"),
        (
            "arena.0.purge",
            "now",
            400,
            "arena.<i>.purge: the body is not JSON: expected ident at line 1 column 2; it takes no \
             value",
        ),
        (
            "background_thread",
            "\"on\"",
            400,
            "background_thread: \"on\" is not fit; its type is bool",
        ),
        (
            "arenas.dirty_decay_ms",
            "",
            400,
            "arenas.dirty_decay_ms: there is no value in the body; its type is ssize_t, its unit ms",
        ),
        (
            "arenas.dirty_decay_ms",
            "{\"values\":5}",
            400,
            "arenas.dirty_decay_ms: the body is a value, or an object with one as \"value\" and \
             nothing else; its type is ssize_t, its unit ms",
        ),
        (
            "arenas.dirty_decay_ms",
            "-2",
            400,
            "arenas.dirty_decay_ms: -2 is refused: it cannot be done (EFAULT); its type is \
             ssize_t, its unit ms",
        ),
        (
            "max_background_threads",
            "100000",
            400,
            "max_background_threads: 100000 is refused: it is out of range (EINVAL); its type is \
             size_t, its unit count",
        ),
        ("limit.soft", "-1", 400, "limit.soft: -1 is not fit; its type is size_t, its unit bytes"),
        ("arena.0.name", "7", 400, "arena.<i>.name: 7 is not fit; its type is text"),
        (
            "arena.0.name",
            "\"a\\u0000b\"",
            400,
            "arena.<i>.name: \"a\\u0000b\" is not fit; its type is text",
        ),
        ("limit.soft?x", "1", 400, "no such parameter: \"x\"; there are: format"),
    ] {
        assert_eq!(write_of(name, body), (status, format!("{text}\n")), "{name}");
    }
}

/// Writing false to `background_thread` turns it off, so it has to come back by a request too.
#[test]
fn the_temporary_background_thread_is_allowed_again() {
    let namespace = context().namespace;
    let shown = || namespace.read(&namespace.find("background_thread_auto").unwrap());
    for on in [false, true] {
        let body = if on { "true" } else { "false" };
        assert_eq!(write_of("background_thread_auto", body).0, 200);
        assert_eq!(shown(), Ok(lumalloc_ctl::Value::Bool(on)));
    }
}

#[test]
fn only_the_hard_limit_is_forced() {
    let no_force = "no such parameter: \"force\"; there are: format";
    let unfit = "limit.hard: \"1\" is not fit; its type is size_t, its unit bytes";
    for (name, body, text) in [
        ("limit.soft?force=1", "1", no_force),
        ("limit.hard?x", "1", "no such parameter: \"x\"; there are: format, force"),
        ("limit.hard?force=yes", "1", "force is 0 or 1, not \"yes\""),
        ("limit.hard?force=1", "\"1\"", unfit),
    ] {
        assert_eq!(write_of(name, body), (400, format!("{text}\n")), "{name}");
    }
}

#[test]
fn a_long_value_is_not_repeated_whole() {
    let (status, text) = write_of("background_thread", &format!("\"{}\"", "é".repeat(1000)));
    let expected =
        format!("background_thread: \"{}... is not fit; its type is bool\n", "é".repeat(63));
    assert_eq!((status, text), (400, expected));
}

#[test]
fn errors_of_the_system_are_not_the_client_s() {
    let row = row_of("background_thread").unwrap();
    for (error, status, text) in [
        (Error::Again, 503, "true is refused: the system cannot do it now (EAGAIN)"),
        (Error::NoMemory, 503, "true is refused: there is no memory for it (ENOMEM)"),
        (Error::NotPermitted, 403, "true is refused: it is not permitted (EPERM)"),
        (Error::Busy, 409, "true is refused: what is held stands in the way (EBUSY)"),
    ] {
        let answer: Answer = Refusal::write(row, error, &true.into()).into();
        let expected = format!("background_thread: {text}; its type is bool\n");
        assert_eq!(said(answer), (status, expected));
    }
    let answer: Answer = Refusal::act(row, Error::Fault).into();
    assert_eq!(said(answer), (400, "background_thread: it cannot be done (EFAULT)\n".into()));
}

/// The exporter's own arena keeps what it is known and works by.
#[test]
fn the_exporter_s_own_arena_and_its_label_are_nobody_s() {
    let context = context();
    let own = context.memory.arena().unwrap();
    let refused = |key: &str, body: &str| {
        said(write(&context, &post(&format!("/ctl/arena.{own}.{key}"), body)))
    };
    let decays = "it is the exporter's own arena, which gives its memory back after each answer";
    for (key, body, reason) in [
        (
            "limit",
            "1",
            "it is the exporter's own arena, which must go on when others are at a limit",
        ),
        ("dirty_decay_ms", "1", decays),
        ("muzzy_decay_ms", "1", decays),
        ("name", "\"x\"", "it is the exporter's own arena, which is known by its name"),
    ] {
        assert_eq!(refused(key, body), (403, format!("arena.<i>.{key}: {reason}\n")));
    }
    assert_eq!(refused("purge", "").0, 200);
    let namespace = context.namespace;
    let arena = namespace.create(&namespace.find("arenas.create").unwrap()).unwrap();
    let name = |name: &str| write_of(&format!("arena.{arena}.name"), &format!("\"{name}\""));
    for label in ["auto", "destroyed", "exporter", "manual", "overflow"] {
        let reason = "arena.<i>.name: auto, destroyed, exporter, manual and overflow are not given \
                      as names, because /metrics has other arenas under them\n";
        assert_eq!(name(label), (403, reason.into()), "{label}");
    }
    assert_eq!(name("exporters").0, 200);
    assert_eq!(namespace.arena_name(arena).unwrap(), "exporters");
}
