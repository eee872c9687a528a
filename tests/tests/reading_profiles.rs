//! `lumalloc mprof`, `heap` and `flamegraph` on profiles of real programs in C and C++.

use lumalloc_tests::profiled::{Profiled, command, copied, row, tool};
use lumalloc_tests::run::find_program;
use lumalloc_tests::{Run, cc, root, scratch};
use serde_json::Value;
use std::fs;

#[test]
fn the_tables_of_a_program_in_c_are_exact() {
    let profiled = Profiled::c("reading-mprof");
    let text = are_the_tables(&profiled, "mprof-parser.txt");
    for args in [
        &["mprof", "program"][..],
        &["mprof", "program", "mprof.data"],
        &["mprof", "mprof.data"],
        &["mprof", "-normal", "-leaktable"],
        &["mprof", "--terse", "-verbose", "-normal"],
    ] {
        assert_eq!(profiled.shown(args), text, "{args:?}");
    }
    let without = profiled.shown(&["mprof", "-offsets", "-noleaktable"]);
    assert!(!without.contains("Memory Leaks") && without.contains("<TOTAL>"), "{without}");
}

/// Compares the tables of `lumalloc mprof` with a file, and returns all that it printed.
fn are_the_tables(profiled: &Profiled, golden: &str) -> String {
    let text = profiled.shown(&["mprof"]);
    // The first line has the depth of the stacks, with the functions of the C library.
    let (first, tables) = text.split_once('\n').expect("lines");
    assert!(first.contains("MPROF") && !first.contains("m0"), "{first}");
    let kilobytes = |letter| {
        let words = first.split("MPROF").last()?.split_whitespace();
        words.filter_map(|word| word.strip_prefix(letter)).find_map(|word| word.parse::<u64>().ok())
    };
    let monitor = ['s', 'f', 'd', 'l'].map(|letter| kilobytes(letter).expect("a number"));
    assert!(matches!(monitor, [1..100, 0, 1..100, 1..1000]), "{first}");
    let golden = root().join("tests/golden").join(golden);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&golden, tables).expect("written");
    }
    assert_eq!(tables, fs::read_to_string(golden).expect("the file"));
    text
}

/// The numbers that the paper on mprof tells of its example: 10,000 widgets of 204 bytes, of which
/// 4981 were freed, 1,023,876 bytes were lost, all of them by red widgets, and 50 % of what was
/// allocated.
#[test]
fn the_example_of_the_paper_has_the_tables_of_the_paper() {
    let profiled = Profiled::new(&cc("mprof_paper.c", &[]), "reading-paper");
    let text = are_the_tables(&profiled, "mprof-paper.txt");
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    for row in [
        "204 10000 2040000 (**) 4981 1023876 (**) widget",
        "1023876 (**) 5019 1023876 (**) || > main > make_red_widget > make_widget",
        "100.0 2040000 | ** | 1023876 | ** | 10000 make_widget",
        "[0] 100.0 0 | | ----------- | 0 main [0]",
        "[1] 100.0 2040000 (**) | ** | ----------- | 10000 make_widget [1]",
        "1023876 (50) | ** | 50 | 5019/5019 make_red_widget [2]",
        "1016124 (49) | ** | 49 | 4981/4981 make_blue_widget [3]",
    ] {
        let row: Vec<&str> = row.split(' ').collect();
        assert!(rows.contains(&row), "{row:?}\n{text}");
    }
}

/// An offset leads to the call: addr2line finds the function and the line there.
/// What `strdup` and `asprintf` allocate, they allocate for their callers.
#[test]
fn the_place_of_what_the_c_library_allocates_is_its_caller() {
    let profiled = Profiled::new(&cc("reading_system.c", &[]), "reading-system");
    let text = profiled.shown(&["heap", "mprof.data", "--bytes"]);
    let sites = text.split("\nSites by ").nth(1).expect("sites");
    let sites = sites.split("\n\n").next().expect("their end");
    for (function, blocks) in [("parse_names", "100"), ("parse_places", "50"), ("make_paths", "30")]
    {
        let row = sites.lines().find(|line| line.contains(&format!("  {function}")));
        let row = row.unwrap_or_else(|| panic!("no {function}: {text}"));
        assert_eq!(row.split_whitespace().nth(2), Some(blocks), "{row}");
    }
    let others = ["strdup", "asprintf"].iter().any(|name| sites.contains(name));
    assert!(!others, "{sites}");
}

/// GCC makes two functions of one, and may inline both. Recursion stays as it is, also that of such
/// a function.
#[test]
fn a_function_that_gcc_split_is_shown_once() {
    let program = cc("profile_split.c", &["-O2"]);
    for function in ["outside", "inside", "list"] {
        let symbols = tool("nm", &[&program]);
        assert!(symbols.contains(&format!(" t {function}.part.")), "{symbols}");
    }
    let lines = [
        "main;inside 4096",
        "main;insides;inside 4096",
        "main;lists;list 3072",
        "main;lists;list;list 3072",
        "main;lists;list;list;list 3072",
        "main;outsides;outside 2048",
        "main;trees;tree 4096",
        "main;trees;tree;tree 4096",
        "main;trees;tree;tree;tree 4096",
        "main;trees;tree;tree;tree;tree 4096",
    ];
    let profiled = Profiled::new(&program, "reading-split-functions");
    let text = profiled.shown(&["heap", "mprof.data", "--collapsed"]);
    assert_eq!(text.lines().collect::<Vec<_>>(), lines);
    let text = profiled.shown(&["mprof"]);
    assert!(text.contains("|| > main > outsides > outside\n"), "{text}");
    // Without debug information nothing is known of what was inlined.
    let profiled = Profiled::new(&cc("profile_split.c", &["-O2", "-g0"]), "reading-split-bare");
    let text = profiled.shown(&["heap", "mprof.data", "--collapsed"]);
    let is_split = |line: &&str| !line.contains("tree");
    let expected = ["main;inside 8192"].iter().chain(&lines[2..6]).copied();
    assert!(text.lines().filter(is_split).eq(expected), "{text}");
}

#[test]
fn offsets_are_those_of_the_call_sites() {
    let profiled = Profiled::c("reading-offsets");
    let text = profiled.shown(&["mprof", "-offsets"]);
    let row = text.lines().find(|line| line.contains("> make_red_widget+")).expect("the row");
    let path: Vec<&str> = row.split(" > ").skip(1).collect();
    assert_eq!(path.len(), 3, "{row}");
    let source = fs::read_to_string(root().join("tests/c/reading_profiles.c")).expect("the source");
    let instructions = tool("objdump", &[&"-d", &profiled.program]);
    let symbols = tool("nm", &[&profiled.program]);
    for (call, callee) in path.iter().zip(["make_red_widget()", "make_widget()", "malloc(sizeof"]) {
        let (name, offset) = call.trim_end().split_once('+').expect("an offset");
        let symbol = symbols.lines().find(|line| line.ends_with(&format!(" {name}")));
        let start = symbol.and_then(|line| line.split(' ').next()).expect("a symbol");
        let start = u64::from_str_radix(start, 16).expect("an address");
        let returned = start + offset.parse::<u64>().expect("a number");
        // An instruction begins where the call returns to.
        let begin = format!("{returned:x}:\t");
        assert!(instructions.lines().any(|line| line.trim_start().starts_with(&begin)), "{call}");
        let address = returned - 1;
        let place = Run::plain(find_program("addr2line"))
            .args(["-f", "-e"])
            .args([&profiled.program])
            .args([format!("{address:#x}")])
            .stdout();
        let (function, line) = place.trim().split_once('\n').expect("two lines");
        let number = line.rsplit(':').next().and_then(|text| text.split(' ').next());
        let number: usize = number.and_then(|text| text.parse().ok()).expect("a line");
        assert_eq!(function, name);
        assert!(source.lines().nth(number - 1).expect("it").contains(callee), "{call}: {place}");
    }
}

#[test]
fn functions_and_types_of_cpp_are_named() {
    let program = cc("reading_profiles.cc", &[]);
    let profiled = Profiled::new(&program, "reading-cpp");
    let text = profiled.shown(&["heap", "mprof.data", "--bytes", "--top", "1000"]);
    assert_eq!(row(&text, "Functions", "shop::Shelf<shop::Widget>::put"), (10 * 224, 10));
    // 3000 bytes have a block of 3072.
    assert_eq!(row(&text, "Functions", "shop::inlined"), (3072, 1));
    assert_eq!(row(&text, "Functions", "shop::around").0, 0);
    assert_eq!(row(&text, "Sizes", "3000 bytes"), (3072, 1));
    assert_eq!(row(&text, "Types", "shop::Widget"), (10 * 224, 10));
    assert_eq!(row(&text, "Types", "vector<shop::Widget>").1, 1);
    assert_eq!(row(&text, "Types", "std::string").1, 1);
    assert_eq!(row(&text, "Types", "shared_ptr<shop::Widget>").1, 1);
    assert_eq!(row(&text, "Threads", "thread 2").1, 1);
    let stack = text.split("shop::inlined (reading_profiles.cc:17)\n").nth(1).expect("the stack");
    assert!(stack.trim_start().starts_with("shop::around (reading_profiles.cc:18)\n"), "{stack}");
    assert!(text.contains("main::{lambda(unsigned long)#1}::operator() const ("), "{text}");
}

/// The stacks that libgcc's unwinder finds are the same. It allocates itself, where it is loaded.
#[test]
fn libgcc_finds_the_same_stacks() {
    for level in ["-O0", "-O2"] {
        let program = cc("reading_profiles.c", &[level]);
        let folded = |options, name| {
            Profiled::with(&program, name, options).shown(&["heap", "mprof.data", "--collapsed"])
        };
        let own = folded("mprof:true", "libgcc-own");
        let by_libgcc = folded("mprof:true,prof_libgcc:true", "libgcc-libgcc");
        let found: Vec<&str> = by_libgcc.lines().collect();
        for line in own.lines() {
            assert!(found.contains(&line), "{line}\n{by_libgcc}");
        }
        assert!(own.lines().count() > 2, "{own}");
        assert_ne!(own, by_libgcc, "nothing loads libgcc");
    }
}

/// jemalloc's format has the same numbers and names.
#[test]
fn heap_v2_shows_the_same() {
    let profiled = Profiled::c("reading-heap-v2");
    let conf = "prof:true,prof_final:true,prof_accum:true,lg_prof_sample:0,prof_prefix:text";
    let run = Run::preloaded(&profiled.program).dir(&profiled.directory).conf(conf);
    assert_eq!(run.stdout(), "");
    let files = fs::read_dir(&profiled.directory).expect("the directory");
    let names = files.map(|file| file.expect("a file").file_name().into_string().expect("text"));
    let file = names.into_iter().find(|name| name.ends_with(".heap")).expect("a profile");
    for args in [
        &["--by", "function"][..],
        &["--by", "stack", "--value", "allocations"],
        &["--by", "thread"],
    ] {
        let of = |file: &str| {
            let text = profiled.shown(&[&["heap", file, "--bytes"], args].concat());
            text.split_once("\n\n").expect("a table").1.to_owned()
        };
        assert_eq!(of(&file), of("mprof.data"));
    }
    let text = profiled.shown(&["heap", &file]);
    assert!(
        text.contains(" allocated, ") && text.contains("(exact, from the allocator)"),
        "{text}"
    );
}

#[test]
fn a_change_is_by_names_and_has_a_total() {
    let directory = scratch("reading-difference");
    let program = copied(&cc("profile_sites.cc", &[]), &directory);
    let run = Run::preloaded(&program).dir(&directory).args(["exact", "b.heap", "a.heap"]);
    assert_eq!(run.conf("prof:true,lg_prof_sample:0,prof_accum:true").stdout(), "");
    let (status, text, errors) =
        command(&directory, &["heap", "a.heap", "--diff", "b.heap", "--bytes"]);
    assert_eq!((status.as_str(), errors.as_str()), ("exit 0", ""));
    let functions = text.split("\nFunctions by change of live bytes\n").nth(1).expect("a table");
    let row = functions.lines().find(|line| line.ends_with("  large")).expect("the row");
    let fields: Vec<&str> = row.split_whitespace().collect();
    let expected =
        ["+20971520", "125829120", "104857600", "+20971520", "+10", "+20971520", "+10", "large"];
    assert_eq!(fields, expected);
    let (_, folded, _) =
        command(&directory, &["heap", "a.heap", "--diff", "b.heap", "--collapsed"]);
    assert!(folded.contains("main;exact;large 104857600 125829120\n"), "{folded}");
    let (_, json, _) = command(&directory, &["heap", "a.heap", "--diff", "b.heap", "--json"]);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let changes = json["changes"].as_array().expect("changes");
    let large = changes.iter().find(|change| change["functions"][0] == "large").expect("large");
    assert_eq!((&large["live_bytes"], &large["live_blocks"]), (&20_971_520.into(), &10.into()));
}

/// Estimates and their errors fit the known numbers: 90,000 blocks of 64 bytes, 10,000 of 8192.
#[test]
fn estimates_have_errors_that_fit() {
    let directory = scratch("reading-sampled");
    let program = copied(&cc("profile_sites.cc", &[]), &directory);
    let run = Run::preloaded(&program).dir(&directory).args(["sampled", "s.pb.gz"]);
    assert_eq!(run.conf("prof:true,lg_prof_sample:12,prof_seed:3").stdout(), "");
    let (status, json, _) = command(&directory, &["heap", "s.pb.gz", "--json"]);
    assert_eq!(status, "exit 0");
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&json["sampled"], &json["period"]), (&true.into(), &4096.into()));
    let samples = json["samples"].as_array().expect("samples");
    for (size, blocks) in [(64, 90_000.0), (8192, 10_000.0)] {
        let of = |name: &str| {
            let of_size = samples.iter().filter(|sample| sample["size"] == size);
            of_size.map(|sample| sample[name].as_f64().expect("a number")).sum::<f64>()
        };
        let variance: f64 = samples
            .iter()
            .filter(|sample| sample["size"] == size)
            .map(|sample| sample["live_blocks_error"].as_f64().expect("a number").powi(2))
            .sum();
        let (error, found) = (variance.sqrt(), of("live_blocks"));
        assert!(error > 0.0 && (found - blocks).abs() < 4.0 * error, "{size}: {found} ± {error}");
        assert!((of("live_bytes") / found / f64::from(size) - 1.0).abs() < 0.001, "{size}");
    }
    let text = command(&directory, &["heap", "s.pb.gz"]).1;
    assert!(
        text.contains("estimates from samples, one in 4096 bytes; ± is one standard"),
        "{text}"
    );
    assert!(
        text.contains(" allocated, ") && text.contains("(exact, from the allocator)"),
        "{text}"
    );
}

#[test]
fn formats_of_other_programs_are_whole() {
    let profiled = Profiled::c("reading-formats");
    let folded = profiled.shown(&["heap", "mprof.data", "--collapsed", "--value", "allocations"]);
    assert!(folded.contains("main;make_red_widget;make_widget 300\n"), "{folded}");
    assert!(folded.contains("main;grow;grow;grow 1\n"), "{folded}");
    let dhat = profiled.shown(&["heap", "mprof.data", "--dhat"]);
    let dhat: Value = serde_json::from_str(&dhat).expect("JSON");
    assert_eq!((&dhat["dhatFileVersion"], &dhat["bklt"]), (&2.into(), &false.into()));
    let points = dhat["pps"].as_array().expect("points");
    let blocks: u64 = points.iter().map(|point| point["tbk"].as_u64().expect("a number")).sum();
    assert_eq!(blocks, 201);
    let frame = points[0]["fs"][0].as_u64().expect("an index") as usize;
    assert!(frame > 0 && dhat["ftbl"][frame].is_string() && dhat["ftbl"][0] == "[root]");

    let said = profiled.shown(&["flamegraph", "mprof.data", "-o", "graph.svg"]);
    assert_eq!(said, "");
    let check = "import sys, xml.dom.minidom as d; g = d.parse(sys.argv[1]); \
                 print(len(g.getElementsByTagName('title')), g.documentElement.tagName)";
    let run = Run::plain("/usr/bin/python3").args(["-c", check, "graph.svg"]);
    // all, main, make_red_widget, make_widget, three of grow, parse, expr
    assert_eq!(run.dir(&profiled.directory).stdout(), "9 svg\n");
    assert_eq!(profiled.shown(&["flamegraph", "mprof.data"]), {
        fs::read_to_string(profiled.directory.join("graph.svg")).expect("the picture")
    });
}
