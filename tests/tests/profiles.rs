//! Heap profiles of known programs, as jeprof reads them.

use lumalloc_tests::profile_reports::{exact_profiles, jeprof};
use lumalloc_tests::run::ending;
use lumalloc_tests::template::matches;
use lumalloc_tests::{Run, cc, scratch};

#[test]
fn jeprof_reports_the_exact_bytes_of_each_place() {
    for (flags, name) in [
        (&["-fomit-frame-pointer"][..], "profile-without-frame-pointers"),
        (&["-fno-omit-frame-pointer"], "profile-with-frame-pointers"),
        (&["-no-pie"], "profile-not-independent"),
    ] {
        let (program, before, after) = exact_profiles(flags, name, "heap");
        let report = jeprof(&program, &before, &[]);
        assert_eq!((report.alone("leaf"), report.with_callees("leaf")), (112_000, 112_000));
        assert_eq!((report.alone("outer"), report.with_callees("outer")), (0, 112_000));
        assert_eq!(report.alone("large"), 100 << 20);
        let all = report.with_callees("main");
        assert!(all >= (100 << 20) + 112_000 && report.total >= all, "{all} of {}", report.total);

        let report = jeprof(&program, &after, &[]);
        assert_eq!(report.alone("zeroed"), 100 * 320);
        assert_eq!(report.alone("resized"), 100 * 4096);
        assert_eq!(report.alone("aligned"), 100 * 128);
        assert_eq!(report.with_callees("widgets"), 50 * 224, "a widget has a block of 224 bytes");
        assert_eq!(report.with_callees("dropped"), 0);
        assert_eq!(report.alone("leaf"), 1010 * 112);
    }
}

#[test]
fn objects_allocations_and_differences_are_exact_too() {
    let (program, before, after) = exact_profiles(&[], "profile-columns", "heap");
    let live = jeprof(&program, &after, &["--inuse_objects"]);
    assert_eq!((live.alone("leaf"), live.alone("large")), (1010, 110));
    let ever = jeprof(&program, &after, &["--alloc_objects"]);
    assert_eq!(ever.with_callees("dropped"), 1000);
    assert_eq!(ever.with_callees("resized"), 200);
    let ever = jeprof(&program, &after, &["--alloc_space"]);
    assert_eq!(ever.with_callees("dropped"), 500 * (224 + 48));
    let base = format!("--base={}", before.display());
    let grown = jeprof(&program, &after, &[&base]);
    assert_eq!((grown.alone("large"), grown.alone("leaf")), (20 << 20, 10 * 112));
}

#[test]
fn a_stack_of_several_sizes_is_estimated_without_bias() {
    let program = cc("profile_sites.cc", &[]);
    let profile = scratch("profile-sampled").join("sampled.heap");
    let run = Run::preloaded(&program).args(["sampled".as_ref(), profile.as_os_str()]);
    assert_eq!(run.conf("prof:true,lg_prof_sample:12,prof_seed:3").stdout(), "");
    let (small, big) = (90_000.0 * 64.0, 10_000.0 * 8192.0);
    let near = |got: u64, expected: f64, error: f64| {
        assert!((got as f64 / expected - 1.0).abs() < error, "{got}, {expected}");
    };
    // By the variance of a sample: 1400 samples of the small size, 8600 of the other.
    near(jeprof(&program, &profile, &[]).alone("leaf"), small + big, 0.02);
    near(jeprof(&program, &profile, &["--inuse_objects"]).alone("leaf"), 100_000.0, 0.1);
}

#[test]
fn without_the_correction_a_profile_has_the_numbers_of_the_samples() {
    let program = cc("profile_sites.cc", &[]);
    let profile = scratch("profile-raw").join("raw.heap");
    let run = Run::preloaded(&program).args(["sampled".as_ref(), profile.as_os_str()]);
    let conf = "prof:true,lg_prof_sample:12,prof_seed:3,prof_unbias:false";
    let output = run.conf(conf).output();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "the option has an effect");
    let text = std::fs::read_to_string(profile).expect("a profile");
    let numbers = |line: &str| {
        let words: Vec<&str> = line.split([' ', ':']).filter(|word| !word.is_empty()).collect();
        let [_, count, bytes, ..] = words.as_slice() else { panic!("{line}") };
        let number = |text: &str| text.parse::<f64>().expect("a number");
        (number(count), number(bytes))
    };
    let lines = text.lines().skip(2).filter(|line| line.starts_with("  t*: "));
    let (count, bytes) = lines.map(numbers).max_by(|a, b| a.0.total_cmp(&b.0)).expect("a stack");
    let samples = |blocks: f64, size: f64| blocks * (1.0 - (-size / 4096.0).exp());
    let (small, big) = (samples(90_000.0, 64.0), samples(10_000.0, 8192.0));
    // The corrected count would be 19,000 here, and the samples are 10,000.
    let near = |got: f64, expected: f64| assert!((got / expected - 1.0).abs() < 0.03, "{got}");
    near(count, small + big);
    near(bytes, small * 64.0 + big * 8192.0);
}

#[test]
fn what_cannot_be_written_is_refused_and_leaves_no_file() {
    let program = cc("profile_sites.cc", &[]);
    let directory = scratch("profile-errors");
    let run = Run::preloaded(&program).args(["errors".as_ref(), directory.as_os_str()]);
    let told = String::from_utf8_lossy(&run.conf("prof:true").output().stderr).into_owned();
    let told = told.replace(&directory.display().to_string(), "DIR");
    let expected = "<lumalloc>: a profile could not be written to DIR/nowhere/file: no such file or directory\n<lumalloc>: a profile could not be written to DIR: is a directory\n<lumalloc>: a profile has no name for its file: see prof_prefix\n";
    assert_eq!(told, expected);
    let mut names: Vec<_> = std::fs::read_dir(&directory)
        .expect("the directory")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    let [first, second] = names.as_slice() else { panic!("{names:?}") };
    let process = first.split('.').nth(1).expect("a number");
    assert_eq!(first, &format!("own.{process}.0.m0.heap"));
    assert_eq!(second, &format!("own.{process}.1.m1.heap"));
}

#[test]
fn a_profile_is_written_at_exit() {
    let directory = scratch("profile-final");
    let run = |conf: &str| {
        let program = lumalloc_tests::machine::system_program("python3.11");
        let run = Run::preloaded(program).args(["-IS", "-c", "list(range(1000000)); print('ok')"]);
        let output = run.dir(&directory).conf(conf).output();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "ok\n", "{conf}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert_eq!(run("prof:true,lg_prof_sample:16,prof_final:true"), "");
    let files: Vec<_> = std::fs::read_dir(&directory).expect("the directory").collect();
    let [Ok(file)] = files.as_slice() else { panic!("{files:?}") };
    let name = file.file_name().into_string().expect("text");
    assert!(name.starts_with("jeprof.") && name.ends_with(".0.f.heap"), "{name}");
    let text = std::fs::read_to_string(file.path()).expect("a profile");
    assert!(text.starts_with("heap_v2/65536\n  t*: "), "{text}");
    let exact = text.lines().find_map(|line| line.strip_prefix("# stats.allocated="));
    assert!(exact.expect("a note").parse::<u64>().expect("a number") > 10_000, "{text}");
    assert_eq!(run("prof_final:true"), "", "there is none without prof:true");
    assert_eq!(run("prof:true,prof_final:true,prof_prefix:"), "", "and none without a prefix");
    let told = run("prof:true,prof_final:true,prof_prefix:nowhere/at/all");
    let expected = "<lumalloc>: the profile at exit could not be written to \
                    nowhere/at/all.{n}.0.f.heap: no such file or directory\n";
    assert!(matches(expected, &told), "{told}");
}

#[test]
fn a_file_with_a_name_that_is_made_up_goes_nowhere_else_by_a_link() {
    let directory = scratch("profile-links");
    let script = "for end in f.heap json; do ln -s victim jeprof.$$.0.$end; done; exec true";
    let run = Run::preloaded("sh").args(["-c", script]).dir(&directory);
    assert_eq!(run.conf("prof:true,prof_log:true,prof_final:true").stdout(), "");
    assert!(!directory.join("victim").exists());
    for file in std::fs::read_dir(&directory).expect("the directory") {
        let file = file.expect("an entry");
        assert!(file.file_type().expect("its type").is_file(), "{file:?}");
    }
}

#[test]
fn a_profile_is_written_at_each_interval() {
    let program = cc("profile_sites.cc", &[]);
    let directory = scratch("profile-interval");
    let conf = "prof:true,lg_prof_interval:24,prof_prefix:own";
    let run = Run::preloaded(&program).args(["leak", "100"]).dir(&directory).conf(conf);
    assert_eq!(run.stdout(), "");
    let count = std::fs::read_dir(&directory).expect("the directory").count();
    // A hundred megabytes, and what the program allocates besides.
    assert!((6..=8).contains(&count), "{count}");
    for number in 0..6 {
        let end = format!(".{number}.i{number}.heap");
        let mut names = std::fs::read_dir(&directory).expect("the directory");
        let is_it = |name: &str| name.starts_with("own.") && name.ends_with(&end);
        assert!(names.any(|entry| is_it(&entry.expect("an entry").file_name().to_string_lossy())));
    }
}

#[test]
fn a_thread_with_a_small_stack_writes_a_profile() {
    let program = cc("profile_small_stack.c", &["-pthread"]);
    for (format, kibibytes) in [("heap_v2", "32"), ("pprof", "40")] {
        let directory = scratch(&format!("profile-small-stack-{format}"));
        let conf = "prof:true,lg_prof_sample:10,lg_prof_interval:20,prof_prefix:own";
        let conf = format!("{conf},prof_format:{format}");
        let run = Run::preloaded(&program).args([kibibytes]).dir(&directory).conf(&conf);
        assert_eq!(run.stdout(), "ended\n", "{format}");
        let count = std::fs::read_dir(&directory).expect("the directory").count();
        assert!((4..=7).contains(&count), "{format}: {count}");
    }
}

#[test]
fn stacks_of_coroutines_and_of_handlers_are_walked_to_their_end_only() {
    let program = cc("profile_coroutine.c", &["-Os", "-fno-toplevel-reorder"]);
    let directory = scratch("profile-coroutine");
    for conf in ["prof:true,lg_prof_sample:0", "mprof:true", "monitor:true"] {
        let run = Run::preloaded(&program).dir(&directory).conf(conf);
        assert_eq!(run.stdout(), "done\n", "{conf}");
    }
}

#[test]
fn destructors_of_keys_are_in_profiles() {
    let program = cc("profile_keys.c", &["-pthread"]);
    let directory = scratch("profile-keys");
    let conf = "prof:true,lg_prof_sample:0,prof_final:true,prof_prefix:own";
    assert_eq!(Run::preloaded(&program).dir(&directory).conf(conf).stdout(), "");
    let files: Vec<_> = std::fs::read_dir(&directory).expect("the directory").collect();
    let [Ok(file)] = files.as_slice() else { panic!("{files:?}") };
    let report = jeprof(&program, &file.path(), &[]);
    assert_eq!(report.alone("destroy"), 10 * 2 * 20 * 1024);
}

#[test]
fn the_smallest_stack_of_a_thread_has_room_for_the_heap_monitor() {
    let program = cc("profile_small_stack.c", &["-pthread"]);
    let directory = scratch("monitor-small-stack");
    let run = Run::preloaded(&program).args(["16"]).dir(&directory).conf("monitor:true");
    assert_eq!(run.stdout(), "ended\n");
}

#[test]
fn a_profile_is_written_at_each_maximum() {
    let program = cc("profile_sites.cc", &[]);
    let directory = scratch("profile-maximum");
    let conf = "prof:true,prof_gdump:true,prof_prefix:own";
    let run = Run::preloaded(&program).args(["maxima"]).dir(&directory).conf(conf);
    assert_eq!(run.stdout(), "");
    let mut causes: Vec<u64> = std::fs::read_dir(&directory)
        .expect("the directory")
        .map(|entry| {
            let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
            let words: Vec<&str> = name.split('.').collect();
            let ["own", _, sequence, cause, "heap"] = words.as_slice() else { panic!("{name}") };
            assert_eq!(cause.strip_prefix('u'), Some(*sequence), "{name}");
            sequence.parse().expect("a number")
        })
        .collect();
    causes.sort_unstable();
    // Ten times 16 MiB; the program holds less before. None after the key was set to false.
    assert!((10..=16).contains(&causes.len()), "{causes:?}");
    assert!(causes.iter().copied().eq(0..causes.len() as u64), "{causes:?}");
}

#[test]
fn the_keys_switch_the_profiler_and_count_its_samples() {
    let program = cc("profile_sites.cc", &[]);
    let run = |which: &str, conf: &str| {
        let run = Run::preloaded(&program).args(["keys", which]).conf(conf);
        assert_eq!(run.stdout(), "", "{which}");
    };
    run("on", "prof:true,lg_prof_sample:0");
    run("off", "");
    run("off", "prof:false,prof_gdump:true,lg_prof_interval:20,lg_prof_sample:12");
}

/// A rate holds from the first allocation after its reset, whatever threads did before.
#[test]
fn each_allocation_after_a_reset_has_its_chance() {
    let program = cc("profile_reset.c", &[]);
    let directory = scratch("profile-reset");
    let plain = [16, 64, 112, 1024, 8192, 20480];
    // With room for the canary.
    let hardened = [32, 80, 128, 1280, 10240, 24576];
    let all = [("", plain), ("hardened:true,", hardened), ("junk:true,", plain)];
    for (conf, blocks) in all.into_iter().chain([("lg_prof_sample:0,", plain)]) {
        let file = directory.join(format!("{}.heap", blocks[0]));
        let kept = 10 * 20 * blocks.iter().sum::<u64>();
        let run = Run::preloaded(&program).args([&file]);
        assert_eq!(run.conf(&format!("{conf}prof:true")).stdout(), "", "{conf}");
        assert_eq!(jeprof(&program, &file, &[]).alone("keep"), kept, "{conf}");
        let text = std::fs::read_to_string(&file).expect("a profile");
        assert!(!text.contains("prof.behind"), "{conf}");
    }
}

#[test]
fn the_hooks_of_a_program_see_each_sample_each_free_and_each_profile() {
    let program = cc("profile_hooks.cc", &["-fsized-deallocation", "-pthread"]);
    let name = scratch("profile-hooks").join("own.heap");
    let run = Run::preloaded(&program).args(["on".as_ref(), name.as_os_str()]);
    assert_eq!(run.conf("prof:true,lg_prof_sample:0").stdout(), "");
    assert!(std::fs::read_to_string(&name).expect("a profile").starts_with("heap_v2/1\n"));
    // jeprof gives what has no stack to no place.
    let report = jeprof(&program, &name, &[]);
    assert_eq!((report.alone("earlier_place"), report.alone("later_place")), (1120, 1120));
    assert!(report.total >= 10 * 4096 + 2 * 1120, "{}", report.total);
    assert_eq!(Run::preloaded(&program).args(["off"]).stdout(), "");
}

#[test]
fn samples_are_told_by_size_class() {
    let run = Run::preloaded(cc("profile_sites.cc", &[])).args(["classes"]);
    assert_eq!(run.conf("prof:true,lg_prof_sample:0,prof_stats:true").stdout(), "");
}

#[test]
fn a_module_at_the_addresses_of_an_unloaded_one_has_its_own_stacks() {
    let program = cc("profile_places.c", &[]);
    let [one, other] = [1024, 16384].map(|frame| {
        let frame = format!("-DFRAME={frame}");
        cc("profile_plugin.c", &["-shared", "-fPIC", "-fomit-frame-pointer", &frame])
    });
    let profile = scratch("profile-modules").join("own.heap");
    let args = ["modules".as_ref(), profile.as_os_str(), one.as_os_str(), other.as_os_str()];
    let run = Run::preloaded(&program).args(args);
    assert_eq!(run.conf("prof:true,lg_prof_sample:0").stdout(), "");
    let report = jeprof(&program, &profile, &[]);
    let of = |function| report.with_callees(function);
    assert_eq!((of("through_one"), of("through_other")), (200 * 112, 100 * 112));
    assert!(of("main") >= 300 * 112, "{}", of("main"));
}

#[test]
fn signal_handlers_may_allocate_while_each_allocation_is_a_sample() {
    let program = cc("profile_places.c", &[]);
    let profile = scratch("profile-signals").join("own.heap");
    let run = Run::preloaded(&program).args(["signals".as_ref(), profile.as_os_str()]);
    assert_eq!(run.conf("prof:true,lg_prof_sample:0").stdout(), "");
    assert_eq!(jeprof(&program, &profile, &[]).alone("handler"), 200 * 112);
}

#[test]
fn jeprof_reports_what_each_thread_holds() {
    let program = cc("profile_places.c", &[]);
    let profile = scratch("profile-threads").join("own.heap");
    let run = Run::preloaded(&program).args(["signals".as_ref(), profile.as_os_str()]);
    let conf = "prof:true,lg_prof_sample:0,prof_sys_thread_name:true";
    assert_eq!(run.conf(conf).stdout(), "");
    let text = std::fs::read_to_string(&profile).expect("a profile");
    let threads: Vec<(&str, &str)> = text
        .lines()
        .skip(2)
        .map_while(|line| line.strip_prefix("  t"))
        .map(|line| {
            assert!(line.ends_with(" [0: 0] profile_places-"), "{line}");
            line.split_once(": ").expect("numbers")
        })
        .collect();
    assert_eq!(threads.len(), 2, "{text}");
    for (thread, numbers) in threads {
        let report = jeprof(&program, &profile, &[&format!("--thread={thread}")]);
        assert_eq!(report.alone("handler"), 100 * 112);
        let bytes = numbers.split([' ', ':']).nth(2).expect("bytes");
        assert_eq!(report.total.to_string(), bytes, "{numbers}");
    }
}

#[test]
fn a_full_disk_is_told_and_leaves_no_part_of_a_file() {
    const DUMP: &str = "<lumalloc>: a profile could not be written to own.heap: file too large\n";
    for (conf, expected) in [
        (
            "prof:true,lg_prof_sample:0,prof_final:true,prof_log:true,prof_prefix:own",
            "<lumalloc>: the log of samples could not be written to own.{n}.0.json: file too large\n\
             <lumalloc>: the profile at exit could not be written to own.{n}.0.f.heap: file too \
             large\n",
        ),
        (
            "mprof:true",
            "<lumalloc>: the data of mprof could not be written to mprof.data: file too large\n",
        ),
    ] {
        let directory = scratch("profile-full");
        // A file of that name stays as it was.
        std::fs::write(directory.join("own.heap"), "old").expect("a file");
        let run = Run::preloaded(cc("profile_places.c", &[])).args(["full", "own.heap"]);
        let output = run.dir(&directory).conf(conf).output();
        assert_eq!(ending(output.status), "exit 0", "{conf}");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(matches(&[DUMP, expected].concat(), &told), "{conf}: {told}");
        let files: Vec<_> = std::fs::read_dir(&directory).expect("the directory").collect();
        let [Ok(file)] = files.as_slice() else { panic!("{files:?}") };
        assert_eq!(std::fs::read_to_string(file.path()).expect("the file"), "old", "{conf}");
    }
}
