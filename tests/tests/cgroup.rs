//! The limits of a container, as the library finds them: the automatic soft bound, and the number
//! of arenas. The tests run in namespaces of their own, where they can write the files of cgroups,
//! and in a real cgroup if the machine allows making one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lumalloc_tests::memory::number;
use lumalloc_tests::{Run, cc, liblumalloc, not_tried, scratch};

const MIB: u64 = 1 << 20;

fn program() -> PathBuf {
    let stand_in = cc("api_stand_in.c", &["-shared", "-fPIC"]);
    cc("proc_cgroup.c", &[&stand_in.display().to_string()])
}

/// Whether a process may have namespaces of its own.
fn has_namespaces(name: &str) -> bool {
    let script = "mount -t tmpfs none /sys/fs/cgroup && mount --bind /dev/null /proc/$$/cgroup";
    let tried = Command::new("unshare").args(["-rm", "sh", "-c", script]).output();
    let may = tried.expect("unshare starts").status.success();
    if !may {
        not_tried(&format!("cgroup, {name}"), "this machine refuses namespaces");
    }
    may
}

/// The output of the program in a container with these groups, and with these files under
/// `/sys/fs/cgroup`.
fn inside(name: &str, groups: &str, files: &[(&str, &str)], args: &[&str]) -> String {
    let tree = scratch(&format!("cgroup-{name}"));
    fs::write(tree.join("groups"), groups).expect("a file");
    for (file, text) in files {
        let file = tree.join("root").join(file);
        fs::create_dir_all(file.parent().expect("a directory")).expect("directories");
        fs::write(file, text).expect("a file");
    }
    let script = "mount --bind \"$TREE/root\" /sys/fs/cgroup && \
                  mount --bind \"$TREE/groups\" /proc/$$/cgroup && \
                  LD_PRELOAD=\"$LIBRARY\" exec \"$@\"";
    Run::plain("unshare")
        .args(["-rm", "sh", "-c", script, "sh"])
        .args([program()])
        .args(args)
        .env("TREE", tree)
        .env("LIBRARY", liblumalloc())
        .conf("dirty_decay_ms:-1")
        .stdout()
}

#[test]
fn the_smallest_bound_of_all_groups_counts() {
    if !has_namespaces("the smallest bound") {
        return;
    }
    let said = inside(
        "second",
        "0::/pod/app\n",
        &[
            ("memory.max", "max\n"),
            ("pod/memory.high", "209715200\n"),
            ("pod/memory.max", "max\n"),
            ("pod/cpu.max", "50000 100000\n"),
            ("pod/app/memory.high", "max\n"),
            ("pod/app/memory.max", "314572800\n"),
        ],
        &[],
    );
    assert_eq!((number(&said, "soft"), number(&said, "narenas")), (190 * MIB, 1), "{said}");
}

#[test]
fn the_first_version_of_cgroups_too() {
    if !has_namespaces("the first version") {
        return;
    }
    let said = inside(
        "first",
        "5:cpu,cpuacct:/pod/app\n4:memory:/pod/app\n1:name=systemd:/\n",
        &[
            ("memory/pod/app/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/pod/memory.limit_in_bytes", "104857600\n"),
            ("cpu/cpu.cfs_quota_us", "-1\n"),
            ("cpu/cpu.cfs_period_us", "100000\n"),
            ("cpu/pod/cpu.cfs_quota_us", "100000\n"),
            ("cpu/pod/cpu.cfs_period_us", "100000\n"),
            ("cpu/pod/app/cpu.cfs_quota_us", "-1\n"),
            ("cpu/pod/app/cpu.cfs_period_us", "100000\n"),
        ],
        &[],
    );
    assert_eq!((number(&said, "soft"), number(&said, "narenas")), (95 * MIB, 1), "{said}");
}

#[test]
fn without_a_bound_there_is_none() {
    if !has_namespaces("no bound") {
        return;
    }
    let said = inside("none", "0::/\n", &[("memory.max", "max\n")], &[]);
    assert_eq!(number(&said, "soft"), 0, "{said}");
    let said = inside("nothing", "0::/\n", &[("other", "")], &[]);
    assert_eq!(number(&said, "soft"), 0, "{said}");
}

#[test]
fn the_bound_gives_unused_pages_back() {
    if !has_namespaces("pages given back") {
        return;
    }
    let files = &[("memory.max", "104857600\n")];
    let rss = |args| number(&inside("grow", "0::/\n", files, args), "rss_kib") << 10;
    assert!(rss(&["grow"]) < 95 * MIB);
    assert!(rss(&["unbound"]) > 128 * MIB, "or the bound had nothing to do");
}

#[test]
fn a_bound_that_changes_while_the_process_runs_counts() {
    if !has_namespaces("a bound that changes") {
        return;
    }
    let rss = |name, from, to| {
        let said = inside(name, "0::/\n", &[("memory.max", from)], &[to]);
        number(&said, "rss_kib") << 10
    };
    assert!(rss("raised", "104857600\n", "1073741824\n") > 128 * MIB);
    assert!(rss("removed", "104857600\n", "max\n") > 128 * MIB);
    assert!(rss("lowered", "1073741824\n", "104857600\n") < 95 * MIB);
}

/// A process that may open no more files cannot read the bound, which says nothing about the bound.
#[test]
fn a_bound_that_cannot_be_read_any_more_holds() {
    if !has_namespaces("a bound that cannot be read") {
        return;
    }
    let files = &[("memory.max", "104857600\n")];
    let said = inside("unreadable", "0::/\n", files, &["unreadable"]);
    assert_eq!(number(&said, "soft"), 95 * MIB, "{said}");
    assert!(number(&said, "rss_kib") << 10 < 95 * MIB, "{said}");
}

/// A group below that of the process, with a bound of 100 MiB. Removed when it goes out of scope.
struct Group(PathBuf);

impl Group {
    /// Makes the group; `None` if the machine does not allow it.
    fn make() -> Option<Group> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let name = format!("lumalloc-test-{}", std::process::id());
        let below = |root: &str, path: &str| Path::new(&format!("{root}{path}")).join(&name);
        let second = groups.lines().find_map(|line| line.strip_prefix("0::"));
        let first = groups.lines().find_map(|line| line.split_once(":memory:"));
        let places = [
            second.map(|path| (below("/sys/fs/cgroup", path), "memory.max")),
            first.map(|(_, path)| (below("/sys/fs/cgroup/memory", path), "memory.limit_in_bytes")),
        ];
        places.into_iter().flatten().find_map(|(place, file)| {
            fs::create_dir(&place).ok()?;
            let group = Group(place);
            fs::OpenOptions::new().write(true).open(group.0.join(file)).ok()?;
            fs::write(group.0.join(file), "104857600").ok()?;
            Some(group)
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        fs::remove_dir(&self.0).expect("an empty group");
    }
}

#[test]
fn a_process_lives_within_a_real_group() {
    let Some(group) = Group::make() else {
        not_tried("a process in a real cgroup", "this machine refuses to make one");
        return;
    };
    let script = "echo $$ > \"$GROUP/cgroup.procs\" && LD_PRELOAD=\"$LIBRARY\" exec \"$@\"";
    let said = Run::plain("sh")
        .args(["-c", script, "sh"])
        .args([program()])
        .args(["grow"])
        .env("GROUP", &group.0)
        .env("LIBRARY", liblumalloc())
        .conf("dirty_decay_ms:-1")
        .stdout();
    assert_eq!(number(&said, "soft"), 95 * MIB, "{said}");
    assert!(number(&said, "rss_kib") << 10 < 95 * MIB, "{said}");
}
