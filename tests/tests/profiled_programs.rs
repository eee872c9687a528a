//! Heap profiles of programs with threads, and of Debian's programs, as they are used.

use lumalloc_tests::profile_reports::{jeprof, pprof};
use lumalloc_tests::profiled::command;
use lumalloc_tests::serving::{Serving, free_port};
use lumalloc_tests::{Run, cc, liblumalloc, liblumalloc_archive, machine, scratch};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Threads that run at once, that come and go, frees by others, and a child of fork: each
/// allocation is counted where it was made.
#[test]
fn threads_and_children_of_fork_are_counted_exactly() {
    let program = cc("profile_threads.cc", &["-pthread"]);
    for end in ["heap", "pb.gz"] {
        let directory = scratch(&format!("profile-threads-{end}"));
        let [own, child] = ["own", "child"].map(|name| directory.join(format!("{name}.{end}")));
        let run = Run::preloaded(&program).args([&own, &child]);
        let run = run.conf("prof:true,lg_prof_sample:0,prof_accum:true");
        assert_eq!(run.stdout(), "");
        let report = |file: &Path| match end {
            "heap" => jeprof(&program, file, &[]),
            _ => pprof(&program, file, "-sample_index=inuse_space", &[]),
        };
        for (file, more) in [(&own, 0), (&child, 10)] {
            let live = report(file);
            assert_eq!(live.alone("small_block"), 8 * 2500 * 64, "{}", file.display());
            assert_eq!(live.alone("large_block"), (8 * 100 + more) * 20480, "{}", file.display());
            assert_eq!(live.with_callees("dropped_block"), 0, "{}", file.display());
        }
    }
}

/// A program of `lumalloc`'s own JSON of a profile.
fn heap(file: &Path) -> Value {
    let directory = file.parent().expect("a directory");
    let (status, text, errors) = command(directory, &["heap", "--json", file.to_str().unwrap()]);
    assert_eq!(status, "exit 0", "{errors}");
    serde_json::from_str(&text).expect("JSON")
}

/// The bytes in use of the stacks with a function whose name begins so.
fn bytes_below(profile: &Value, function: &str) -> f64 {
    let list = |name: &str| profile[name].as_array().expect("a list").clone();
    let (frames, stacks) = (list("frames"), list("stacks"));
    let has = |stack: usize| {
        let indices = stacks[stack].as_array().expect("frames");
        indices.iter().any(|index| {
            let frame = &frames[index.as_u64().expect("an index") as usize];
            frame["function"].as_str().is_some_and(|name| name.starts_with(function))
        })
    };
    let of = |sample: &Value| {
        let stack = sample["stack"].as_u64().expect("an index") as usize;
        if has(stack) { sample["live_bytes"].as_f64().expect("a number") } else { 0.0 }
    };
    list("samples").iter().map(of).sum()
}

#[test]
fn python_names_the_function_that_keeps_memory() {
    let directory = scratch("profile-python");
    let file = directory.join("python.pb.gz");
    let script = format!(
        "import ctypes
keep = [bytes(50_000 + i) for i in range(200)]
gone = [bytes(70_000) for i in range(200)]
del gone
name = ctypes.c_char_p({:?}.encode())
mallctl = ctypes.CDLL(None).mallctl
assert mallctl(b'prof.dump', None, None, ctypes.byref(name), ctypes.c_size_t(8)) == 0
",
        file.display()
    );
    let python = lumalloc_tests::machine::system_program("python3.11");
    let run = Run::preloaded(python).args(["-IS", "-c", &script]);
    assert_eq!(run.conf("prof:true,lg_prof_sample:0").stdout(), "");
    let profile = heap(&file);
    let expected: f64 = (0..200).map(|i| f64::from(50_000 + i + 33)).sum();
    let below_main = bytes_below(&profile, "Py_BytesMain");
    assert!(below_main >= expected, "{below_main}");
    let of_size = |sample: &&Value| sample["size"].as_u64().is_some_and(|size| size > 70_000);
    let gone: i64 = profile["samples"]
        .as_array()
        .expect("samples")
        .iter()
        .filter(of_size)
        .filter(|sample| sample["size"].as_u64() == Some(70_033))
        .map(|sample| sample["live_blocks"].as_i64().expect("a number"))
        .sum();
    assert_eq!(gone, 0);
}

/// As the library's own module is left out of stacks, so are its functions in a static program.
/// jeprof would leave out what is called `operator new` by itself.
#[test]
fn in_a_static_program_too_each_stack_begins_with_the_caller_of_new() {
    let archive = liblumalloc_archive().display().to_string();
    let flags = ["-std=c++17", "-O1", "-static", "-Wl,--eh-frame-hdr", &archive];
    let program = cc("profile_operators.cc", &flags);
    let file = scratch("profile-operators").join("operators.heap");
    let run = Run::plain(&program).args([&file]).conf("prof:true,lg_prof_sample:0");
    assert_eq!(run.stdout(), "");
    let profile = fs::read_to_string(&file).expect("a profile");
    let first = |line: &str| {
        let back = line.strip_prefix("@ 0x")?.split(' ').next()?;
        // The call lies before its return address.
        u64::from_str_radix(back, 16).ok()?.checked_sub(1)
    };
    let calls = profile.lines().filter_map(first).map(|address| format!("{address:#x}"));
    let mut symbols = Command::new("addr2line");
    symbols.args(["-f".as_ref(), "-e".as_ref(), program.as_os_str()]).args(calls);
    let output = symbols.output().expect("addr2line");
    let names = String::from_utf8(output.stdout).expect("names");
    let names: BTreeSet<&str> = names.lines().step_by(2).collect();
    let kinds = ["", "nothrow_"].map(|kind| {
        ["single", "array", "aligned_single", "aligned_array"].map(|of| format!("{kind}{of}"))
    });
    for place in kinds.iter().flatten() {
        assert!(names.contains(place.as_str()), "{place}: {names:?}");
    }
    assert!(names.iter().all(|name| !name.starts_with("_Zn")), "{names:?}");
}

/// Beyond 2^20 stacks the profiler says once that it keeps no more of them, and goes on counting.
#[test]
fn samples_beyond_the_most_stacks_are_counted_without_one() {
    let directory = scratch("profile-many-stacks");
    let file = directory.join("many.heap");
    let program = cc("profile_many_stacks.c", &["-O1"]);
    let run = Run::preloaded(&program).args([&file]).conf("prof:true,lg_prof_sample:0,abort:true");
    let output = run.output();
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "<lumalloc>: More than 1048576 stacks allocate: samples from others have no stack.\n"
    );
    assert!(output.status.success(), "{:?}", output.status);
    let profile = heap(&file);
    let [sample] = profile["samples"].as_array().expect("samples").as_slice() else {
        panic!("{:?}", profile["samples"])
    };
    let stack = sample["stack"].as_u64().expect("an index") as usize;
    assert_eq!(profile["stacks"][stack].as_array().expect("frames").len(), 0);
    assert_eq!((&sample["live_blocks"], &sample["live_bytes"]), (&100.into(), &6400.into()));
}

/// A function that calls itself makes any number of long stacks. Known ones stay as they are.
#[test]
fn once_stacks_take_much_memory_new_ones_are_shortened() {
    let file = scratch("profile-long-stacks").join("long.heap");
    let program = cc("profile_long_stacks.c", &["-O1"]);
    let run = Run::preloaded(&program).args([&file]).conf("prof:true,lg_prof_sample:10,abort:true");
    let output = run.output();
    let errors = String::from_utf8_lossy(&output.stderr);
    let message = "<lumalloc>: Samples' stacks take more than 64 MiB: of new ones the innermost 16 \
                   return addresses are kept, beyond 128 MiB the innermost 8.\n";
    assert_eq!((errors.as_ref(), output.status.success()), (message, true));
    let profile = heap(&file);
    let samples = profile["samples"].as_array().expect("samples");
    let of = |sample: &serde_json::Value| {
        let stack = sample["stack"].as_u64().expect("an index") as usize;
        let frames = profile["stacks"][stack].as_array().expect("frames").len();
        (sample["live_blocks"].as_f64().map(f64::round), frames)
    };
    let mut found: Vec<_> = samples.iter().map(of).collect();
    found.sort_by_key(|(_, frames)| *frames);
    let [(shortened, 16), (in_full, frames)] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((*shortened, *in_full), (Some(100.0), Some(2.0)));
    assert!(*frames > 100, "{frames}");
}

/// The heap monitor takes a stack for each event. Samples have their stacks all the same.
#[test]
fn a_recording_with_many_stacks_leaves_some_for_samples() {
    let directory = scratch("profile-many-events");
    let file = directory.join("many.heap");
    let program = cc("profile_many_stacks.c", &["-O1"]);
    let conf = format!("prof:true,monitor:true,prof_prefix:{}", directory.join("own").display());
    let output = Run::preloaded(&program).args([&file, &file]).conf(&conf).output();
    let errors = String::from_utf8_lossy(&output.stderr);
    let message = "<lumalloc>: More than 786432 stacks allocate or free: recorded events and \
                   logged frees from others have no stack.\n";
    assert_eq!((errors.as_ref(), output.status.success()), (message, true));
    let profile = heap(&file);
    let samples = profile["samples"].as_array().expect("samples");
    let bytes: f64 = samples.iter().filter_map(|sample| sample["live_bytes"].as_f64()).sum();
    let below = bytes_below(&profile, "keep_large");
    assert!(below > 50_000_000.0 && below * 1.01 > bytes, "{below} of {bytes}");
    fs::remove_dir_all(&directory).expect("the recording is removed");
}

/// Most libraries of a program may stand behind the loader in the list of modules: those that only
/// other libraries name. If the loader itself is started, the system does not tell where it is.
#[test]
fn unwind_tables_of_all_libraries_of_the_start_are_looked_at_once() {
    let plugin = |name: &str| {
        let name = format!("-DFRAME=64 -Wl,-soname,{name}");
        let args: Vec<&str> = ["-shared", "-fPIC"].into_iter().chain(name.split(' ')).collect();
        cc("profile_plugin.c", &args)
    };
    let directory = scratch("profile-behind");
    let [behind, early, other] = ["behind", "early", "other"].map(|name| {
        let file = directory.join(format!("lib{name}.so"));
        fs::copy(plugin(&format!("lib{name}.so")), &file).expect("a copy");
        file
    });
    let early = format!("-DEARLY=\"{}\"", early.display());
    let libraries = format!("-Wl,-rpath,{}", directory.display());
    let behind = behind.to_str().expect("a name in UTF-8");
    let middle = ["-shared", "-fPIC", &early, &libraries, behind];
    let middle = cc("profile_behind.c", &middle);
    let is_x86 = machine::target().map_or(cfg!(target_arch = "x86_64"), |_| false);
    let name = if is_x86 { "ld-linux-x86-64.so.2" } else { "ld-linux-aarch64.so.1" };
    let loader = format!("-l:{name}");
    let args = ["-rdynamic", &libraries, "-Wl,--no-as-needed", &loader];
    let args: Vec<&str> = args.into_iter().chain(middle.to_str()).collect();
    let program = cc("profile_behind.c", &args);
    let conf = "prof:true,lg_prof_sample:0";
    assert_eq!(Run::preloaded(&program).args([&other]).conf(conf).stdout(), "");
    if is_x86 {
        let run = Run::preloaded(Path::new("/lib64").join(name)).args([&program, &other]);
        assert_eq!(run.conf(conf).stdout(), "", "by the loader");
    }
}

/// A redis-server that was filled by its benchmark writes its profile when it is told to end. The
/// estimate is near the allocator's own exact number.
#[test]
fn redis_is_profiled_under_its_benchmark() {
    let directory = scratch("profile-redis");
    let prefix = directory.join("redis");
    let port = free_port().to_string();
    let conf = format!(
        "prof:true,lg_prof_sample:12,prof_final:true,prof_format:pprof,prof_prefix:{}",
        prefix.display()
    );
    let redis = Command::new("redis-server")
        .args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
        .env("LD_PRELOAD", liblumalloc())
        .env("LUMALLOC_CONF", conf)
        .stdout(Stdio::null())
        .spawn()
        .expect("redis-server starts");
    let mut redis = Serving(redis);
    let hang = Instant::now() + Duration::from_secs(300);
    while TcpStream::connect(format!("127.0.0.1:{port}")).is_err() {
        assert!(Instant::now() < hang, "redis does not listen");
        thread::sleep(Duration::from_millis(5));
    }
    let tool = |name: &str, args: &[&str]| {
        let mut command = Command::new(name);
        command.args(["-p", &port]).args(args).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().expect("a tool of redis")
    };
    let load = ["-t", "set,lpush", "-n", "60000", "-r", "50000", "-d", "500", "-q"];
    assert!(tool("redis-benchmark", &load).success());
    // The server ends before it answers.
    tool("redis-cli", &["shutdown", "nosave"]);
    assert!(redis.0.wait().expect("its end").success());
    let files = fs::read_dir(&directory).expect("the directory");
    let files: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    let [file] = files.as_slice() else { panic!("{files:?}") };
    let profile = heap(file);
    let note = |name: &str| -> f64 {
        profile["notes"][name].as_str().and_then(|text| text.parse().ok()).expect("a note")
    };
    let live = profile["total"]["live_bytes"].as_f64().expect("a number");
    let (error, exact) = (&profile["total"]["live_bytes_error"], note("stats.allocated"));
    let error = error.as_f64().expect("a number");
    // Some kilobytes are older than the sampler, and numbers of blocks are rounded.
    let farthest = 5.0 * error + exact / 1000.0;
    assert!(live > 20e6 && (live - exact).abs() < farthest, "{live} of {exact}");
    // The values of strings and lists.
    let values = bytes_below(&profile, "sds") + bytes_below(&profile, "lp");
    assert!(values > live / 2.0, "{values} of {live}");
}
