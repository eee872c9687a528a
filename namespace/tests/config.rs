//! `config.effective`, `config.ignored`, `config.source` and `opt.malloc_conf.*`, read by child
//! processes with option strings in their environment.

#![allow(unsafe_code)]

use lumalloc::observe::BINS;
use lumalloc::raw;
use lumalloc_namespace::{Entry, Error, Value, tree};
use std::process::Command;

const KEY: &str = "LUMALLOC_CTL_TEST_KEY";
const MARK: &str = "<answer> ";

#[test]
#[ignore = "the child of the tests here"]
fn child() {
    let Ok(key) = std::env::var(KEY) else { return };
    // The first 60 blocks are freed; no other thread allocates here.
    let blocks: Vec<_> = (0..2000).map(|_| raw::malloc(64)).collect();
    for block in blocks.into_iter().take(60) {
        // SAFETY: the block is live, and is freed once.
        unsafe { raw::free(block) };
    }
    let mib = tree::complete(key.as_bytes()).expect("a key");
    match Entry::find(mib.as_slice()).expect("a key").read() {
        Ok(Value::U64(number)) => println!("{MARK}{number}"),
        Ok(Value::Str(text)) => println!("{MARK}{}", text.to_str().expect("UTF-8")),
        Err(Error::NoEntry) => println!("{MARK}none"),
        other => panic!("{other:?}"),
    }
}

/// The value that a child with these variables reads from a key.
fn read(key: &str, environment: &[(&str, &str)]) -> String {
    let link = std::fs::symlink_metadata("/etc/malloc.conf");
    assert!(link.is_err(), "/etc/malloc.conf sets options: these tests need a machine without it");
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["child", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env_remove("MALLOC_CONF")
        .env_remove("LUMALLOC_CONF")
        .env(KEY, key)
        .envs(environment.iter().copied())
        .output()
        .expect("a child");
    assert!(output.status.success(), "{output:?}");
    let stdout = String::from_utf8(output.stdout).expect("UTF-8");
    let after = stdout.split(MARK).nth(1).expect("the child's answer");
    after.split('\n').next().unwrap_or_default().to_owned()
}

#[test]
fn the_effective_options_set_the_same_again() {
    let given = "narenas:3,dirty_decay_ms:-1,junk:alloc,tcache_max:4096,thp:never,\
                 zero_realloc:abort,stats_interval:5000000000,percpu_arena:disabled,\
                 narenas_ratio:0.1,tcache_ncached_max:8-64:10|1024-2048:0";
    let effective = read("config.effective", &[("MALLOC_CONF", given)]);
    for pair in given.split(',') {
        assert!(effective.split(',').any(|other| other == pair), "{pair} is not in {effective}");
    }
    assert!(effective.contains("abort:false,"), "defaults too: {effective}");
    assert_eq!(read("opt.tcache_ncached_max", &[]), "");
    let again = &[("MALLOC_CONF", effective.as_str())];
    assert_eq!(read("config.effective", again), effective);
    assert_eq!(read("config.ignored", again), "", "{effective}");
}

/// The longest values that options can have: a prefix of PATH_MAX, and a limit of its own for each
/// class.
#[test]
fn the_longest_options_are_told_whole() {
    let prefix = format!("/{}", "directory/".repeat(500));
    let kept = &prefix[..4095];
    let limits: Vec<String> = (0..BINS)
        .map(|bin| {
            let mib = tree::complete(format!("arenas.bin.{bin}.size").as_bytes()).expect("a key");
            match Entry::find(mib.as_slice()).expect("a key").read() {
                Ok(Value::Size(size)) => format!("{size}-{size}:{}", 1000 + bin),
                other => panic!("{other:?}"),
            }
        })
        .collect();
    let limits = limits.join("|");
    let given = format!("prof_prefix:{prefix},tcache_ncached_max:{limits},xmalloc:true");
    let effective = read("config.effective", &[("MALLOC_CONF", &given)]);
    let pairs: Vec<&str> = effective.split(',').collect();
    for pair in [format!("prof_prefix:{kept}"), format!("tcache_ncached_max:{limits}")] {
        assert!(pairs.contains(&&*pair), "{pair} is not in {effective}");
    }
    let count = |text: &str| text.split(',').count();
    let usual = read("config.effective", &[]);
    assert_eq!(count(&effective), count(&usual) + 1, "the limits, and all others");
    let again = read("config.effective", &[("MALLOC_CONF", &effective)]);
    assert_eq!(again, effective);
}

#[test]
fn guarded_samples_are_counted() {
    let read = |count: &str, conf| {
        read(&format!("stats.guarded.{count}"), &[("LUMALLOC_CONF", conf)]).parse::<u64>().unwrap()
    };
    let counts = |conf| ["made", "live", "failed"].map(|count| read(count, conf));
    let [made, live, failed] = counts("guarded_sample:1");
    assert_eq!(made, 128, "there are so many slots");
    assert!(live < made && made - live <= 60 && failed > 0, "{made} {live} {failed}");
    assert_eq!(counts("guarded_sample:0"), [0, 0, 0]);
}

#[test]
fn what_was_ignored_is_said_with_its_source() {
    let environment = &[("MALLOC_CONF", "nonsense:1,tcache:x"), ("LUMALLOC_CONF", "hpa:true")];
    assert_eq!(
        read("config.ignored", environment),
        "Invalid conf pair: nonsense:1 (MALLOC_CONF); Invalid conf value: tcache:x (MALLOC_CONF); \
         conf option has no effect: hpa:true (LUMALLOC_CONF)"
    );
    assert_eq!(read("config.source", environment), "MALLOC_CONF,LUMALLOC_CONF");
    assert_eq!(read("opt.malloc_conf.env_var", environment), "nonsense:1,tcache:x");
    assert_eq!(read("opt.malloc_conf.own_env_var", environment), "hpa:true");
    assert_eq!(read("opt.malloc_conf.global_var", environment), "none");
}

#[test]
fn without_option_strings_there_is_nothing_to_say() {
    assert_eq!(read("config.ignored", &[]), "");
    assert_eq!(read("config.source", &[]), "");
    assert_eq!(read("opt.malloc_conf.env_var", &[]), "none");
    assert_eq!(read("opt.malloc_conf.env_var", &[("MALLOC_CONF", "")]), "");
}
